// SPDX-License-Identifier: Apache-2.0
#include "tests/workers/types_servers.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

namespace pawl::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int stream_socket(int flags = 0) { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0); }

/// Takes the port, or any if it is 0, and returns it. Without SO_REUSEADDR, with which others could have it,
/// too.
std::uint16_t bind_to(int socket, std::uint16_t port) {
  auto address = loopback(port);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, raw, size) != 0 || getsockname(socket, raw, &size) != 0)
    throw std::runtime_error("no free port");
  return ntohs(address.sin_port);
}

}  // namespace

std::uint16_t free_port() {
  constexpr int kTries = 1000;
  std::random_device numbers;
  std::uniform_int_distribution<int> any_port(10'000, 31'999);
  for (int tries = 0; tries < kTries; ++tries) {
    const auto port = static_cast<std::uint16_t>(any_port(numbers));
    const auto address = loopback(port);
    const int one = stream_socket();
    const bool is_free = bind(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(one);
    if (is_free) return port;
  }
  throw std::runtime_error("no free port");
}

TemporaryDirectory::TemporaryDirectory() {
  auto name = (std::filesystem::temp_directory_path() / "pawl_types_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, const std::string& content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return path_ / name;
}

Program::Program(const std::vector<std::string>& arguments, const std::string& output) {
  std::vector<char*> raw;
  for (const auto& one : arguments) raw.push_back(const_cast<char*>(one.c_str()));
  raw.push_back(nullptr);
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("no process can be made");
  if (process_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int log = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(raw[0], raw.data());
  _exit(127);
}

Program::~Program() { kill(); }

void Program::kill() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  waitpid(std::exchange(process_, -1), nullptr, 0);
}

Listener::Listener(int queue) : socket_(stream_socket(SOCK_NONBLOCK)) {
  port_ = bind_to(socket_, 0);
  if (listen(socket_, queue) != 0) throw std::runtime_error("no free port");
}

Listener::~Listener() {
  if (socket_ >= 0) ::close(socket_);
}

std::string Listener::address() const { return fmt::format("127.0.0.1:{}", port_); }

void Listener::close() {
  ::close(std::exchange(socket_, -1));
  closed_.emplace(port_);
}

ClosedPort::ClosedPort(std::uint16_t port) : socket_(stream_socket()), port_(bind_to(socket_, port)) {}

ClosedPort::~ClosedPort() { ::close(socket_); }

bool accepts(std::uint16_t port) {
  const auto address = loopback(port);
  const int one = stream_socket();
  const bool connected = connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(one);
  return connected;
}

}  // namespace pawl::test
