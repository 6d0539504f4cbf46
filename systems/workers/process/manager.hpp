// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Real processes that outlive the server, each started exactly once per generation.
///
///     auto manager = ProcessManager::open("/var/lib/pawl/processes", "/usr/libexec/pawl/pawl-shim").value();
///     manager.start("plant/pump", 1, {.command = {"pump-driver", "--port", "502"}});
///     manager.status("plant/pump")->state;                      // running, also after the server was killed
///     manager.stop("plant/pump", std::chrono::seconds(10), stop);
///     manager.status("plant/pump")->exit->signal;               // 15
///
/// The manager has no state of its own: what runs is in the lock and the status of each worker's directory,
/// which the shim maintains. A new manager knows what earlier ones did, and several may run at once. The
/// caller commits the intent to run a generation before it calls `start`; after a crash it calls `start`
/// again with the same generation.
///
/// The directory must be on a file system of this machine, because locks and process numbers are its own.

#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"
#include "workers/process/os.hpp"
#include "workers/process/process.hpp"
#include "workers/process/table.hpp"

namespace pawl::workers {

class ProcessDirectory;
struct DirectoryState;

/// Timeouts for operations that normally take milliseconds.
struct ProcessTimeouts {
  Duration start = std::chrono::seconds(20);  ///< until the shim has executed the command
  Duration kill = std::chrono::seconds(20);   ///< until a killed process is gone
};

/// Thread-safe, also for the same id: the state is in the worker's directory.
class ProcessManager {
 public:
  /// Creates the directory. Errors: `invalid_argument` if a path is not absolute or the shim is not a
  /// program, `process_failed` if the directory cannot be created.
  static Result<ProcessManager> open(std::string directory, std::string shim_path,
                                     ProcessTimeouts timeouts = {});

  /// Returns after the command was executed. A generation that was started before is not started again, and
  /// the result is the same. Generations begin at 1 and only grow. Errors: `invalid_argument` as `validate`;
  /// `process_failed` if another generation runs, a later one was started, the command cannot be executed, or
  /// a system call fails; `cancelled`. After the last two the command may run nevertheless; see `status`.
  Result<void> start(std::string_view id, std::uint64_t generation, const ProcessSpec& spec,
                     std::stop_token stop = {}) const;

  /// Reads a few files; does not wait. Error: `process_failed` if they cannot be read.
  Result<ProcessStatus> status(std::string_view id) const;

  /// Sends the signal to the process group, waits for the exit, and kills all processes after the grace
  /// period. When it returns, no process is left and the exit is recorded, unless the shim was killed. No-op
  /// if nothing runs. Errors: `process_failed` if it cannot be killed; `cancelled` if stopped meanwhile,
  /// after the signal was sent.
  Result<void> stop(std::string_view id, Duration grace, std::stop_token stop = {},
                    int signal = SIGTERM) const;

  /// Removes the state and the log of a process. Error: `process_failed` if it runs.
  Result<void> forget(std::string_view id) const;

  /// All ids with a directory, sorted.
  Result<std::vector<std::string>> list() const;

  /// The last lines of output, oldest first; at most 10000, and no more than the last MiB.
  Result<std::vector<LogLine>> tail(std::string_view id, std::size_t lines) const;

 private:
  ProcessManager(Descriptor directory, std::string shim_path, ProcessTimeouts timeouts)
      : directory_(std::make_shared<Descriptor>(std::move(directory))),
        shim_path_(std::move(shim_path)),
        timeouts_(timeouts) {}

  Result<void> end(const ProcessDirectory& place, const DirectoryState& seen, Duration grace,
                   const Waiter& waiter, int signal) const;
  Result<void> kill_remaining(std::string_view id, const DirectoryState& seen) const;

  std::shared_ptr<Descriptor> directory_;
  std::string shim_path_;
  ProcessTimeouts timeouts_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
};

}  // namespace pawl::workers
