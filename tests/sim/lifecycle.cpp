// SPDX-License-Identifier: Apache-2.0
// Work and places in lines from their beginning to their end: asked for, cancelled, stopped, and gone with an
// instance that ends, also within the batch that creates them. Whatever happens, no permit is lost, and all
// work of those that go on runs.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "pawl/verify.hpp"
#include "tests/sim/scenarios.hpp"
#include "tests/sim/world.hpp"

namespace pawl::scenarios {
namespace tasks {

using namespace std::chrono_literals;

enum class TaskState { open, ended };
struct Piece {
  int id = 0;
};
struct Ask {
  std::string work;
  int id = 0;
};
struct AskAndCancel {
  std::string work;
  int id = 0;
};
struct Replace {
  std::string work;
  int id = 0;
};
struct Enter {
  std::string work;
  int id = 0;
};
struct Leave {};
struct Reenter {};
struct Cancel {
  std::string work;
};
struct Stop {
  std::string work;
};
struct End {};
struct AskAndEnd {
  std::string work;
  int id = 0;
};
struct Finished {
  int id = 0;
};
struct Failed {
  std::string reason;
};

struct Asked {
  std::string work;
  int id = 0;
  bool operator==(const Asked&) const = default;
};
struct TaskData {
  std::vector<Asked> asked;  // and not cancelled nor finished; those that failed stay
  int finished = 0;
  int failed = 0;
  int stops = 0;
  int strays = 0;  // results of work that was not wanted any more
  bool queued = false;
  bool operator==(const TaskData&) const = default;
};

namespace {

void drop_name(TaskData& data, const std::string& work) {
  std::erase_if(data.asked, [&](const Asked& asked) { return asked.work == work; });
}

void finish(TaskData& data, int id) {
  const auto dropped = std::erase_if(data.asked, [&](const Asked& asked) { return asked.id == id; });
  (dropped == 1 ? data.finished : data.strays) += 1;
}

}  // namespace

inline constexpr auto task =
    machine<TaskState, TaskData>("task")
        .initial(TaskState::open)
        .stay<Ask>(TaskState::open,
                   [](TaskData& data, const Ask& ask, Effects& effects) {
                     data.asked.push_back({ask.work, ask.id});
                     effects.work(ask.work, Piece{ask.id});
                   })
        .stay<AskAndCancel>(TaskState::open,
                            [](TaskData& data, const AskAndCancel& ask, Effects& effects) {
                              drop_name(data, ask.work);
                              effects.work(ask.work, Piece{ask.id});
                              effects.cancel_work(ask.work);
                            })
        .stay<Replace>(TaskState::open,
                       [](TaskData& data, const Replace& replace, Effects& effects) {
                         drop_name(data, replace.work);
                         data.asked.push_back({replace.work, replace.id});
                         effects.cancel_work(replace.work);
                         effects.work(replace.work, Piece{replace.id});
                       })
        .stay<Enter>(TaskState::open,
                     [](TaskData& data, const Enter& enter, Effects& effects) {
                       data.queued = true;
                       data.asked.push_back({enter.work, enter.id});
                       effects.enter_queue("line");
                       effects.work(enter.work, Piece{enter.id});
                     })
        .stay<Leave>(TaskState::open,
                     [](TaskData& data, const Leave&, Effects& effects) {
                       data.queued = false;
                       data.asked.clear();
                       for (const char* work : {"one", "free", "once"}) effects.cancel_work(work);
                       effects.leave_queue();
                     })
        .stay<Reenter>(TaskState::open,
                       [](TaskData& data, const Reenter&, Effects& effects) {
                         data.queued = true;
                         effects.leave_queue();
                         effects.enter_queue("line");
                       })
        .stay<Cancel>(TaskState::open,
                      [](TaskData& data, const Cancel& cancel, Effects& effects) {
                        drop_name(data, cancel.work);
                        effects.cancel_work(cancel.work);
                      })
        .stay<Stop>(TaskState::open,
                    [](TaskData& data, const Stop& stop, Effects& effects) {
                      data.stops += 1;
                      effects.stop_work(stop.work);
                    })
        .stay<Finished>(TaskState::open,
                        [](TaskData& data, const Finished& finished) { finish(data, finished.id); })
        .stay<Failed>(TaskState::open, [](TaskData& data, const Failed&) { data.failed += 1; })
        .on<End>(TaskState::open, TaskState::ended)
        .on<AskAndEnd>(TaskState::open, TaskState::ended,
                       [](TaskData&, const AskAndEnd& ask, Effects& effects) {
                         effects.enter_queue("line");
                         effects.work(ask.work, Piece{ask.id});
                       })
        .terminal(TaskState::ended);
static_assert(verified<task>);

namespace {

constexpr std::uint64_t kCrashes = 4;
constexpr int kTurns = 4;
constexpr int kRounds = 3;
constexpr std::uint32_t kLine = 2;

class LifecycleWorld : public World {
 public:
  explicit LifecycleWorld(sim::Simulation& sim) : World(sim, kCrashes) {
    points_ = {"engine.commit", "engine.committed", "engine.answer", "work"};
    start();
  }

  void run_all() {
    for (int turn = 0; turn < kTurns; ++turn) {
      for (int round = 0; round < kRounds; ++round) {
        burst();
        run(chance(3) ? Duration::zero() : random_time(40ms));
        compare();
      }
      settle([this] { return at_rest(); }, "waiting until all work that may run has run");
      check_permits();
    }
    empty_line();
    require_sound();
  }

 private:
  /// One of these runs; crashes end it, too.
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

  /// What the heads carry.
  struct Carried {
    std::size_t standing = 0;  // in the line
    std::size_t admitted = 0;
    std::size_t work = 0;
    std::size_t of_one = 0;  // work of the pool of one
    std::size_t ready = 0;   // work that has not begun, need not wait for its turn and was not stopped

    void add(const Instance& instance) {
      standing += instance.queue ? 1 : 0;
      admitted += instance.queue && instance.queue->admitted ? 1 : 0;
      work += instance.work.size();
      of_one += static_cast<std::size_t>(std::ranges::count(instance.work, "one", &WorkStatus::name));
      if (instance.queue || instance.data.find("\"stops\":0") == std::string::npos) return;
      ready += static_cast<std::size_t>(std::ranges::count(instance.work, 0U, &WorkStatus::attempt));
    }
  };

  Machines machines(sim::Process& process) override {
    Machines made;
    made.add<task>();
    const auto handler = [this, &process](const WorkContext& context, const Piece& piece) -> Result<Reply> {
      const Running one(running_, std::string(context.work));
      const Running itself(running_, context.request_id());
      sim_.require(running_.count("one") <= 1, "two handlers of a pool of one run at once");
      sim_.require(running_.count(context.request_id()) == 1,
                   "two attempts of one piece of work run at once");
      if (process.fault("work") && context.work != "once") return fail(Code::timed_out, "try again");
      if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped");
      return reply(Finished{piece.id});
    };
    const RetryPolicy soon{.retries = RetryPolicy::kUnlimited, .first = 5ms, .cap = 50ms};
    const auto failed = on_failure<Failed>();
    made.work<task, Piece>("one", handler, {.retry = soon, .pool = "one", .failed = failed});
    made.work<task, Piece>("free", handler, {.retry = soon, .failed = failed});
    made.work<task, Piece>("once", handler, {.retry = kNever, .failed = failed, .again_after_crash = 1000});
    return made;
  }

  EngineOptions options() override {
    return {.store = "sqlite:lifecycle.db",
            .vfs = disk_.vfs_name(),
            .work_threads = 1 + sim_.draw(2),
            .max_started_attempts = 2,
            .batch = chance(3) ? 1 + sim_.draw(3) : 64,
            .pools = {{"one", 1}, {"line", kLine}}};
  }

  void opened() override {
    running_.clear();
    resumed_ = false;
    looked_at_.clear();
    // The lane answers this behind the task that picks up what the instances carry.
    engine_->wait_for("task", "nobody", {}, std::nullopt,
                      [this, by = server()](const auto&) { resumed_ = resumed_ || by == server(); });
  }

  /// Step by step, to compare the pools with the heads after each.
  void advance(Duration time) override {
    const auto end = sim_.elapsed() + time;
    while (!process_->crashed() && sim_.elapsed() <= end && sim_.step()) {
      if (!process_->crashed() && resumed_) compare_pools();
    }
    if (sim_.elapsed() < end) sim_.run_for(end - sim_.elapsed());
  }

  /// Between two tasks of the lane each permit is held by what is recorded or still runs, whoever waits can
  /// hope for a permit, and work that may begin stands in its pool.
  void compare_pools() {
    const auto stats = engine_->stats();
    const auto pools = engine_->pools();
    std::vector<std::size_t> seen{static_cast<std::size_t>(stats.last_seq), stats.running_work};
    for (const auto& pool : pools) seen.insert(seen.end(), {pool.granted, pool.waiting});
    if (std::exchange(looked_at_, seen) == seen) return;

    Carried carried;
    const auto page = engine_->list({.machine = "task", .limit = 10'000}).value();
    for (const auto& instance : page.instances) carried.add(instance);
    std::size_t granted = 0;
    std::size_t known = 0;
    for (const auto& pool : pools) {
      const auto require = [&](bool holds, std::string_view what) {
        if (!holds)
          sim_.require(false, fmt::format("pool {} has {} granted and {} waiting, but {}", pool.name,
                                          pool.granted, pool.waiting, what));
      };
      require(pool.granted <= pool.size, "it is smaller");
      require(pool.waiting == 0 || pool.granted == pool.size, "a permit is free");
      if (pool.name == "line") {
        require(pool.granted == carried.admitted, "another number of instances are admitted");
        require(pool.granted + pool.waiting == carried.standing, "another number of instances stand in it");
        continue;
      }
      granted += pool.granted;
      known += pool.granted + pool.waiting;
      require(pool.name != "one" || pool.granted + pool.waiting <= carried.of_one + stats.running_work,
              "its work is neither recorded nor running");
    }
    sim_.require(granted >= stats.running_work, "an attempt runs without a permit");
    sim_.require(known >= carried.ready, "work that may begin stands in no pool");
    sim_.require(known <= carried.work + stats.running_work,
                 fmt::format("{} permits are held or waited for, and there are {} pieces of work", known,
                             carried.work));
  }

  /// Several operations that mostly share a batch.
  void burst() {
    static constexpr std::array kWorks{"one", "free", "once"};
    const auto count = 1 + sim_.draw(6);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (keys_.empty() || chance(3)) {
        const auto key = keys_.emplace_back(fmt::format("t{}", keys_.size()));
        add(key, [key] { return Transaction{}.create<task>(key); });
      }
      // Mostly the newest: what is created and gone within one batch is what this is about.
      const auto key = chance(3) ? keys_[sim_.draw(keys_.size())] : keys_.back();
      const std::string work = kWorks[sim_.draw(kWorks.size())];
      const int id = ++last_id_;
      add(key, operation(key, work, id));
    }
  }

  std::function<Transaction()> operation(const std::string& key, const std::string& work, int id) {
    const auto sends = [&](auto event) {
      return [key, event] { return Transaction{}.send<task>(key, event); };
    };
    switch (sim_.draw(12)) {
      case 0:
      case 1:
      case 2:
        return sends(Ask{work, id});
      case 3:
        return sends(AskAndCancel{work, id});
      case 4:
        return sends(Replace{work, id});
      case 5:
      case 6:
        return sends(Enter{work, id});
      case 7:
        return sends(Leave{});
      case 8:
        return sends(Cancel{work});
      case 9:
        return chance(2) ? sends(Reenter{}) : std::function<Transaction()>(sends(Stop{work}));
      case 10:
        return sends(End{});
      default:
        return sends(AskAndEnd{work, id});
    }
  }

  /// The plain model: one map, changed entry by entry in the order of the log.
  void compare() {
    if (!engine_ || process_->crashed()) return;
    auto subscription = engine_->subscribe(cursor_);
    sim_.require(subscription.has_value(), "a cursor was refused");
    for (;;) {
      const auto events = subscription->poll(16);
      sim_.require(events.has_value(), "the feed failed");
      if (events->empty()) break;
      for (const auto& event : *events) replay(event);
    }
    cursor_ = subscription->cursor();
    for (const auto& [key, model] : model_) {
      const auto read = engine_->get<task>(key);
      sim_.require(read.has_value(), "an instance of the log cannot be read");
      sim_.require(read->data == model.data && read->finished == model.ended,
                   fmt::format("{} differs from its model", key));
      sim_.require(model.data.strays == 0, fmt::format("{} got the result of cancelled work", key));
    }
  }

  struct Model {
    TaskData data;
    bool ended = false;
  };

  void replay(const LogEvent& event) {
    if (event.kind == "created") model_[event.key] = {};
    if (event.kind != "fired") return;
    auto& [data, ended] = model_.at(event.key);
    sim_.require(!ended, fmt::format("{} took {} after its end", event.key, event.event));
    const auto ask = [&] { return decode<Ask>(event.payload).value(); };
    if (event.event == "Ask" || event.event == "Enter") {
      data.asked.push_back({ask().work, ask().id});
      data.queued = data.queued || event.event == "Enter";
    } else if (event.event == "AskAndCancel") {
      drop_name(data, ask().work);
    } else if (event.event == "Replace") {
      drop_name(data, ask().work);
      data.asked.push_back({ask().work, ask().id});
    } else if (event.event == "Leave") {
      data.asked.clear();
      data.queued = false;
    } else if (event.event == "Reenter") {
      data.queued = true;
    } else if (event.event == "Cancel") {
      drop_name(data, decode<Cancel>(event.payload).value().work);
    } else if (event.event == "Stop") {
      data.stops += 1;
    } else if (event.event == "Finished") {
      finish(data, decode<Finished>(event.payload).value().id);
    } else if (event.event == "Failed") {
      data.failed += 1;
    } else {
      ended = true;
    }
  }

  /// Whether nothing is left to do until somebody leaves the line.
  bool at_rest() {
    compare();
    for (const auto& [key, model] : model_) {
      if (model.ended) continue;
      const auto read = engine_->read("task", key);
      if (!read || (!waits(*read) && !read->work.empty())) return false;
    }
    return running_.empty();
  }

  static bool waits(const Instance& instance) { return instance.queue && !instance.queue->admitted; }

  /// At rest only a place in the line holds a permit, and each place that is taken is somebody's.
  void check_permits() {
    std::size_t standing = 0;
    for (const auto& [key, model] : model_) {
      const auto read = engine_->read("task", key);
      sim_.require(read.has_value(), "an instance of the log cannot be read");
      if (model.ended) {
        sim_.require(read->work.empty() && !read->queue, fmt::format("{} ended and carries work", key));
        continue;
      }
      sim_.require(read->queue.has_value() == model.data.queued, fmt::format("the line differs for {}", key));
      if (model.data.queued) ++standing;
      if (waits(*read)) continue;
      // What was asked for has finished, failed because it was stopped, or was cancelled after it failed.
      sim_.require(std::cmp_less_equal(model.data.asked.size(), model.data.failed),
                   fmt::format("work of {} was neither done nor stopped", key));
      sim_.require(model.data.failed == 0 || model.data.stops > 0, "work failed although nobody stopped it");
    }
    for (const auto& pool : engine_->pools()) {
      const auto held = pool.name == "line" ? std::min<std::size_t>(standing, kLine) : 0;
      const auto waiting = pool.name == "line" ? standing - held : 0;
      sim_.require(pool.granted == held && pool.waiting == waiting,
                   fmt::format("at rest pool {} has {} granted and {} waiting instead of {} and {}",
                               pool.name, pool.granted, pool.waiting, held, waiting));
    }
  }

  /// Everybody who has a place gives it up, until nobody stands in the line.
  void empty_line() {
    for (std::size_t left = keys_.size() + 1; left > 0; --left) {
      std::vector<std::string> admitted;
      for (const auto& [key, model] : model_) {
        const auto read = engine_->read("task", key);
        if (read && read->queue && read->queue->admitted) admitted.push_back(key);
      }
      if (admitted.empty()) break;
      for (const auto& key : admitted) {
        if (chance(2)) {
          add(key, [key] { return Transaction{}.send<task>(key, Leave{}); });
        } else {
          add(key, [key] { return Transaction{}.send<task>(key, End{}); });
        }
      }
      settle([this] { return at_rest(); }, "waiting until the next in line have run");
      check_permits();
    }
    for (const auto& pool : engine_->pools())
      sim_.require(pool.granted == 0 && pool.waiting == 0, "the line does not become empty");
  }

  std::vector<std::string> keys_;
  int last_id_ = 0;
  std::string cursor_ = "begin";
  std::map<std::string, Model> model_;
  std::multiset<std::string> running_;
  bool resumed_ = false;                // the present server has picked up what its instances carry
  std::vector<std::size_t> looked_at_;  // what the last comparison rested on
};

}  // namespace
}  // namespace tasks

Result<void> lifecycle(sim::Simulation& sim) {
  for (const char* point : {"engine.commit", "engine.committed", "engine.answer"})
    sim.arm(point, sim::crash_with_ppm(10'000));
  sim.arm("work", sim::fail_with_ppm(150'000));
  sim.arm("work", sim::crash_with_ppm(10'000));
  tasks::LifecycleWorld(sim).run_all();
  return {};
}

}  // namespace pawl::scenarios
