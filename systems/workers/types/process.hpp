// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A process that is kept running, also while the server is not there.
///
///     {"command": ["pump-driver", "--port", "502"], "restart": "on_failure", "give_up_after": 5}
///
/// A server that starts again finds the process as it left it: one that runs goes on, one that has ended
/// meanwhile is restarted as the policy says. A process whose specification changes is stopped and started.

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
#include "workers/process/keeper.hpp"
#include "workers/types/process_notes.hpp"

namespace pawl::workers {

enum class RestartPolicy : std::uint8_t { always, on_failure, never };

/// What is seen of a process, without anything that changes all the time.
struct ProcessObserved {
  std::string process = "absent";  ///< a ProcessState
  int pid = 0;
  std::uint64_t generation = 0;
  bool ordered = false;  ///< that generation is of the last order to start, which may have started nothing
  std::optional<int> exit_code{};
  std::optional<int> exit_signal{};
  std::string error{};  ///< why it could not be started
  bool noted = false;   ///< that it ended was taken note of: it may be started again
  std::uint64_t restarts = 0;
  std::uint32_t brief = 0;        ///< runs in a row that did not last, before this one
  bool lasted = false;            ///< this one did
  std::string specification{};    ///< names the one that it was started with
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
  std::uint32_t give_up_after = 0;              ///< so many brief runs in a row; 0: never
  Duration lasting = std::chrono::seconds(10);  ///< a run that took less is brief
  std::string stop_signal = "TERM";
  Duration stop_grace = std::chrono::seconds(10);
  std::uint64_t log_bytes = std::uint64_t{1} << 20;
  std::uint32_t line_bytes = 8192;
  std::optional<std::uint64_t> open_files{};
  std::optional<std::uint64_t> address_space{};
};

/// Thread-safe.
struct ProcessTools {
  const ProcessKeeper& keeper;
  ProcessNotes notes;
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
  struct Exited : phase::Stopped {};   ///< it is over, as its policy says
  struct GaveUp : phase::Degraded {};  ///< it ended too often
  struct TryingToStop : phase::Stopping {};
  using States = pawl::States<Stopped, TryingToStart, Running, BackingOff, Exited, GaveUp, TryingToStop>;

  struct Start {
    static Result<void> run(ProcessTools& tools, const ProcessDesired& desired, const ActionContext& context);
  };
  /// Takes note of an end, so that another start is not taken for a repetition of the last one.
  struct Note {
    static Result<void> run(ProcessTools& tools, const ProcessDesired& desired, const ActionContext& context);
  };
  /// Nothing is left of it then, and what was brief before is forgiven.
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

/// How long to wait after so many brief runs in a row.
Duration backoff_after(const ProcessDesired& desired, std::uint32_t brief);

/// The same for the same specification.
std::string name_specification(const ProcessDesired& desired);
/// Names an object by those of its members that are not as usual: a release that knows one more, and gives it
/// a default, names everything as the one before did.
std::string name_of_unusual(std::string_view specification, std::string_view usual);

/// The keeper must outlive the supervisor; notes are kept in the directory.
void add_process(WorkerTypes& types, const ProcessKeeper& keeper, std::string notes_directory);
/// Where there is no pawl-shim: no configuration can be used, so that processes are left as they are.
void add_process_without_shim(WorkerTypes& types);

}  // namespace pawl::workers
