// SPDX-License-Identifier: Apache-2.0
// A store of which any read and any write of the lane may fail, in every way it is allowed to: no message, no
// timer, no result and no permit is lost by that, and nothing is refused for another reason than its
// machine's.
#include <algorithm>
#include <map>

#include "pawl/verify.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace errands {

using namespace std::chrono_literals;

enum class BoxState { open };
struct Receive {
  int id = 0;
};
struct BoxData {
  std::vector<int> received;
};
inline constexpr auto box =
    machine<BoxState, BoxData>("box")
        .initial(BoxState::open)
        .stay<Receive>(BoxState::open,
                       [](BoxData& data, const Receive& receive) { data.received.push_back(receive.id); })
        .endless();
static_assert(verified<box>);

// Work, then a timer, then two messages: one is taken, the other one is refused by its receiver, which has
// begun already.
enum class ErrandState { begun, working, waiting, told, failed };
struct Go {
  int id = 0;
};
struct Walk {
  int id = 0;
};
struct Arrived {
  int id = 0;
};
struct Lost {
  std::string reason;
};
struct Rested {
  int id = 0;
};
struct ErrandData {
  int id = 0;
};
inline constexpr auto errand = machine<ErrandState, ErrandData>("errand")
                                   .initial(ErrandState::begun)
                                   .on<Go>(ErrandState::begun, ErrandState::working,
                                           [](ErrandData& data, const Go& go, Effects& effects) {
                                             data.id = go.id;
                                             effects.work("walk", Walk{go.id});
                                           })
                                   .on<Arrived>(ErrandState::working, ErrandState::waiting,
                                                [](ErrandData&, const Arrived& arrived, Effects& effects) {
                                                  effects.set_timer("rest", 20ms, Rested{arrived.id});
                                                })
                                   .on<Lost>(ErrandState::working, ErrandState::failed)
                                   .on<Rested>(ErrandState::waiting, ErrandState::told,
                                               [](ErrandData&, const Rested& rested, Effects& effects) {
                                                 effects.send<box>("box", Receive{rested.id});
                                                 effects.send({.machine = "errand",
                                                               .key = std::string(effects.key()),
                                                               .event = "Go",
                                                               .payload = "{\"id\":0}"});
                                               })
                                   .terminal(ErrandState::told, ErrandState::failed);
static_assert(verified<errand>);

namespace {

constexpr std::uint64_t kCrashes = 4;
constexpr int kErrands = 5;
constexpr int kFaults = 60;  // then the store works, so that the run ends

/// What the scenario and its stores share.
struct Health {
  bool calm = true;       // nothing fails: the scenario itself is reading, or the store is being opened
  bool poisoned = false;  // the present store takes nothing any more
  int faults = 0;
};

class FaultyStore final : public test::StoreAround {
 public:
  FaultyStore(std::unique_ptr<Store> inside, sim::Process& process, Health& health)
      : StoreAround(std::move(inside)), process_(process), health_(health) {}

  Result<Seq> apply(const Write& write) override {
    PAWL_CHECK(may_write("store.apply", false));
    return inside_->apply(write);
  }
  Result<void> put(std::span<const Ephemeral> values) override {
    PAWL_CHECK(may_write("store.put", false));
    return inside_->put(values);
  }
  Result<void> commit() override {
    PAWL_CHECK(may_write("store.commit", true));
    return inside_->commit();
  }
  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override {
    PAWL_CHECK(may_read("store.head_entry"));
    return inside_->head_entry(id, seq);
  }
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) override {
    PAWL_CHECK(may_read("store.find_request"));
    return inside_->find_request(id);
  }
  Result<Seq> seq_before(Time time) override {
    PAWL_CHECK(may_read("store.seq_before"));
    return inside_->seq_before(time);
  }
  Result<bool> retain(Seq horizon) override {
    PAWL_CHECK(may_write("store.retain", false));
    return inside_->retain(horizon);
  }

 private:
  bool strikes(std::string_view point) {
    if (health_.calm || !process_.fault(point) || health_.faults >= kFaults) return false;
    ++health_.faults;
    return true;
  }

  /// A read fails for a moment: the disk, or the connection.
  Result<void> may_read(std::string_view point) {
    if (!strikes(point)) return {};
    switch (process_.random() % 3) {
      case 0:
        return fail(Code::store_io, "a read failed for a moment");
      case 1:
        return fail(Code::store_fenced, "the lease has run out while reading");
      default:
        return fail(Code::rolled_back, "the connection was lost while reading");
    }
  }

  /// As `Store::apply` and `Store::commit` say: the batch is gone, and the store goes on or is poisoned.
  Result<void> may_write(std::string_view point, bool commits) {
    if (health_.poisoned) return fail(Code::store_poisoned, "the store has failed");
    if (!strikes(point)) return {};
    const auto kind = process_.random() % 6;
    if (kind == 0) {
      // Whether the batch is durable shows when the store is opened again.
      if (!commits || process_.random() % 2 == 0) {
        inside_->discard();
      } else {
        PAWL_CHECK(inside_->commit());
      }
      health_.poisoned = true;
      return fail(Code::store_io, "the disk failed");
    }
    inside_->discard();
    if (kind == 1) {
      health_.poisoned = true;
      return fail(Code::store_fenced, "another owner has taken over");
    }
    if (kind % 2 == 0) return fail(Code::disk_full, "no space is left");
    return fail(Code::rolled_back, "the connection was lost");
  }

  sim::Process& process_;
  Health& health_;
};

class FaultsWorld : public World {
 public:
  explicit FaultsWorld(sim::Simulation& sim) : World(sim, kCrashes) {
    points_ = {"engine.commit", "engine.committed", "engine.answer", "walk"};
    start();
  }

  void run_all() {
    add("box", [] { return Transaction{}.create<box>("box"); });
    for (int id = 1; id <= kErrands; ++id) {
      const auto key = fmt::format("e{}", id);
      add(key, [key] { return Transaction{}.create<errand>(key); });
    }
    // Else one that was rolled back would be sent again behind the event for it.
    settle([] { return true; }, "waiting for the errands");
    for (int id = 1; id <= kErrands; ++id) {
      const auto key = fmt::format("e{}", id);
      add(key, [key, id] { return Transaction{}.send<errand>(key, Go{id}); });
      if (chance(2)) run(random_time(30ms));
    }
    settle([this] { return told(); }, "waiting until every errand is told");
    health_.calm = true;
    for (int id = 1; id <= kErrands; ++id) check_errand(id);
    for (const auto& pool : engine_->pools()) {
      sim_.require(pool.granted == 0 && pool.waiting == 0,
                   fmt::format("pool {} keeps {} permits for nobody", pool.name, pool.granted));
    }
    require_sound();
  }

 private:
  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<box>().add<errand>();
    made.work<errand, Walk>(
        "walk",
        [&process](const WorkContext&, const Walk& walk) -> Result<Reply> {
          (void)process.fault("walk");
          return reply(Arrived{walk.id});
        },
        {.retry = kNever, .pool = "path", .failed = on_failure<Lost>(), .again_after_crash = 1000});
    return made;
  }

  EngineOptions options() override {
    health_.calm = true;
    return {.store = "sqlite:faults.db",
            .vfs = disk_.vfs_name(),
            .work_threads = 1 + sim_.draw(2),
            .batch = chance(2) ? 1 + sim_.draw(3) : 64,
            .cache_bytes = chance(3) ? std::size_t{10000} : std::size_t{1},
            .pools = {{"path", 1}},
            .keep = 1h,
            .retain_every = 10ms};
  }

  Result<std::unique_ptr<Store>> open(Runtime& runtime, const EngineOptions& options) override {
    PAWL_TRY(auto inside, open_store(runtime, options));
    health_.poisoned = false;
    return std::make_unique<FaultyStore>(std::move(inside), *process_, health_);
  }

  void opened() override { health_.calm = false; }
  void check_heads() override {
    health_.calm = true;
    World::check_heads();
    health_.calm = false;
  }
  bool is_useless() const override { return health_.poisoned; }

  /// The plain model: every errand is told to the box once, and nothing else is.
  bool told() {
    health_.calm = true;
    const auto found = engine_->get<box>("box");
    sim_.require(found.has_value(), "the box is lost");
    bool all = true;
    for (int id = 1; id <= kErrands; ++id) {
      const auto times = std::ranges::count(found->data.received, id);
      sim_.require(times <= 1, fmt::format("errand {} was told {} times", id, times));
      const auto read = engine_->read("errand", fmt::format("e{}", id));
      sim_.require(read.has_value(), "an errand is lost");
      sim_.require(read->state != "failed", "work failed although its handler did not");
      all = all && times == 1 && acknowledged(read->key) == 2;
    }
    health_.calm = false;
    return all;
  }

  /// How many of its messages are settled; none is refused because the store failed.
  int acknowledged(const std::string& key) {
    const auto history = engine_->history("errand", key);
    sim_.require(history.has_value(), "a history is lost");
    int settled = 0;
    for (const auto& event : history->events) {
      // The codes of the store are those from 3000 on.
      sim_.require(event.payload.find("PAWL-3") == std::string::npos,
                   fmt::format("a fault of the store became a decision: {} {} {}", event.kind, event.event,
                               event.payload));
      settled += event.kind == "message" ? 1 : 0;
    }
    return settled;
  }

  void check_errand(int id) {
    const auto history = engine_->history("errand", fmt::format("e{}", id));
    const auto count = [&](std::string_view kind, std::string_view text) {
      return std::ranges::count_if(history->events, [&](const LogEvent& event) {
        return event.kind == kind && event.payload.find(text) != std::string::npos;
      });
    };
    sim_.require(count("message", "\"delivered\":true") == 1, "a message is not acknowledged once");
    sim_.require(count("message", "PAWL-1") == 1, "a refusal does not name its machine's reason");
    sim_.require(count("timer", "") == 0, "a timer was refused");
  }

  Health health_;
};

}  // namespace
}  // namespace errands

Result<void> faults(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer", "walk"})
    sim.arm(point, sim::crash_with_ppm(5'000));
  for (const char* point : {"store.apply", "store.put", "store.commit", "store.head_entry",
                            "store.find_request", "store.seq_before", "store.retain"})
    sim.arm(point, sim::fail_with_ppm(80'000));
  errands::FaultsWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
