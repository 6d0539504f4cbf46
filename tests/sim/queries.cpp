// SPDX-License-Identifier: Apache-2.0
// All readers of the application are busy with queries that never end, and more wait for one: commits, reads
// and work go on as if there were none, and closing ends the queries.
#include <algorithm>
#include <map>

#include "pawl/verify.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace reports {

using namespace std::chrono_literals;

enum class TallyState { open };
struct Add {
  int id = 0;
};
struct Count {};
struct Counted {};
struct Ask {};
struct Answered {};
struct TallyData {
  std::vector<int> added;
  int counted = 0;
  int answered = 0;
};
// Each event asks for quick work, "ask" for work that waits for a query.
inline constexpr auto tally =
    machine<TallyState, TallyData>("tally")
        .initial(TallyState::open)
        .stay<Add>(TallyState::open,
                   [](TallyData& data, const Add& add, Effects& effects) {
                     data.added.push_back(add.id);
                     effects.work("count", Count{});
                   })
        .stay<Counted>(TallyState::open, [](TallyData& data, const Counted&) { data.counted += 1; })
        .stay<Ask>(TallyState::open,
                   [](TallyData&, const Ask&, Effects& effects) { effects.work("ask", Ask{}); })
        .stay<Answered>(TallyState::open, [](TallyData& data, const Answered&) { data.answered += 1; })
        .endless();
static_assert(verified<tally>);

namespace {

constexpr std::uint64_t kCrashes = 3;
constexpr int kTurns = 3;
constexpr int kReaders = 2;
constexpr int kCallers = 4;       // each asks one query; more than there are readers
constexpr Duration kSoon = 50ms;  // within it everything is done that waits for nobody

/// One whose queries never end by themselves, with few readers for them.
class EndlessStore final : public test::StoreAround {
 public:
  EndlessStore(std::unique_ptr<Store> inside, sim::Process& process, int& reading)
      : StoreAround(std::move(inside)), process_(process), reading_(reading) {}

  Result<std::vector<std::vector<SqlValue>>> query(const Sql&, const std::stop_token& stop) override {
    const auto ended = [&] { return closing_ || stop.stop_requested(); };
    while (reading_ >= kReaders && !ended()) process_.wait(never_, 10ms);
    if (!ended()) {
      ++reading_;
      while (!ended()) process_.wait(never_, 10ms);
      --reading_;
    }
    return closing_ ? fail(Code::stopped, "the store is being closed") : fail(Code::cancelled, "cancelled");
  }
  void stop_queries() override {
    closing_ = true;
    inside_->stop_queries();
  }

 private:
  sim::Process& process_;
  int& reading_;
  Gate never_;
  bool closing_ = false;
};

class QueriesWorld : public World {
 public:
  explicit QueriesWorld(sim::Simulation& sim) : World(sim, kCrashes) {
    points_ = {"engine.commit", "engine.committed", "engine.answer", "count"};
    start();
  }
  ~QueriesWorld() override { asking_.reset(); }

  void run_all() {
    add("tally", [] { return Transaction{}.create<tally>("tally"); });
    settle([] { return true; }, "waiting for the tally");
    for (int turn = 0; turn < kTurns; ++turn) {
      add("tally", [] { return Transaction{}.send<tally>("tally", Ask{}); });
      run(random_time(100ms));
      for (std::uint64_t left = 1 + sim_.draw(4); left > 0; --left) go_on();
      if (chance(2)) cancel_queries();
      if (chance(2)) close();
    }
    endless_ = false;
    close();
    settle([this] { return is_complete(); }, "waiting for the answers of the last queries");
    require_sound();
  }

 private:
  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<tally>();
    made.work<tally, Count>("count",
                            [&process](const WorkContext&, const Count&) -> Result<Reply> {
                              if (process.fault("count")) return fail(Code::timed_out, "try again");
                              return reply(Counted{});
                            },
                            {.retry = {.retries = RetryPolicy::kUnlimited, .first = 1ms, .cap = 1ms}});
    made.work<tally, Ask>(
        "ask",
        [this](const WorkContext& context, const Ask&) -> Result<Reply> {
          if (!endless_) return reply(Answered{});
          if (!engine_) return fail(Code::stopped, "the engine is being closed");
          const auto rows = engine_->query({.text = "SELECT 1"}, context.stop);
          return fail(rows ? Error(Code::internal, "a query that never ends has ended") : rows.error());
        },
        {.retry = {.retries = RetryPolicy::kUnlimited, .first = 1ms, .cap = 1ms}, .again_after_crash = 1000});
    return made;
  }

  EngineOptions options() override {
    return {.store = "sqlite:queries.db",
            .vfs = disk_.vfs_name(),
            .work_threads = kTurns + 2,  // those that ask keep theirs
            .batch = chance(2) ? 1 + sim_.draw(3) : 64,
            .cache_bytes = chance(2) ? std::size_t{10000} : std::size_t{1}};
  }

  Result<std::unique_ptr<Store>> open(Runtime& runtime, const EngineOptions& options) override {
    PAWL_TRY(auto inside, open_store(runtime, options));
    reading_ = 0;
    return std::make_unique<EndlessStore>(std::move(inside), *process_, reading_);
  }

  void opened() override {
    asking_ = process_->open_thread_pool("asking", {.threads = kCallers});
    if (endless_) ask();
  }

  void ask() {
    for (int caller = 0; caller < kCallers; ++caller) {
      (void)asking_->submit([this, engine = engine_.get()](const std::stop_token& stop) {
        const auto rows = engine->query({.text = "SELECT 1"}, stop);
        sim_.require(!rows && rows.error().code() == Code::cancelled,
                     "a query did not end by its cancelling");
      });
    }
  }

  /// Commits, reads and work while every reader is busy.
  void go_on() {
    const auto before = server();
    for (std::uint64_t left = 1 + sim_.draw(3); left > 0; --left) {
      const int id = ++last_id_;
      add("tally", [id] { return Transaction{}.send<tally>("tally", Add{id}); });
    }
    run(kSoon);
    if (process_->crashed() || server() != before) return;
    sim_.require(reading_ == kReaders, "not every reader is busy");
    sim_.require(all_answered(), "a commit waits for a query");
    const auto found = engine_->get<tally>("tally");
    sim_.require(found.has_value() && engine_->history("tally", "tally").has_value(), "a read failed");
    sim_.require(std::cmp_equal(found->data.counted, last_id_), "work waits for a query");
  }

  /// Those that run end, and others take their readers.
  void cancel_queries() {
    asking_.reset();
    process_->attempt([this] { opened(); });
    if (process_->crashed()) restart();
  }

  /// Closes the engine as a program does that ends, and opens the next one.
  void close() {
    if (process_->crashed()) return restart();
    asking_.reset();
    const auto begun = sim_.elapsed();
    process_->attempt([this] { engine_.reset(); });
    if (process_->crashed()) return restart();
    sim_.require(sim_.elapsed() - begun <= kSoon, "closing waits for a query");
    disk_.process_kill();
    start();
  }

  /// The plain model: each event has had its effects once.
  bool is_complete() {
    const auto found = engine_->get<tally>("tally");
    if (!found) return false;
    auto added = found->data.added;
    std::ranges::sort(added);
    sim_.require(std::ranges::adjacent_find(added) == added.end(), "an event happened twice");
    sim_.require(found->data.counted <= last_id_ && found->data.answered <= kTurns, "work ended twice");
    return std::cmp_equal(added.size(), last_id_) && found->data.counted == last_id_ &&
           found->data.answered == kTurns;
  }

  bool endless_ = true;
  int reading_ = 0;
  int last_id_ = 0;
  std::unique_ptr<ThreadPool> asking_;
};

}  // namespace
}  // namespace reports

Result<void> queries(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer"})
    sim.arm(point, sim::crash_with_ppm(10'000));
  sim.arm("count", sim::crash_with_ppm(10'000));
  reports::QueriesWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
