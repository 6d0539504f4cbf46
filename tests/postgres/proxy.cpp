// SPDX-License-Identifier: Apache-2.0
#include "tests/postgres/proxy.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <list>
#include <stdexcept>
#include <string_view>

namespace pawl::test {
namespace {

bool send_all(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

int connect_to(const std::string& path) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (connect(made, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return made;
  close(made);
  return -1;
}

}  // namespace

Proxy::Proxy(const Server& server) : socket_file_(server.socket_file()) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, raw, size) != 0 || listen(listener_, 16) != 0 ||
      getsockname(listener_, raw, &size) != 0)
    throw std::runtime_error("no port on loopback");
  port_ = ntohs(address.sin_port);
  accepts_ = std::thread([this] { accept_all(); });
}

Proxy::~Proxy() {
  stopped_ = true;
  shutdown(listener_, SHUT_RDWR);
  accepts_.join();
  close(listener_);
}

std::string Proxy::url(const std::string& database, const std::string& parameters) const {
  return fmt::format("postgresql://postgres@127.0.0.1:{}/{}?{}", port_, database, parameters);
}

void Proxy::cut(Cut where) { cut_ = where; }

void Proxy::accept_all() {
  std::list<Link> links;
  while (!stopped_) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    auto& link = links.emplace_back();
    link.client = client;
    link.server = connect_to(socket_file_);
    link.early = cut_ == Cut::nothing;
    link.thread = std::thread([this, &link] { forward(link); });
  }
  for (auto& link : links) link.thread.join();
}

bool Proxy::strikes(const Link& link, Cut where) {
  if (!link.early || !cut_.compare_exchange_strong(where, Cut::nothing)) return false;
  ++cuts_;
  return true;
}

void Proxy::forward(Link& link) {
  std::array<char, 65536> buffer{};
  while (!stopped_) {
    if (silent_) {
      poll(nullptr, 0, 10);
      continue;
    }
    std::array<pollfd, 2> waits{{{.fd = link.client, .events = POLLIN, .revents = 0},
                                 {.fd = link.server, .events = POLLIN, .revents = 0}}};
    if (link.server < 0 || poll(waits.data(), waits.size(), 50) < 0) break;
    if (waits[0].revents != 0) {
      const auto got = recv(link.client, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      // Two threads of the store may use the proxy; only the requests of a batch are long.
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      const bool batch = bytes.find("closed") != bytes.npos;
      if (batch && strikes(link, Cut::next_request)) break;
      if (!send_all(link.server, bytes)) break;
      if (batch && strikes(link, Cut::client_only)) {
        shutdown(link.client, SHUT_RDWR);
        close(link.client);
        link.client = -1;
        // The server continues with what it received, until it is stopped.
        while (!stopped_ && recv(link.server, buffer.data(), buffer.size(), 0) > 0) continue;
        break;
      }
    }
    if (waits[1].revents != 0) {
      const auto got = recv(link.server, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      if (bytes.find(std::string_view("COMMIT\0", 7)) != bytes.npos && strikes(link, Cut::answer_to_commit))
        break;
      if (!send_all(link.client, bytes)) break;
    }
  }
  if (link.client >= 0) close(link.client);
  if (link.server >= 0) close(link.server);
  link.client = -1;
}

}  // namespace pawl::test
