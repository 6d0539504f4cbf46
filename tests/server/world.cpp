// SPDX-License-Identifier: Apache-2.0
#include "tests/server/world.hpp"

#include <fmt/format.h>
#include <sys/time.h>

#include <atomic>

namespace pawl::test {

std::string Answer::header(std::string_view name) const {
  const auto begin = head.find(fmt::format("\r\n{}: ", name));
  if (begin == std::string::npos) return {};
  const auto value = begin + 2 + name.size() + 2;
  return head.substr(value, head.find("\r\n", value) - value);
}

Client::Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{10, 0};
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}
Client::~Client() { ::close(socket_); }

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // the server has had enough; its answer says why
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool Client::fill() {
  char piece[16384];
  const auto count = ::recv(socket_, piece, sizeof piece, 0);
  if (count <= 0) return false;
  buffer_.append(piece, static_cast<std::size_t>(count));
  return true;
}

std::string Client::read_until(std::string_view mark) {
  auto found = buffer_.find(mark);
  while (found == std::string::npos && fill()) found = buffer_.find(mark);
  const auto end = found == std::string::npos ? buffer_.size() : found + mark.size();
  std::string text = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return text;
}

bool Client::at_end() { return buffer_.empty() && !fill(); }

Answer Client::read() {
  Answer answer;
  answer.head = read_until("\r\n\r\n");
  if (answer.head.size() < 12) return answer;
  answer.status = std::stoi(answer.head.substr(9, 3));
  const auto length = answer.header("Content-Length");
  if (length.empty()) return answer;
  const auto size = static_cast<std::size_t>(std::stoul(length));
  while (buffer_.size() < size && fill()) {}
  answer.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return answer;
}

Answer Client::call(std::string_view method, std::string_view target, std::string_view body,
                    std::string_view headers) {
  std::string request = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}", method, target, headers);
  if (!body.empty()) {
    if (headers.find("Content-Type") == std::string_view::npos)
      request += "Content-Type: application/json\r\n";
    request += fmt::format("Content-Length: {}\r\n", body.size());
  }
  send(request + "\r\n" + std::string(body));
  return read();
}

World::World(ServerOptions options, EngineOptions engine_options, const StoreOpener& opener) {
  static std::atomic<int> number{0};
  place = std::filesystem::temp_directory_path() / fmt::format("pawl-server-{}-{}", ::getpid(), ++number);
  std::filesystem::create_directories(place);
  Machines machines;
  machines.add<door>();
  if (options.auth != nullptr) options.auth->add_machines(machines);
  for (auto* system : options.systems) {
    system->prepare({.data = place.string()}).value();
    system->add_flows(flows);
    system->add_machines(machines);
    if (auto migrations = system->migrations(); !migrations.empty()) {
      engine_options.migrations.emplace(system->name(), std::move(migrations));
    }
    engine_options.pools.merge(system->pools());
  }
  flows.add_machines(machines);
  if (engine_options.vfs.empty()) engine_options.store = "sqlite:" + (place / "pawl.db").string();
  engine_options.pools["uplink"] = 2;
  engine = open_engine(runtime, std::move(machines), std::move(engine_options), opener).value();
  if (options.auth != nullptr) options.auth->start(runtime, *engine).value();
  flows.attach(*engine).value();
  for (auto* system : options.systems) {
    system->start(runtime, *engine).value();
    systems.push_back(system);
  }
  options.flows = &flows;
  if (options.backups.empty()) options.backups = (place / "backups").string();
  options.listen = "127.0.0.1:0";
  server = Server::start(runtime, *engine, std::move(options)).value();
}

World::~World() {
  server.reset();
  for (auto* system : systems) system->stop();
  flows.detach();
  engine.reset();
  std::filesystem::remove_all(place);
}

void World::expect_problem(const Answer& answer, int status, std::string_view code) {
  EXPECT_EQ(answer.status, status) << answer.head << answer.body;
  EXPECT_EQ(answer.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(member(answer.body, "code"), fmt::format("\"{}\"", code)) << answer.body;
  EXPECT_EQ(member(answer.body, "status"), std::to_string(status));
}

std::string member(const std::string& json, std::string_view name) {
  const auto document = JsonDocument::parse(json);
  if (!document) return "not JSON: " + json;
  const auto value = document->root().find(name);
  return value ? value->to_text() : std::string();
}

}  // namespace pawl::test
