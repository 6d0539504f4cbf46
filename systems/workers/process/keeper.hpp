// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Real processes that outlive the server, each started exactly once per generation.
///
///     auto keeper = ProcessKeeper::open("/var/lib/pawl/processes", "/usr/libexec/pawl/pawl-shim").value();
///     keeper.start("plant/pump", 1, {.command = {"pump-driver", "--port", "502"}});
///     keeper.look("plant/pump")->state;                      // running, also after the server was killed
///     keeper.stop("plant/pump", std::chrono::seconds(10), stop);
///     keeper.look("plant/pump")->exit->signal;               // 15
///
/// The keeper itself remembers nothing: what runs is in the lock and the status of each worker's directory,
/// which its shim keeps. Therefore a new keeper knows everything that an earlier one did, and several may
/// race: the lock decides. The caller commits the intent to run a generation before it calls `start`; after a
/// crash it calls `start` again with the same one.
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

class Place;
struct Seen;

/// How long the system is given for what it should do at once.
struct KeeperPatience {
  Duration start = std::chrono::seconds(20);  ///< for the shim to come up and execute the command
  Duration kill = std::chrono::seconds(20);   ///< for a killed process to be gone
};

/// Thread-safe, also for the same id: the directory of the worker is what is shared.
class ProcessKeeper {
 public:
  /// Makes the directory. Errors: `invalid_argument` where one of the paths is not absolute or the shim is
  /// not a program, `process_failed` where the directory cannot be made.
  static Result<ProcessKeeper> open(std::string directory, std::string shim_path,
                                    KeeperPatience patience = {});

  /// Returns when the command is executed. A generation that was started before is not started again,
  /// whatever has become of it, and the answer is the same. Generations begin at 1 and only grow. Errors:
  /// `invalid_argument` as `validate`; `process_failed` where another generation runs or a later one was
  /// started, where the command cannot be executed, and where the system fails; `cancelled`. After the last
  /// two the command may run all the same, which `look` tells.
  Result<void> start(std::string_view id, std::uint64_t generation, const ProcessSpec& spec,
                     std::stop_token stop = {}) const;

  /// Some reads of files, no waiting. Error: `process_failed` where they cannot be read.
  Result<ProcessStatus> look(std::string_view id) const;

  /// Sends the signal to the group, waits for the end, and kills everything after the grace. Nothing is left
  /// of the process when it returns, and how it ended is recorded, unless its shim was killed. Fine for one
  /// that does not run. Errors: `process_failed` where it cannot be killed, `cancelled` where the stop came
  /// first: the signal was sent then.
  Result<void> stop(std::string_view id, Duration grace, std::stop_token stop = {},
                    int signal = SIGTERM) const;

  /// Removes what is kept of one that does not run, its log too. Error: `process_failed` where it runs.
  Result<void> forget(std::string_view id) const;

  /// All ids that have a directory, in their order.
  Result<std::vector<std::string>> list() const;

  /// The last lines of output, oldest first; at most 10000, and no more than the last MiB.
  Result<std::vector<LogLine>> tail(std::string_view id, std::size_t lines) const;

 private:
  ProcessKeeper(Descriptor directory, std::string shim_path, KeeperPatience patience)
      : directory_(std::make_shared<Descriptor>(std::move(directory))),
        shim_path_(std::move(shim_path)),
        patience_(patience) {}

  Result<void> end(const Place& place, const Seen& seen, Duration grace, const Waiter& waiter,
                   int signal) const;
  Result<void> sweep(std::string_view id, const Seen& seen) const;

  std::shared_ptr<Descriptor> directory_;
  std::string shim_path_;
  KeeperPatience patience_;
  std::shared_ptr<ProcessTable> table_ = std::make_shared<ProcessTable>();
};

}  // namespace pawl::workers
