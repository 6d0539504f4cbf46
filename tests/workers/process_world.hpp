// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Real processes for one test: a manager in a directory of its own, of whose processes nothing is left when
/// the test ends, and ways to wait for what they do.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "workers/process/manager.hpp"

namespace pawl::workers::test {

/// So long that only something that never happens takes it.
inline constexpr int kPatienceMs = 120'000;

class World {
 public:
  World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  const std::string& root() const { return root_; }
  std::string processes() const { return root_ + "/processes"; }
  /// The directory of one worker.
  std::string place(std::string_view id) const;

  /// As a server that has just been started would have it.
  ProcessManager manager(const std::string& shim = PAWL_SHIM, ProcessTimeouts timeouts = {}) const;

  /// Waits until something changes in the directory of the worker, as often as needed.
  void until(std::string_view id, const std::function<bool()>& holds) const;
  void until_ended(std::string_view id) const;
  /// The text of each line of output, when there are so many.
  std::vector<std::string> lines(std::string_view id, std::size_t count) const;

  /// The command counts its runs in this file.
  std::string runs_file() const { return root_ + "/runs"; }
  std::size_t runs() const;

 private:
  std::string root_;
};

/// A command for the shell, which is there for the tests only.
ProcessSpec shell(const std::string& script);
/// Counts itself, and stays.
ProcessSpec counted(const World& world);

struct ShimAndCommand {
  pid_t shim = 0;
  pid_t command = 0;
};
/// From the status file.
ShimAndCommand pids(const World& world, std::string_view id);

/// A handle to wait with, taken while the process lives.
class Handle {
 public:
  explicit Handle(pid_t pid);
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle();
  /// False where it still lives after all timeouts.
  bool ended() const;
  bool lives() const;

 private:
  int number_;
};

/// Runs in a process of its own, which ends itself by SIGKILL afterwards; returns when it has.
void in_killed_process(const std::function<void()>& work);

std::string read_all(const std::string& path);
void write_all(const std::string& path, std::string_view text, unsigned mode = 0600);

}  // namespace pawl::workers::test
