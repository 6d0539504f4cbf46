// SPDX-License-Identifier: Apache-2.0
// Keys that are used again after their instances were forgotten, and retention that runs between any two
// commits: messages arrive once each, request ids are never used for other work, the store opens again, and
// those who read meanwhile see no damage.
#include <algorithm>
#include <map>

#include "pawl/verify.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace shop {

using namespace std::chrono_literals;

// Counts what the sales bring.
enum class TillState { open };
struct Take {
  int round = 0;
};
struct TillData {
  std::vector<int> taken;
};
inline constexpr auto till =
    machine<TillState, TillData>("till")
        .initial(TillState::open)
        .stay<Take>(TillState::open,
                    [](TillData& data, const Take& take) { data.taken.push_back(take.round); })
        .endless();
static_assert(verified<till>);

// Sells once and ends: at once, or when its work has run.
enum class SaleState { begun, ringing, sold };
struct SellNow {
  std::string till;
  int round = 0;
};
struct Sell {
  std::string till;
  int round = 0;
};
struct Ring {
  int round = 0;
};
struct Rung {
  int round = 0;
};
struct SaleData {
  std::string till;
  int round = 0;
};
inline constexpr auto sale = machine<SaleState, SaleData>("sale")
                                 .initial(SaleState::begun)
                                 .on<SellNow>(SaleState::begun, SaleState::sold,
                                              [](SaleData&, const SellNow& sell, Effects& effects) {
                                                effects.send<till>(sell.till, Take{sell.round});
                                              })
                                 .on<Sell>(SaleState::begun, SaleState::ringing,
                                           [](SaleData& data, const Sell& sell, Effects& effects) {
                                             data = {sell.till, sell.round};
                                             effects.work("ring", Ring{sell.round});
                                           })
                                 .on<Rung>(SaleState::ringing, SaleState::sold,
                                           [](SaleData& data, const Rung& rung, Effects& effects) {
                                             effects.send<till>(data.till, Take{rung.round});
                                           })
                                 .terminal(SaleState::sold);
static_assert(verified<sale>);

namespace {

constexpr std::uint64_t kCrashes = 4;
constexpr int kTurns = 4;
constexpr std::size_t kSales = 4;
constexpr Duration kLong = 1h;

/// One whose retention may fail at each of its steps; then nothing of the step has happened.
class FailingRetention final : public test::StoreAround {
 public:
  FailingRetention(std::unique_ptr<Store> inside, sim::Process& process)
      : StoreAround(std::move(inside)), process_(process) {}

  Result<void> forget(std::span<const InstanceId> ids) override {
    if (process_.fault("store.forget")) return lost();
    return inside_->forget(ids);
  }
  Result<bool> retain(Seq horizon) override {
    if (process_.fault("store.retain")) return lost();
    return inside_->retain(horizon);
  }
  Result<Seq> seq_before(Time time) override {
    if (process_.fault("store.seq_before")) return lost();
    return inside_->seq_before(time);
  }

 private:
  static std::unexpected<Error> lost() { return fail(Code::rolled_back, "the connection was lost"); }

  sim::Process& process_;
};

class ReuseWorld : public World {
 public:
  explicit ReuseWorld(sim::Simulation& sim)
      : World(sim, kCrashes), forget_(chance(2) ? Duration(kLong) : Duration(20ms)), keep_(chance(3)) {
    points_ = {"engine.commit", "engine.committed", "engine.answer", "work"};
    start();
    for (const char* key : {"left", "right"}) {
      add(key, [key] { return Transaction{}.create<till>(key); });
    }
    settle([] { return true; }, "waiting for the tills");
  }

  void run_all() {
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::uint64_t left = 2 + sim_.draw(4); left > 0; --left) {
        sell();
        wander();
        if (chance(3)) retain();
      }
      settle([this] { return compare(); }, "waiting until every sale is told to its till");
      pass_time();
      require_sound();
    }
  }

 private:
  struct Round {
    std::size_t operation = 0;
    std::string till;
  };

  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<till>().add<sale>();
    made.work<sale, Ring>("ring",
                          [this, &process](const WorkContext& context, const Ring& ring) -> Result<Reply> {
                            const auto [used, first] = ids_.emplace(context.request_id(), ring.round);
                            sim_.require(first || used->second == ring.round,
                                         fmt::format("the request id {} is used for rounds {} and {}",
                                                     context.request_id(), used->second, ring.round));
                            if (process.fault("work")) return fail(Code::timed_out, "try again");
                            return reply(Rung{ring.round});
                          },
                          {.retry = {.retries = RetryPolicy::kUnlimited, .first = 5ms, .cap = 50ms}});
    return made;
  }

  EngineOptions options() override {
    return {.store = "sqlite:reuse.db",
            .vfs = disk_.vfs_name(),
            .batch = chance(2) ? 1 + sim_.draw(3) : 64,
            .cache_bytes = chance(2) ? std::size_t{10} : std::size_t{10000},
            .keep = keep_ ? std::optional<Duration>(kLong) : std::nullopt,
            .forget_finished = forget_,
            .retain_every = forget_ == kLong ? Duration(10min) : Duration(5ms)};
  }

  Result<std::unique_ptr<Store>> open(Runtime& runtime, const EngineOptions& options) override {
    PAWL_TRY(auto inside, open_store(runtime, options));
    return std::make_unique<FailingRetention>(std::move(inside), *process_);
  }

  /// A sale under one of a few keys: refused where the one before is not forgotten yet.
  void sell() {
    const auto key = fmt::format("s{}", sim_.draw(kSales));
    const auto to = chance(6) ? std::string("nobody") : std::string(chance(2) ? "left" : "right");
    const int round = ++last_round_;
    add(key, [key] { return Transaction{}.create<sale>(key); });
    std::size_t number = 0;
    if (chance(2)) {
      number = add(key, [=] { return Transaction{}.send<sale>(key, SellNow{to, round}); });
    } else {
      number = add(key, [=] { return Transaction{}.send<sale>(key, Sell{to, round}); });
    }
    rounds_[round] = {number, to};
  }

  /// Some steps, and a reader between any two of them.
  void wander() {
    for (std::uint64_t steps = sim_.draw(30); steps > 0 && !process_->crashed(); --steps) {
      sim_.step();
      if (chance(3)) read();
    }
    run(random_time(30ms));
  }

  void read() {
    if (process_->crashed()) return;
    const auto page = engine_->list({.machine = "sale"});
    sim_.require(page.has_value(), page ? "" : "a list failed: " + page.error().to_string());
    const auto key = fmt::format("s{}", sim_.draw(kSales));
    const auto found = engine_->read("sale", key);
    sim_.require(found || found.error().code() == Code::unknown_instance,
                 found ? "" : "a read failed: " + found.error().to_string());
    const auto history = engine_->history("sale", key);
    sim_.require(history || history.error().code() == Code::unknown_instance,
                 history ? "" : "a history failed: " + history.error().to_string());
  }

  void retain() {
    process_->attempt([this] {
      const auto retained = engine_->retain();
      if (process_->crashed()) return;
      sim_.require(retained || retained.error().code() == Code::rolled_back,
                   retained ? "" : "retention failed: " + retained.error().to_string());
    });
    if (process_->crashed()) restart();
  }

  /// Time in which finished sales are forgotten; sometimes the server ends in it.
  void pass_time() {
    if (chance(2)) run(2 * forget_ + random_time(10ms));
    if (chance(2)) restart();
    settle([] { return true; }, "waiting for the server");
    retain();
    if (chance(3)) restart();
    settle([] { return true; }, "waiting for the server");
  }

  /// The plain model: a round is in its till once if its sale was accepted, else never.
  bool compare() {
    for (const char* name : {"left", "right"}) {
      const auto found = engine_->get<till>(name);
      sim_.require(found.has_value(), "a till is lost");
      for (const auto& [round, sold] : rounds_) {
        const bool expected = sold.till == name && !operations_[sold.operation].refused;
        const auto times = std::ranges::count(found->data.taken, round);
        sim_.require(times <= (expected ? 1 : 0),
                     fmt::format("round {} is {} times in till {}", round, times, name));
        if (expected && times == 0) return false;
      }
    }
    return true;
  }

  const Duration forget_;
  const bool keep_;
  int last_round_ = 0;
  std::map<int, Round> rounds_;
  std::map<std::string, int> ids_;
};

}  // namespace
}  // namespace shop

Result<void> reuse(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer"})
    sim.arm(point, sim::crash_with_ppm(10'000));
  sim.arm("work", sim::fail_with_ppm(150'000));
  sim.arm("work", sim::crash_with_ppm(10'000));
  for (const char* point : {"store.forget", "store.retain", "store.seq_before"})
    sim.arm(point, sim::fail_with_ppm(50'000));
  shop::ReuseWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
