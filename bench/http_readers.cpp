// SPDX-License-Identifier: Apache-2.0
#include "bench/http_readers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace bench {
namespace {

int connect_to(std::uint16_t port) {
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (made < 0 || ::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("a reader could not connect");
  }
  return made;
}

/// Opens a stream and reads its header.
int open_stream(std::uint16_t port, const std::string& path) {
  const int made = connect_to(port);
  const auto request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n";
  if (::send(made, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    throw std::runtime_error("a reader could not send its request");
  }
  std::string head;
  char byte = 0;
  while (!head.ends_with("\r\n\r\n")) {
    if (::recv(made, &byte, 1, 0) != 1) throw std::runtime_error("a stream did not begin: " + head);
    head += byte;
  }
  if (!head.starts_with("HTTP/1.1 200")) throw std::runtime_error("a stream was refused: " + head);
  return made;
}

}  // namespace

struct Readers::Body {
  MadeAt made_at;
  std::vector<int> sockets;
  int poll = -1;
  std::atomic<bool> stopping = false;
  std::atomic<std::uint64_t> events = 0;
  std::atomic<std::size_t> ended = 0;
  std::atomic<double> worst = 0;
  std::vector<char> buffer = std::vector<char>(std::size_t{1} << 18);
  std::thread thread;

  void take(std::string_view piece) {
    constexpr std::string_view kId = "id: ";
    std::uint64_t count = 0;
    std::string_view newest;
    for (auto at = piece.find(kId); at != std::string_view::npos; at = piece.find(kId, at + 1)) {
      if (at != 0 && piece[at - 1] != '\n') continue;
      const auto end = piece.find('\n', at);
      if (end == std::string_view::npos) break;
      newest = piece.substr(at + kId.size(), end - at - kId.size());
      ++count;
    }
    if (count == 0) return;
    events += count;
    const std::chrono::duration<double> lag = Clock::now() - made_at(newest);
    worst = std::max(worst.load(), lag.count());
  }

  void run() {
    std::array<epoll_event, 256> ready{};
    while (!stopping) {
      const int count = ::epoll_wait(poll, ready.data(), static_cast<int>(ready.size()), 50);
      for (int i = 0; i < count; ++i) {
        const int from = ready.at(static_cast<std::size_t>(i)).data.fd;
        const auto got = ::recv(from, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got > 0) {
          take({buffer.data(), static_cast<std::size_t>(got)});
        } else if (got == 0) {
          ++ended;
          ::epoll_ctl(poll, EPOLL_CTL_DEL, from, nullptr);
        }
      }
    }
  }
};

Readers::Readers(std::uint16_t port, const std::vector<std::string>& paths, MadeAt made_at)
    : body_(std::make_unique<Body>()) {
  body_->made_at = std::move(made_at);
  body_->poll = ::epoll_create1(EPOLL_CLOEXEC);
  for (const auto& path : paths) {
    body_->sockets.push_back(open_stream(port, path));
    epoll_event wanted{.events = EPOLLIN, .data = {.fd = body_->sockets.back()}};
    ::epoll_ctl(body_->poll, EPOLL_CTL_ADD, body_->sockets.back(), &wanted);
  }
  body_->thread = std::thread([this] { body_->run(); });
}

Readers::~Readers() {
  stop();
  for (const int socket : body_->sockets) ::close(socket);
  ::close(body_->poll);
}

void Readers::stop() {
  body_->stopping = true;
  if (body_->thread.joinable()) body_->thread.join();
}

double Readers::worst_lag() const { return body_->worst; }
std::uint64_t Readers::events() const { return body_->events; }
std::size_t Readers::ended() const { return body_->ended; }

}  // namespace bench
