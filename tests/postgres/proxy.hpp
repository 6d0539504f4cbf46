// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A network with injected failures: forwards TCP connections on loopback to the server's socket, and cuts
/// them at a chosen point.
///
///     Proxy proxy(server);
///     auto store = open_postgres({.url = proxy.url(database)});
///     proxy.cut(Proxy::Cut::answer_to_commit);      // the next commit is made, but its answer is lost

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/postgres_server.hpp"

namespace pawl::test {

/// Thread-safe.
class Proxy {
 public:
  enum class Cut : int {
    nothing,
    next_request,      ///< what the client sends next never arrives, and its connection ends
    answer_to_commit,  ///< the next commit's confirmation never arrives, and the connection ends
    client_only,       ///< what the client sends next arrives, but its connection ends at once
  };

  explicit Proxy(const Server& server);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy();

  std::string url(const std::string& database, const std::string& parameters = "") const;
  /// Cuts one connection: of those that are open now, the first one that reaches this point.
  void cut(Cut where);
  /// While on, connections stay open and new ones are accepted, but no byte is forwarded.
  void silence(bool on) { silent_ = on; }
  /// Number of cut connections.
  int cuts() const { return cuts_.load(); }

 private:
  struct Link {
    int client = -1;
    int server = -1;
    bool early = true;  ///< opened before the cut was asked for
    std::thread thread;
  };
  void accept_all();
  void forward(Link& link);
  bool strikes(const Link& link, Cut where);

  std::string socket_file_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<Cut> cut_ = Cut::nothing;
  std::atomic<int> cuts_ = 0;
  std::atomic<bool> silent_ = false;
  std::atomic<bool> stopped_ = false;
  std::thread accepts_;
};

}  // namespace pawl::test
