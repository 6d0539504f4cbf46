// SPDX-License-Identifier: Apache-2.0
// A wall clock that jumps by hours, both ways, while timers, retries and retention run: nobody waits longer
// than was asked for, and what happened a moment ago is neither cut nor forgotten.
#include <algorithm>
#include <map>

#include "pawl/verify.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace clocks {

using namespace std::chrono_literals;

enum class AlarmState { begun, ringing, over };
struct Wind {};
struct Ring {};
struct Lift {};
struct Lifted {};
struct AlarmData {
  int rung = 0;
};
// A timer, then work that fails a few times, then the end.
inline constexpr auto alarm =
    machine<AlarmState, AlarmData>("alarm")
        .initial(AlarmState::begun)
        .stay<Wind>(AlarmState::begun,
                    [](AlarmData&, const Wind&, Effects& effects) { effects.set_timer("ring", 2s, Ring{}); })
        .on<Ring>(AlarmState::begun, AlarmState::ringing,
                  [](AlarmData& data, const Ring&, Effects& effects) {
                    data.rung += 1;
                    effects.work("lift", Lift{});
                  })
        .on<Lifted>(AlarmState::ringing, AlarmState::over)
        .terminal(AlarmState::over);
static_assert(verified<alarm>);

namespace {

constexpr std::uint64_t kCrashes = 6;
constexpr int kTurns = 4;
constexpr Duration kKeep = 10h;
constexpr Duration kPatience = 40s;  // more than a timer and all retries, begun anew by each crash

class ClockWorld : public World {
 public:
  explicit ClockWorld(sim::Simulation& sim) : World(sim, kCrashes) {
    points_ = {"engine.commit", "engine.committed", "engine.answer"};
    start();
  }

  void run_all() {
    for (int turn = 0; turn < kTurns; ++turn) {
      const auto key = fmt::format("a{}", turn);
      opening_of_[key] = openings_;
      add(key, [key] { return Transaction{}.create<alarm>(key); });
      add(key, [key] { return Transaction{}.send<alarm>(key, Wind{}); });
      settle([] { return true; }, "waiting for the answers");
      disturb();
      // The waits begin anew at most where a server does.
      const auto begun = sim_.elapsed();
      settle([&] { return is_over(key); }, "waiting for a timer and retries");
      sim_.require(sim_.elapsed() - begun <= kPatience,
                   fmt::format("{} waited longer than its timer and retries say", key));
      retain();
      check_kept();
    }
    require_sound();
  }

 private:
  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<alarm>();
    made.work<alarm, Lift>("lift",
                           [&process](const WorkContext& context, const Lift&) -> Result<Reply> {
                             (void)process.fault("lift");
                             if (context.attempt < 3) return fail(Code::timed_out, "too heavy");
                             return reply(Lifted{});
                           },
                           {.retry = {.retries = RetryPolicy::kUnlimited,
                                      .first = 1s,
                                      .factor = 1.0,
                                      .cap = 1s,
                                      .jitter = Jitter::none}});
    return made;
  }

  EngineOptions options() override {
    return {.store = "sqlite:clock.db",
            .vfs = disk_.vfs_name(),
            .keep = kKeep,
            .forget_finished = kKeep,
            .retain_every = 1s};
  }

  /// Jumps and restarts while the alarm waits. A new server has a clock of its own: where the one before it
  /// had jumped forth, this one is behind.
  void disturb() {
    for (std::uint64_t left = 1 + sim_.draw(3); left > 0; --left) {
      run(random_time(1500ms));
      const auto hours = static_cast<std::int64_t>(sim_.draw(97)) - 48;
      process_->jump_clock(std::chrono::hours(hours));
      if (chance(3)) restart();
    }
    // The last of the restarts, and what a batch needs to become durable.
    run(10ms);
  }

  bool is_over(const std::string& key) {
    const auto read = engine_->get<alarm>(key);
    sim_.require(read.has_value(), fmt::format("{} is lost or was forgotten at once", key));
    sim_.require(read->data.rung <= 1, "a timer fired twice");
    return read->finished;
  }

  void retain() {
    process_->attempt([this] {
      const auto retained = engine_->retain();
      if (process_->crashed()) return;
      sim_.require(retained.has_value(), retained ? "" : "retention failed: " + retained.error().to_string());
    });
    if (process_->crashed()) restart();
  }

  void opened() override { ++openings_; }

  /// All of this happens within minutes; hours of it are to be kept. Each opening may count half of that, for
  /// the time in which no process measured, so only what has seen at most one is certainly young.
  void check_kept() {
    sim_.require(sim_.elapsed() < kKeep / 2, "the scenario takes longer than what it keeps");
    for (const auto& operation : operations_) {
      if (openings_ - opening_of_[operation.key] > 1) continue;
      const auto history = engine_->history("alarm", operation.key);
      sim_.require(history.has_value(), fmt::format("{} was forgotten within minutes", operation.key));
      sim_.require(!history->truncated,
                   fmt::format("the history of {} was cut within minutes", operation.key));
    }
  }

  int openings_ = 0;
  std::map<std::string, int> opening_of_;  // how many there had been when the alarm was created
};

}  // namespace
}  // namespace clocks

Result<void> clock(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer"})
    sim.arm(point, sim::crash_with_ppm(10'000));
  clocks::ClockWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
