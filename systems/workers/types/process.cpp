// SPDX-License-Identifier: Apache-2.0
#include "workers/types/process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <map>

#include "pawl/json.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMostGrace = 5min;
constexpr Duration kCpuWindow = 10s;

struct SignalName {
  std::string_view name;
  int number;
};
constexpr auto kSignals = std::to_array<SignalName>({{"TERM", SIGTERM},
                                                     {"INT", SIGINT},
                                                     {"HUP", SIGHUP},
                                                     {"QUIT", SIGQUIT},
                                                     {"USR1", SIGUSR1},
                                                     {"USR2", SIGUSR2},
                                                     {"KILL", SIGKILL}});

ProcessSpec spec_of(const ProcessDesired& desired) {
  return {.command = desired.command,
          .environment = desired.environment,
          .inherit_environment = desired.inherit_environment,
          .directory = desired.directory,
          .log_bytes = desired.log_bytes,
          .line_bytes = desired.line_bytes,
          .open_files = desired.open_files,
          .address_space = desired.address_space};
}

bool has_ended(ProcessState state) {
  return state == ProcessState::exited || state == ProcessState::failed_to_start ||
         state == ProcessState::lost;
}

bool has_lasted(const ProcessStatus& status, const ProcessDesired& desired) {
  return status.exit && status.exit->at - status.started_at >= desired.lasting;
}

bool is_current(const ProcessWorker::Snapshot& now) {
  return now.observed.specification == name_specification(now.desired);
}

/// How it ended, as a text.
std::string ending(const ProcessObserved& seen) {
  if (seen.process == "failed_to_start") return fmt::format("it could not be started: {}", seen.error);
  if (seen.exit_code) return fmt::format("it ended with exit code {}", *seen.exit_code);
  if (seen.exit_signal) return fmt::format("it was ended by signal {}", *seen.exit_signal);
  return "it has ended, and its exit status is unknown";
}

/// What to do after a process has ended by itself.
struct After {
  enum class Kind : std::uint8_t { back_off, exited, gave_up };
  Kind kind = Kind::back_off;
  std::string reason{};
};

After after_end(const ProcessWorker::Snapshot& now) {
  const auto& seen = now.observed;
  const bool well = seen.exit_code == 0;
  const bool again = now.desired.restart == RestartPolicy::always ||
                     (now.desired.restart == RestartPolicy::on_failure && !well);
  if (!again) {
    return {After::Kind::exited,
            fmt::format("{}; restart: {}", ending(seen), enum_name(now.desired.restart))};
  }
  const auto brief = seen.lasted ? 0 : seen.brief + 1;
  if (now.desired.give_up_after > 0 && brief >= now.desired.give_up_after) {
    return {After::Kind::gave_up, fmt::format("{}; {} brief runs in a row", ending(seen), brief)};
  }
  return {After::Kind::back_off, ending(seen)};
}

template <class Answer>
Answer go_after_end(const ProcessWorker::Snapshot& now) {
  auto after = after_end(now);
  switch (after.kind) {
    case After::Kind::exited:
      return Go<ProcessWorker::Exited>{std::move(after.reason)};
    case After::Kind::gave_up:
      return Go<ProcessWorker::GaveUp>{std::move(after.reason)};
    case After::Kind::back_off:
      break;
  }
  return Go<ProcessWorker::BackingOff>{std::move(after.reason)};
}

/// The next power of two, with hysteresis, so that small changes are not stored.
std::uint64_t coarse(double value, std::uint64_t before) {
  if (value < 0.5) return 0;
  if (before > 0 && value <= static_cast<double>(before) && value > 0.4 * static_cast<double>(before))
    return before;
  return static_cast<std::uint64_t>(std::exp2(std::ceil(std::log2(std::max(1.0, value)))));
}

void measure(ProcessTools& tools, const ProcessStatus& status, Time now) {
  constexpr double kMiB = 1024.0 * 1024.0;
  const std::lock_guard lock(tools.mutex);
  tools.memory_mib = coarse(static_cast<double>(status.memory_bytes) / kMiB, tools.memory_mib);
  const auto passed = now - tools.cpu_at;
  if (passed < kCpuWindow && status.cpu_seconds >= tools.cpu_seconds) return;
  const auto seconds = std::chrono::duration<double>(passed).count();
  const auto used = status.cpu_seconds - tools.cpu_seconds;
  const bool known = tools.cpu_at != Time{} && used >= 0 && seconds > 0;
  tools.cpu_percent = known ? coarse(100 * used / seconds, tools.cpu_percent) : 0;
  tools.cpu_at = now;
  tools.cpu_seconds = status.cpu_seconds;
}

/// Stable over machines and releases, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;  // FNV-1a
  constexpr std::uint64_t kPrime = 0x100000001b3;
  std::uint64_t hash = kOffset;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return hash;
}

}  // namespace

Duration backoff_after(const ProcessDesired& desired, std::uint32_t brief) {
  auto delay = desired.backoff_first;
  for (std::uint32_t i = 1; i < brief && delay < desired.backoff_cap; ++i) delay *= 2;
  return std::min(delay, desired.backoff_cap);
}

std::string name_specification(const ProcessDesired& desired) {
  ProcessDesired relevant = desired;
  // These fields do not affect a running process.
  const ProcessDesired usual;
  relevant.restart = usual.restart;
  relevant.backoff_first = usual.backoff_first;
  relevant.backoff_cap = usual.backoff_cap;
  relevant.lasting = usual.lasting;
  relevant.stop_grace = usual.stop_grace;
  relevant.give_up_after = usual.give_up_after;
  relevant.stop_signal = usual.stop_signal;
  return name_of_unusual(encode(relevant).value_or("{}"), encode(usual).value_or("{}"));
}

std::string name_of_unusual(std::string_view specification, std::string_view usual) {
  const auto wanted = JsonDocument::parse(specification);
  const auto known = JsonDocument::parse(usual);
  std::map<std::string, std::string> unusual;
  const auto size = wanted && known ? wanted->root().size() : 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::string key(wanted->root().key_at(i));
    auto text = wanted->root().at(i).to_text();
    const auto same = known->root().find(key);
    if (!same || same->to_text() != text) unusual.emplace(key, std::move(text));
  }
  return fmt::format("{:016x}", hash_of(encode(unusual).value_or("")));
}

Result<void> ProcessWorker::Start::run(ProcessTools& tools, const ProcessDesired& desired,
                                       const ActionContext& context) {
  std::uint64_t generation = 0;
  {
    PAWL_TRY(const auto status, tools.manager.status(context.identity.path));
    const std::lock_guard lock(tools.mutex);
    PAWL_TRY(generation, tools.restart_record.record_start(static_cast<std::uint64_t>(context.number),
                                                           status.generation, name_specification(desired)));
  }
  return tools.manager.start(context.identity.path, generation, spec_of(desired), context.stop);
}

Result<void> ProcessWorker::Note::run(ProcessTools& tools, const ProcessDesired& desired,
                                      const ActionContext& context) {
  PAWL_TRY(const auto status, tools.manager.status(context.identity.path));
  if (!has_ended(status.state)) return {};
  const std::lock_guard lock(tools.mutex);
  return tools.restart_record.record_exit(status.generation, !has_lasted(status, desired));
}

Result<void> ProcessWorker::Stop::run(ProcessTools& tools, const ProcessDesired& desired,
                                      const ActionContext& context) {
  const auto* const signal = std::ranges::find(kSignals, desired.stop_signal, &SignalName::name);
  PAWL_CHECK(tools.manager.stop(context.identity.path, desired.stop_grace, context.stop,
                                signal == kSignals.end() ? SIGTERM : signal->number));
  PAWL_TRY(const auto status, tools.manager.status(context.identity.path));
  const std::lock_guard lock(tools.mutex);
  return tools.restart_record.record_stop(status.generation);
}

Next<Go<ProcessWorker::TryingToStart>, Do<ProcessWorker::Stop>> ProcessWorker::next(Stopped,
                                                                                    const Snapshot& now) {
  if (now.observed.is_alive()) return Do<Stop>{"an earlier process is still there"};
  if (now.observed.has_ended() && !now.observed.noted)
    return Do<Stop>{"an earlier process has to be cleaned up"};
  return Go<TryingToStart>{"it should run"};
}

Next<Go<ProcessWorker::Running>, Go<ProcessWorker::BackingOff>, Go<ProcessWorker::Exited>,
     Go<ProcessWorker::GaveUp>, Do<ProcessWorker::Start>>
ProcessWorker::next(TryingToStart, const Snapshot& now) {
  using Answer = Next<Go<Running>, Go<BackingOff>, Go<Exited>, Go<GaveUp>, Do<Start>>;
  const auto& seen = now.observed;
  if (seen.process == "running") return Go<Running>{fmt::format("it runs as process {}", seen.pid)};
  // Ignore the result of an earlier order: this one may have started nothing.
  if (seen.has_ended() && !seen.noted && seen.ordered && is_current(now)) return go_after_end<Answer>(now);
  return Do<Start>{"it does not run yet"};
}

Next<Go<ProcessWorker::BackingOff>, Go<ProcessWorker::Exited>, Go<ProcessWorker::GaveUp>,
     Go<ProcessWorker::TryingToStop>, Stay>
ProcessWorker::next(Running, const Snapshot& now) {
  using Answer = Next<Go<BackingOff>, Go<Exited>, Go<GaveUp>, Go<TryingToStop>, Stay>;
  const auto& seen = now.observed;
  if (!seen.is_alive()) return go_after_end<Answer>(now);
  if (!is_current(now)) return Go<TryingToStop>{"its specification has changed"};
  return Stay{fmt::format("it runs as process {}", seen.pid)};
}

Next<Go<ProcessWorker::TryingToStart>, Go<ProcessWorker::Running>, Do<ProcessWorker::Note>, Stay>
ProcessWorker::next(BackingOff, const Snapshot& now) {
  const auto& seen = now.observed;
  if (seen.process == "running") return Go<Running>{fmt::format("it runs as process {}", seen.pid)};
  if (seen.has_ended() && !seen.noted) return Do<Note>{ending(seen)};
  const auto delay = backoff_after(now.desired, seen.brief);
  if (now.in_state >= delay || !is_current(now)) return Go<TryingToStart>{"it is started again"};
  return Stay{.reason = fmt::format("{}; started again {} after that", ending(seen), to_string(delay)),
              .again = delay - now.in_state};
}

Next<Go<ProcessWorker::TryingToStart>, Stay> ProcessWorker::next(Exited, const Snapshot& now) {
  if (!is_current(now)) return Go<TryingToStart>{"its specification has changed"};
  return Stay{after_end(now).reason};
}

Next<Go<ProcessWorker::TryingToStop>, Stay> ProcessWorker::next(GaveUp, const Snapshot& now) {
  if (!is_current(now)) return Go<TryingToStop>{"its specification has changed"};
  return Stay{after_end(now).reason};
}

Next<Go<ProcessWorker::Stopped>, Do<ProcessWorker::Stop>> ProcessWorker::next(TryingToStop,
                                                                              const Snapshot& now) {
  if (now.observed.is_alive()) return Do<Stop>{fmt::format("process {} is still there", now.observed.pid)};
  if (now.observed.has_ended() && !now.observed.noted)
    return Do<Stop>{"its remaining processes have to be cleaned up"};
  return Go<Stopped>{"it is stopped"};
}

Next<Go<ProcessWorker::TryingToStop>> ProcessWorker::stop(TryingToStart, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it starts"};
}
Next<Go<ProcessWorker::TryingToStop>> ProcessWorker::stop(Running, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop"};
}
Next<Go<ProcessWorker::TryingToStop>> ProcessWorker::stop(BackingOff, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop while it backs off"};
}
Next<Go<ProcessWorker::TryingToStop>> ProcessWorker::stop(GaveUp, const Snapshot&) {
  return Go<TryingToStop>{"it has to stop after it gave up"};
}

Result<ProcessDesired> ProcessWorker::derive(ProcessDesired read) {
  const auto refuse = [](std::string_view field, std::string_view what) {
    return fail(Code::spec_invalid, fmt::format("{}: {}", field, what), {{"field", std::string(field)}});
  };
  // Must be pure: whether the program exists is checked when it is started.
  if (read.command.empty() || read.command.front().empty()) {
    return refuse("command", R"(expected the program and its arguments, such as ["/bin/sleep", "60"])");
  }
  if (!read.directory.starts_with('/')) return refuse("directory", "expected an absolute path");
  if (std::ranges::find(kSignals, read.stop_signal, &SignalName::name) == kSignals.end()) {
    return refuse("stop_signal", "expected one of TERM, INT, HUP, QUIT, USR1, USR2, KILL");
  }
  if (read.stop_grace < Duration::zero() || read.stop_grace > kMostGrace) {
    return refuse("stop_grace", "expected a duration of at most 5m");
  }
  if (read.backoff_first <= Duration::zero() || read.backoff_cap < read.backoff_first) {
    return refuse("backoff_cap", "expected a duration that is not shorter than backoff_first, above zero");
  }
  return read;
}

Result<ProcessObserved> ProcessWorker::collect(ProcessTools& tools, const ProcessDesired& desired,
                                               const CollectContext& context) {
  PAWL_TRY(const auto status, tools.manager.status(context.identity.path));
  measure(tools, status, context.now);
  const std::lock_guard lock(tools.mutex);
  PAWL_TRY(const auto note, tools.restart_record.read());
  ProcessObserved seen{.process = std::string(name(status.state)),
                       .pid = status.pid,
                       .generation = status.generation,
                       .ordered = status.generation == note.started,
                       .error = status.error,
                       .noted = status.generation <= note.ended,
                       .restarts = note.restarts,
                       .brief = note.brief,
                       .lasted = has_lasted(status, desired),
                       .specification = note.specification,
                       .cpu_percent = tools.cpu_percent,
                       .memory_mib = tools.memory_mib};
  if (status.exit) {
    seen.exit_code = status.exit->code;
    seen.exit_signal = status.exit->signal;
  }
  return seen;
}

void add_process(WorkerTypes& types, const ProcessManager& manager, std::string records_directory) {
  types.add<ProcessWorker>([&manager, records = std::move(records_directory)](const WorkerIdentity& who) {
    return std::shared_ptr<ProcessTools>(
        new ProcessTools{.manager = manager, .restart_record = {records, who.path}});
  });
}

void add_process_without_shim(WorkerTypes& types) {
  auto type = define_worker<ProcessWorker>([](const WorkerIdentity& who) -> Result<std::shared_ptr<void>> {
    return fail(Code::spec_invalid, fmt::format("{}: there is no pawl-shim", who.path));
  });
  type.derive = [](std::string_view) -> Result<std::shared_ptr<const void>> {
    return fail(Code::spec_invalid, "processes need pawl-shim, which was not found: set workers.shim");
  };
  types.add(std::move(type));
}

}  // namespace pawl::workers
