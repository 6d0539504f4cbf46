// SPDX-License-Identifier: Apache-2.0
#include "tests/support/s3_server_double.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace pawl::test {

S3ServerDouble::S3ServerDouble(std::vector<ScriptedReply> replies)
    : replies_(std::move(replies)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, raw, size) != 0 || listen(listener_, 8) != 0 || getsockname(listener_, raw, &size) != 0)
    throw std::runtime_error("no free port");
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] { serve(); });
}

S3ServerDouble::~S3ServerDouble() {
  shutdown(listener_, SHUT_RDWR);  // ends the wait for another connection
  thread_.join();
  close(listener_);
}

std::string S3ServerDouble::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }

std::vector<std::string> S3ServerDouble::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void S3ServerDouble::serve() {
  for (const auto& reply : replies_) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    answer(connection, reply);
    close(connection);
  }
}

void S3ServerDouble::answer(int connection, const ScriptedReply& reply) {
  std::string head;
  std::array<char, 4096> part{};
  while (head.find("\r\n\r\n") == std::string::npos) {
    const auto got = recv(connection, part.data(), part.size(), 0);
    if (got <= 0) return;
    head.append(part.data(), static_cast<std::size_t>(got));
  }
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(head);
  }
  auto bytes = reply.bytes;
  constexpr std::string_view kOrigin = "{origin}";
  if (const auto at = bytes.find(kOrigin); at != std::string::npos)
    bytes.replace(at, kOrigin.size(), endpoint());
  for (std::string_view rest = bytes; !rest.empty();) {
    const auto sent = send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
  if (reply.then) reply.then();
  if (!reply.hold) shutdown(connection, SHUT_WR);
  while (recv(connection, part.data(), part.size(), 0) > 0) continue;  // until the client has read everything
}

std::string http_answer(std::string_view status, std::string_view headers, std::string_view body) {
  return fmt::format("HTTP/1.1 {}\r\n{}Content-Length: {}\r\nConnection: close\r\n\r\n{}", status, headers,
                     body.size(), body);
}

}  // namespace pawl::test
