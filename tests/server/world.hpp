// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A real server on a free loopback port with a real store, and a client that can send anything.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/engine/open_engine.hpp"
#include "pawl/auth.hpp"
#include "pawl/engine.hpp"
#include "pawl/flows.hpp"
#include "pawl/json.hpp"
#include "pawl/server.hpp"
#include "pawl/system.hpp"

namespace pawl::test {

enum class Door { closed, open, locked };
struct Push {
  int force = 1;
};
struct Pull {};
struct TurnKey {
  Required<std::string> key_id;
};
struct Count {
  int opened = 0;
};

inline constexpr auto door = machine<Door, Count>("door")
                                 .initial(Door::closed)
                                 .on<Push>(Door::closed, Door::open,
                                           [](Count& count, const Push& push) { count.opened += push.force; })
                                 .on<Pull>(Door::open, Door::closed,
                                           [](Count&, const Pull&, Effects& effects) {
                                             effects.set_timer("draught", std::chrono::hours(1), Push{});
                                           })
                                 .on<TurnKey>(Door::closed, Door::locked)
                                 .terminal(Door::locked);

/// What a server answered.
struct Answer {
  int status = 0;
  std::string head;
  std::string body;
  std::string header(std::string_view name) const;
};

/// A blocking connection. Reads give up after ten seconds, so that a test that fails does not hang.
class Client {
 public:
  explicit Client(std::uint16_t port);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes);
  /// Reads one answer.
  Answer read();
  /// The next bytes, up to and including `mark`; what came before the end otherwise.
  std::string read_until(std::string_view mark);
  /// Whether the server has closed the connection and nothing is left to read.
  bool at_end();

  Answer call(std::string_view method, std::string_view target, std::string_view body = {},
              std::string_view headers = {});

 private:
  bool fill();
  int socket_ = -1;
  std::string buffer_;
};

class World {
 public:
  explicit World(ServerOptions options = {}, EngineOptions engine_options = {},
                 const StoreOpener& opener = open_store);
  ~World();

  Answer call(std::string_view method, std::string_view target, std::string_view body = {},
              std::string_view headers = {}) {
    return Client(server->port()).call(method, target, body, headers);
  }
  /// Checks status, content type and code of a refusal.
  void expect_problem(const Answer& answer, int status, std::string_view code);
  /// The newest entry of the log: what must not move when a request is refused.
  std::int64_t last_seq() const { return engine->stats().last_seq; }

  std::filesystem::path place;
  ThreadRuntime runtime;
  Flows flows{runtime};  // those of the systems
  std::vector<System*> systems;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Server> server;
};

/// The text of a member of a JSON object; "" where it is absent.
std::string member(const std::string& json, std::string_view name);

}  // namespace pawl::test
