// SPDX-License-Identifier: Apache-2.0
// An owner whose lease runs out and comes back, or that another owner replaces while callers wait for states,
// for entries and for work: everybody is answered, what runs is asked to stop, nothing happens twice. Some of
// the entries are as large as entries may be.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "pawl/verify.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace ownerships {

using namespace std::chrono_literals;

enum class LedgerState { open };
struct Note {
  int id = 0;
};
struct LedgerData {
  std::vector<int> noted;
};
inline constexpr auto ledger =
    machine<LedgerState, LedgerData>("ledger")
        .initial(LedgerState::open)
        .stay<Note>(LedgerState::open,
                    [](LedgerData& data, const Note& note) { data.noted.push_back(note.id); })
        .endless();
static_assert(verified<ledger>);

// A trip: a message that nobody takes, work here, work that is claimed, a timer, a message. From the first
// event to the end of the work its data has the size that it was told.
enum class TripState { planned, walking, carrying, resting, ended };
struct Begin {
  int id = 0;
  std::size_t size = 0;
};
struct Walk {};
struct Walked {};
struct Carry {};
struct Carried {};
struct Rested {};
struct TripData {
  int id = 0;
  std::string luggage;
};
inline constexpr auto trip = machine<TripState, TripData>("trip")
                                 .initial(TripState::planned)
                                 .on<Begin>(TripState::planned, TripState::walking,
                                            [](TripData& data, const Begin& begin, Effects& effects) {
                                              data = {begin.id, std::string(begin.size, 'x')};
                                              effects.send<ledger>("nowhere", Note{begin.id});
                                              effects.work("walk", Walk{});
                                            })
                                 .on<Walked>(TripState::walking, TripState::carrying,
                                             [](TripData& data, const Walked&, Effects& effects) {
                                               data.luggage.clear();
                                               effects.work("carry", Carry{});
                                             })
                                 .on<Carried>(TripState::carrying, TripState::resting,
                                              [](TripData&, const Carried&, Effects& effects) {
                                                effects.set_timer("rest", 300ms, Rested{});
                                              })
                                 .on<Rested>(TripState::resting, TripState::ended,
                                             [](TripData& data, const Rested&, Effects& effects) {
                                               effects.send<ledger>("ledger", Note{data.id});
                                             })
                                 .terminal(TripState::ended);
static_assert(verified<trip>);

namespace {

constexpr std::uint64_t kCrashes = 3;
constexpr std::uint64_t kTakeovers = 3;
constexpr int kTurns = 3;
constexpr std::size_t kEntryBytes = 4096;
// Within it a former owner has told everybody: more than its longest pause.
constexpr Duration kPatience = 40s;

/// One that does nothing any more once another owner has taken over.
class OwnedStore final : public test::StoreAround {
 public:
  /// `fence` says before each commit whether another owner takes over at this moment.
  OwnedStore(std::unique_ptr<Store> inside, std::shared_ptr<test::LeaseFate> fate,
             std::function<bool()> fence)
      : StoreAround(std::move(inside)), fate_(std::move(fate)), fence_(std::move(fence)) {}

  bool is_leased() const override { return true; }
  bool has_ended() const override { return fate_->ended; }
  Result<void> still_owner() const override {
    if (fate_->ended) return replaced();
    if (fate_->lapsed) return fail(Code::store_fenced, "the lease has run out");
    return {};
  }
  Result<Seq> apply(const Write& write) override {
    if (fate_->ended) return replaced();
    return inside_->apply(write);
  }
  Result<void> put(std::span<const Ephemeral> values) override {
    if (fate_->ended) return replaced();
    return inside_->put(values);
  }
  Result<void> commit() override {
    if (!fate_->ended && fence_()) {
      inside_->discard();
      fate_->ended = true;
    }
    if (fate_->ended) return replaced();
    return inside_->commit();
  }

 private:
  static std::unexpected<Error> replaced() {
    return fail(Code::store_fenced, "another owner has taken over");
  }

  std::shared_ptr<test::LeaseFate> fate_;
  std::function<bool()> fence_;
};

class OwnershipWorld : public World {
 public:
  explicit OwnershipWorld(sim::Simulation& sim) : World(sim, kCrashes) {
    points_ = {"engine.commit", "engine.committed", "engine.answer", "walk"};
    start();
  }
  ~OwnershipWorld() override {
    asking_.reset();
    engine_.reset();  // answers claims
  }

  void run_all() {
    add("ledger", [] { return Transaction{}.create<ledger>("ledger"); });
    settle([] { return true; }, "waiting for the ledger");
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::uint64_t left = 1 + sim_.draw(2); left > 0; --left) begin_trip();
      for (std::uint64_t left = 2 + sim_.draw(5); left > 0; --left) {
        ask();
        wander();
      }
      settle([this] { return all_ended(); }, "waiting for the trips");
    }
    take_over();  // whoever still waits is told
    do {
      run(kPatience);
      look_at_former();
    } while (!former_.empty());
    check_heads();
    for (const auto& pool : engine_->pools())
      sim_.require(pool.granted == 0 && pool.waiting == 0,
                   fmt::format("pool {} keeps {} permits for nobody", pool.name, pool.granted));
    require_sound();
  }

 private:
  /// Somebody who waits for something.
  struct Asked {
    std::string what;
    std::uint64_t server = 0;
    bool answered = false;
  };
  /// An owner that another one has replaced, until it has told everybody.
  struct Former {
    std::uint64_t server = 0;
    sim::Process* process = nullptr;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<ThreadPool> asking;
    Duration since{};
  };
  struct Trip {
    std::size_t operation = 0;
    std::string key;
  };

  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<ledger>().add<trip>();
    const auto walk = [this, &process, number = server()](const WorkContext& context,
                                                          const Walk&) -> Result<Reply> {
      const Running itself(running_[number], context.request_id());
      sim_.require(running_[number].count(context.request_id()) == 1, "two attempts at one walk run at once");
      if (process.fault("walk")) return fail(Code::timed_out, "the way is blocked, another one is tried");
      const bool lingers = process.random() % 4 == 0;
      Gate never;
      while (lingers && (lingering_ || number != server()) && !context.stop.stop_requested())
        process.wait(never, 1s);
      if (context.stop.stop_requested()) return fail(Code::cancelled, "asked to stop");
      return reply(Walked{});
    };
    made.work<trip, Walk>(
        "walk", walk,
        {.retry = {.retries = RetryPolicy::kUnlimited, .first = 5ms, .cap = 50ms}, .pool = "path"});
    made.work<trip, Carry>(
        "carry", [](const WorkContext&, const Carry&) { return no_reply(); },
        {.retry = {.retries = RetryPolicy::kUnlimited, .first = 5ms, .cap = 50ms}, .lease = 1s});
    return made;
  }

  EngineOptions options() override {
    return {.work_threads = 1 + sim_.draw(2),
            .batch = chance(2) ? 1 + sim_.draw(3) : 64,
            .cache_bytes = chance(3) ? std::size_t{10000} : std::size_t{1},
            .pools = {{"path", 1}}};
  }

  Result<std::unique_ptr<Store>> open(Runtime& runtime, const EngineOptions&) override {
    PAWL_TRY(auto inside, open_sqlite({.path = "ownership.db",
                                       .entry_bytes = kEntryBytes,
                                       .vfs = disk_.vfs_name(),
                                       .now = [&runtime] { return runtime.now(); }}));
    fate_ = std::make_shared<test::LeaseFate>();
    return std::make_unique<OwnedStore>(std::move(inside), fate_, [this, &process = *process_] {
      return engine_ && takeovers_ < kTakeovers && process.fault("store.takeover");
    });
  }

  void opened() override { asking_ = process_->open_thread_pool("asking", {.threads = 64}); }
  bool is_useless() const override { return fate_->ended; }

  void replace() override {
    if (process_->crashed()) return restart();
    take_over();
  }
  void check_heads() override {
    if (!fate_->ended) World::check_heads();
  }

  /// The successor opens while its predecessor lives and has not noticed yet.
  void take_over() {
    ++takeovers_;
    fate_->ended = true;
    former_.push_back({server(), process_, std::move(engine_), std::move(asking_), sim_.elapsed()});
    disk_.process_kill();  // its connections, as those to a database that knows a newer owner
    start();
  }

  /// What may happen at any moment.
  void wander() {
    run(random_time(400ms));
    switch (sim_.draw(6)) {
      case 0:
        fate_->lapsed = true;
        run(random_time(chance(2) ? Duration(5s) : Duration(500ms)));
        fate_->lapsed = false;
        break;
      case 1:
        if (takeovers_ < kTakeovers) take_over();
        break;
      case 2:
        process_->jump_clock(random_time(4h) - 2h);
        break;
      default:
        break;
    }
    look_at_former();
  }

  void begin_trip() {
    const int id = ++last_trip_;
    const auto key = fmt::format("t{}", id);
    // Around the limit: some are refused, others leave no room.
    const auto size = chance(3) ? std::size_t{10} : kEntryBytes - 500 + sim_.draw(250);
    add(key, [key] { return Transaction{}.create<trip>(key); });
    settle([] { return true; }, "waiting for a trip");
    trips_[id] = {add(key, [=] { return Transaction{}.send<trip>(key, Begin{id, size}); }), key};
    lingering_ = true;
  }

  /// Waits on the present owner for something, in one of the ways there are.
  void ask() {
    if (trips_.empty()) return;
    const auto key = fmt::format("t{}", 1 + sim_.draw(static_cast<std::uint64_t>(last_trip_)));
    const auto way = sim_.draw(5);
    process_->attempt([&] {
      switch (way) {
        case 0:
          engine_->wait_for("trip", key, {"ended"}, std::nullopt,
                            note_answer<Instance>("a callback", server()));
          break;
        case 1:
          submit_asking([answer = note_answer<Instance>("a blocked call", server()), engine = engine_.get(),
                         key]() mutable { answer(engine->wait_for("trip", key, {"ended"}, std::nullopt)); });
          break;
        case 2:
          submit_asking([answer = note_answer<std::vector<LogEvent>>("a subscription", server()),
                         engine = engine_.get()]() mutable {
            auto subscription = engine->subscribe("");
            if (subscription) return answer(subscription->next());
            answer(fail(subscription.error()));
          });
          break;
        default:
          claim(24h);
          break;
      }
    });
    if (process_->crashed()) replace();
  }

  void submit_asking(std::move_only_function<void()> call) {
    (void)asking_->submit([held = std::move(call)](std::stop_token) mutable { held(); });
  }

  template <class T>
  std::move_only_function<void(Result<T>)> note_answer(std::string what, std::uint64_t by) {
    auto& asked = asked_.emplace_back(Asked{std::move(what), by});
    return [this, &asked](const Result<T>&) {
      sim_.require(!asked.answered, fmt::format("{} is answered twice", asked.what));
      asked.answered = true;
    };
  }

  /// Some who claim work do it, others are never heard of again.
  void claim(Duration wait) {
    auto note = note_answer<std::optional<ClaimedWork>>("a claim", server());
    engine_->claim("trip", {"carry"}, wait,
                   [this, note = std::move(note), engine = engine_.get(), by = server(),
                    forgets = chance(3)](Result<std::optional<ClaimedWork>> outcome) mutable {
                     const auto lease = outcome && *outcome ? std::optional((*outcome)->lease) : std::nullopt;
                     note(std::move(outcome));
                     if (!lease || forgets) return;
                     engine->complete(*lease, reply(Carried{}), note_answer<void>("a completion", by));
                   });
  }

  bool all_ended() {
    look_at_former();
    lingering_ = false;
    bool all = true;
    const auto noted = engine_->get<ledger>("ledger");
    if (!noted) return false;
    for (auto& [id, begun] : trips_) {
      const auto times = std::ranges::count(noted->data.noted, id);
      sim_.require(times <= 1, fmt::format("{} is noted {} times", begun.key, times));
      all = all && times == 1 && messages_of(begun.key) == 2;
      const auto refused = operations_[begun.operation].refused;
      if (!refused) continue;
      sim_.require(refused->code() == Code::too_large && times == 0,
                   fmt::format("{} was refused: {}", begun.key, refused->to_string()));
      begun.operation =
          add(begun.key, [id, key = begun.key] { return Transaction{}.send<trip>(key, Begin{id, 10}); });
      return false;  // the server may be another one
    }
    // Work that is claimed waits for somebody who claims it.
    if (!all) {
      process_->attempt([this] { claim(2s); });
      if (process_->crashed()) replace();
    }
    return all;
  }

  /// How many of its messages are acknowledged or refused.
  std::ptrdiff_t messages_of(const std::string& key) {
    const auto history = engine_->history("trip", key);
    sim_.require(history.has_value(), "a history is lost");
    return std::ranges::count(history->events, "message", &LogEvent::kind);
  }

  /// A former owner that has had time to notice has told everybody, and runs nothing.
  void look_at_former() {
    std::erase_if(former_, [this](Former& former) {
      if (former.process->crashed()) {
        former.asking.reset();
        former.engine.reset();
        return true;
      }
      if (sim_.elapsed() - former.since < kPatience) return false;
      for (const auto& asked : asked_) {
        sim_.require(asked.answered || asked.server != former.server,
                     fmt::format("{} is never answered", asked.what));
      }
      sim_.require(unanswered_by(former.server) == 0, "a former owner owes answers");
      sim_.require(running_[former.server].empty(), "a former owner goes on with work");
      former.asking.reset();
      former.engine.reset();
      return true;
    });
  }

  class Running {
   public:
    Running(std::multiset<std::string>& all, std::string name) : all_(all), place_(all.insert(name)) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { all_.erase(place_); }

   private:
    std::multiset<std::string>& all_;
    std::multiset<std::string>::iterator place_;
  };

  std::shared_ptr<test::LeaseFate> fate_;
  std::uint64_t takeovers_ = 0;
  bool lingering_ = true;  // some walks do not end by themselves
  int last_trip_ = 0;
  std::map<int, Trip> trips_;
  std::map<std::uint64_t, std::multiset<std::string>> running_;  // by server
  std::deque<Asked> asked_;
  std::vector<Former> former_;
  std::unique_ptr<ThreadPool> asking_;
};

}  // namespace
}  // namespace ownerships

Result<void> ownership(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer"})
    sim.arm(point, sim::crash_with_ppm(5'000));
  sim.arm("walk", sim::fail_with_ppm(200'000));
  sim.arm("walk", sim::crash_with_ppm(5'000));
  sim.arm("store.takeover", sim::fail_with_ppm(30'000));
  ownerships::OwnershipWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
