// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A process that keeps running, also while the server does not.
///
///     {"command": ["pump-driver", "--port", "502"], "restart": "on_failure", "give_up_after": 5}
///
/// After a restart of the server a running process goes on, and one that has ended is restarted according to
/// the policy. A process whose specification changes is stopped and started.

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/worker_types.hpp"
#include "workers/process/manager.hpp"
#include "workers/types/restart_record.hpp"

namespace pawl::workers {

enum class RestartPolicy : std::uint8_t { always, on_failure, never };

/// The observed state, without values that change all the time.
struct ProcessObserved {
  std::string process = "absent";  ///< a ProcessState
  int pid = 0;
  std::uint64_t generation = 0;
  bool ordered = false;  ///< this generation belongs to the last start order
  std::optional<int> exit_code{};
  std::optional<int> exit_signal{};
  std::string error{};  ///< why it could not be started
  bool noted = false;   ///< its exit was handled: it may be started again
  std::uint64_t restarts = 0;
  std::uint32_t brief = 0;        ///< consecutive brief runs before this one
  bool lasted = false;            ///< this run was not brief
  std::string specification{};    ///< hash of the one it was started with
  std::uint64_t cpu_percent = 0;  ///< rounded up, coarsely
  std::uint64_t memory_mib = 0;   ///< likewise

  bool is_alive() const { return process == "running" || process == "starting"; }
  bool has_ended() const { return !is_alive() && process != "absent"; }
};

struct ProcessDesired {
  std::vector<std::string> command{};
  std::map<std::string, std::string> environment{};
  bool inherit_environment = false;
  std::string directory = "/";
  RestartPolicy restart = RestartPolicy::always;
  Duration backoff_first = std::chrono::seconds(1);
  Duration backoff_cap = std::chrono::seconds(60);
  std::uint32_t give_up_after = 0;              ///< consecutive brief runs; 0: never
  Duration lasting = std::chrono::seconds(10);  ///< a shorter run is brief
  std::string stop_signal = "TERM";
  Duration stop_grace = std::chrono::seconds(10);
  std::uint64_t log_bytes = std::uint64_t{1} << 20;
  std::uint32_t line_bytes = 8192;
  std::optional<std::uint64_t> open_files{};
  std::optional<std::uint64_t> address_space{};
};

/// Thread-safe.
struct ProcessTools {
  const ProcessManager& manager;
  RestartRecordFile restart_record;
  std::mutex mutex{};
  Time cpu_at{};
  double cpu_seconds = 0;
  std::uint64_t cpu_percent = 0;
  std::uint64_t memory_mib = 0;
};

struct ProcessWorker : Worker<ProcessObserved, ProcessDesired, ProcessTools> {
  static constexpr std::string_view kType = "process";
  static constexpr std::array<std::string_view, 2> kConfidential = {"environment", "command[1:]"};

  struct Stopped : phase::Stopped {};
  struct TryingToStart : phase::Starting {};
  struct Running : phase::Running {};
  struct BackingOff : phase::Degraded {};
  struct Exited : phase::Stopped {};   ///< it ended and is not restarted, by its policy
  struct GaveUp : phase::Degraded {};  ///< it ended too often
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, BackingOff, Exited, GaveUp, TryingToStop>;

  struct Start {
    static Result<void> run(ProcessTools& tools, const ProcessDesired& desired, const ActionContext& context);
  };
  /// Records an exit, so that the next start is not taken for a repetition of the last one.
  struct Note {
    static Result<void> run(ProcessTools& tools, const ProcessDesired& desired, const ActionContext& context);
  };
  /// Stops all processes and resets the count of brief runs.
  struct Stop {
    static constexpr Duration kTimeout = std::chrono::minutes(10);
    static Result<void> run(ProcessTools& tools, const ProcessDesired& desired, const ActionContext& context);
  };

  static Next<Go<TryingToStart>, Do<Stop>> next(Stopped, const Snapshot& now);
  static Next<Go<Running>, Go<BackingOff>, Go<Exited>, Go<GaveUp>, Do<Start>> next(TryingToStart,
                                                                                   const Snapshot& now);
  static Next<Go<BackingOff>, Go<Exited>, Go<GaveUp>, Go<TryingToStop>, Stay> next(Running,
                                                                                   const Snapshot& now);
  static Next<Go<TryingToStart>, Go<Running>, Do<Note>, Stay> next(BackingOff, const Snapshot& now);
  static Next<Go<TryingToStart>, Stay> next(Exited, const Snapshot& now);
  static Next<Go<TryingToStop>, Stay> next(GaveUp, const Snapshot& now);
  static Next<Go<Stopped>, Do<Stop>> next(TryingToStop, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(TryingToStart, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(Running, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(BackingOff, const Snapshot& now);
  static Next<Go<TryingToStop>> stop(GaveUp, const Snapshot& now);

  /// Error: `spec_invalid`.
  static Result<ProcessDesired> derive(ProcessDesired read);
  static Result<ProcessObserved> collect(ProcessTools& tools, const ProcessDesired& desired,
                                         const CollectContext& context);
};

/// The delay after `brief` consecutive brief runs.
Duration backoff_after(const ProcessDesired& desired, std::uint32_t brief);

/// A hash of the specification.
std::string name_specification(const ProcessDesired& desired);
/// A hash of the members that differ from the defaults, so that a release with a new field and a default for
/// it gives the same hash.
std::string name_of_unusual(std::string_view specification, std::string_view usual);

/// The manager must outlive the supervisor. Restart records are stored in the directory.
void add_process(WorkerTypes& types, const ProcessManager& manager, std::string records_directory);
/// Without pawl-shim: every configuration is refused, so that processes are not touched.
void add_process_without_shim(WorkerTypes& types);

}  // namespace pawl::workers
