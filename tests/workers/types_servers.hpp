// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Real servers for the tests of worker types, on loopback. They end with their objects.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pawl::test {

/// A port that was free just now, below those that the system gives to connections.
std::uint16_t free_port();

/// An empty directory that is removed with its object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::filesystem::path& path() const { return path_; }
  /// Makes a file of this content and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// A program that is killed with its object, and when the test program dies. Its output goes to a file.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, const std::string& output);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();
  /// SIGKILL, and waits for its end.
  void kill();

 private:
  pid_t process_ = -1;
};

/// A port of loopback that is taken, so that nobody else can listen there, and refuses connections.
class ClosedPort {
 public:
  ClosedPort() : ClosedPort(0) {}
  /// Port 0 is any.
  explicit ClosedPort(std::uint16_t port);
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  ~ClosedPort();
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

/// Listens on loopback and accepts nobody by itself: the system does, until its queue is full.
class Listener {
 public:
  explicit Listener(int queue = 8);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();
  std::string address() const;
  /// Refuses connections from now on.
  void close();

 private:
  int socket_ = -1;
  std::uint16_t port_ = 0;
  std::optional<ClosedPort> closed_;
};

/// Whether something accepts connections there.
bool accepts(std::uint16_t port);

}  // namespace pawl::test
