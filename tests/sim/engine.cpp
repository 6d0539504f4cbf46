// SPDX-License-Identifier: Apache-2.0
// The durable engine, whole, on a simulated disk: crashes at every commit, power cuts, delayed and reordered
// work, clocks that jump. Clients repeat a request with its id until it is answered.
#include "pawl/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "pawl/sim_disk.hpp"
#include "pawl/verify.hpp"
#include "tests/sim/replay.hpp"
#include "tests/sim/scenarios.hpp"

namespace pawl::scenarios {

using namespace std::chrono_literals;

// An account of one partition; the sum over all accounts never changes by a transfer.
enum class AccountState { open, closed };
struct Deposit {
  int amount = 0;
};
struct Withdraw {
  int amount = 0;
};
struct CloseAccount {};
struct Balance {
  int amount = 0;
  int deposits = 0;
};
inline constexpr auto account =
    machine<AccountState, Balance>("account")
        .initial(AccountState::open)
        .stay<Deposit>(AccountState::open,
                       [](Balance& balance, const Deposit& deposit) {
                         balance.amount += deposit.amount;
                         balance.deposits += 1;
                       })
        .stay<Withdraw>(AccountState::open,
                        [](Balance& balance, const Withdraw& withdraw) { balance.amount -= withdraw.amount; })
        .on<CloseAccount>(AccountState::open, AccountState::closed)
        .terminal(AccountState::closed);
static_assert(verified<account>);

// A parcel: packed by work, posted by a timer, reported to an account of another partition.
enum class ParcelState { waiting, packing, packed, posted, lost };
struct Pack {};
struct Packed {};
struct PackingFailed {
  std::string reason;
};
struct Post {};
struct ParcelData {
  int packed = 0;
};
inline constexpr auto parcel =
    machine<ParcelState, ParcelData>("parcel")
        .initial(ParcelState::waiting)
        .on<Pack>(ParcelState::waiting, ParcelState::packing,
                  [](ParcelData&, const Pack&, Effects& effects) { effects.work("pack", Pack{}); })
        .on<Packed>(ParcelState::packing, ParcelState::packed,
                    [](ParcelData& data, const Packed&, Effects& effects) {
                      data.packed += 1;
                      effects.set_timer("post", 50ms, Post{});
                    })
        .on<PackingFailed>(ParcelState::packing, ParcelState::lost)
        .on<Post>(ParcelState::packed, ParcelState::posted,
                  [](ParcelData&, const Post&, Effects& effects) {
                    effects.send<account>("post-office", Deposit{1});
                    effects.sql({.text = "INSERT INTO posted(at) VALUES(?1)",
                                 .rows = {{effects.now().time_since_epoch().count()}},
                                 .expect = 1});
                  })
        .terminal(ParcelState::posted, ParcelState::lost);
static_assert(verified<parcel>);

namespace {

constexpr int kAccounts = 3;
constexpr int kDeposits = 6;
constexpr int kTransfers = 4;
constexpr int kParcels = 3;
constexpr std::uint64_t kEngineCrashes = 6;  // then the faults end, so that the run does

class EngineWorld {
 public:
  explicit EngineWorld(sim::Simulation& sim) : sim_(sim), disk_(sim.seed()) {
    start();
    requests();
    client_lane_->after(random_delay(200ms), [this] { strike(); });
    client_lane_->after(random_delay(200ms), [this] { process_->jump_clock(random_delay(2h) - 1h); });
  }

  void run() {
    while (!settled()) {
      sim_.run_until([this] { return process_->crashed() || settled(); });
      if (process_->crashed()) restart();
    }
    if (sim_.draw(2) == 0) {
      process_->crash();
      restart();
    }
    check();
  }

 private:
  struct Pending {
    std::function<Transaction()> make;
    std::optional<std::size_t> after{};  // not before that one is answered
    bool answered = false;
  };

  Duration random_delay(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()))};
  }

  Machines machines() {
    Machines made;
    made.add<account>().add<parcel>();
    made.work<parcel, Pack>("pack",
                            [this](const WorkContext& context, const Pack&) -> Result<Reply> {
                              packed_[std::string(context.key)].insert(context.request_id());
                              if (process_->fault("work")) return fail(Code::timed_out, "no string left");
                              return reply(Packed{});
                            },
                            {.retry = {.retries = RetryPolicy::kUnlimited, .first = 5ms, .cap = 100ms},
                             .pool = "table",
                             .failed = on_failure<PackingFailed>()});
    return made;
  }

  void start() {
    process_ = &sim_.spawn("server");
    process_->attempt([this] {
      auto opened =
          Engine::open(*process_, machines(),
                       {.store = "sqlite:engine.db",
                        .vfs = disk_.vfs_name(),
                        .batch = 1 + sim_.draw(4),
                        .cache_bytes = sim_.draw(2) == 0 ? std::size_t{100} : std::size_t{10000},
                        .pools = {{"table", 1}},
                        .schema = {{.text = "CREATE TABLE IF NOT EXISTS posted(at INTEGER PRIMARY KEY)"}}});
      sim_.require(opened.has_value(), opened ? "" : "opening failed: " + opened.error().to_string());
      engine_ = *std::move(opened);
      watch();
    });
  }

  void restart() {
    engine_.reset();
    if (sim_.draw(2) == 0) {
      disk_.process_kill();
    } else {
      disk_.power_cut(sim::Unsynced::random);
    }
    if (sim_.crashes() >= kEngineCrashes) {
      for (const char* point : {"engine.commit", "engine.committed", "engine.answer", "work"})
        sim_.disarm(point);
    }
    start();
  }

  /// A crash at any time, not only where the engine has a fault point.
  void strike() {
    if (sim_.crashes() < kEngineCrashes) process_->crash();
  }

  void requests() {
    for (int i = 0; i < kAccounts; ++i) {
      add([i] { return Transaction{}.create<account>(fmt::format("a{}", i), {}, {.partition = "bank"}); });
    }
    const auto office = add([] { return Transaction{}.create<account>("post-office"); });
    for (int i = 0; i < kDeposits; ++i) {
      const auto key = fmt::format("a{}", sim_.draw(kAccounts));
      add([key] { return Transaction{}.send<account>(key, Deposit{10}); });
    }
    for (int i = 0; i < kTransfers; ++i) {
      const auto from = sim_.draw(kAccounts);
      const auto to = (from + 1 + sim_.draw(kAccounts - 1)) % kAccounts;
      add([from, to] {
        return Transaction{}
            .send<account>(fmt::format("a{}", from), Withdraw{3})
            .send<account>(fmt::format("a{}", to), Deposit{3});
      });
    }
    for (int i = 0; i < kParcels; ++i) {
      add([i] { return Transaction{}.create<parcel>(fmt::format("p{}", i)); });
      add([i] { return Transaction{}.send<parcel>(fmt::format("p{}", i), Pack{}); }, office);
    }
  }

  std::size_t add(std::function<Transaction()> make, std::optional<std::size_t> after = {}) {
    const auto number = pending_.size();
    pending_.push_back({std::move(make), after});
    client_lane_->after(random_delay(100ms), [this, number] { send(number); });
    return number;
  }

  /// Sends until it is answered with success; the server may be down, the answer lost, or the instance not
  /// there yet.
  void send(std::size_t number) {
    const auto& request = pending_[number];
    if (request.answered) return;
    const bool ready = !request.after || pending_[*request.after].answered;
    if (ready && engine_ && !process_->crashed()) {
      engine_->submit(request.make().request_id(fmt::format("r{}", number)),
                      [this, number](const Result<std::vector<Instance>>& outcome) {
                        if (outcome) client_lane_->post([this, number] { pending_[number].answered = true; });
                      });
    }
    client_lane_->after(20ms + random_delay(40ms), [this, number] { send(number); });
  }

  /// Follows the log from the stored cursor, as a subscriber does that restarts with the server.
  void watch() {
    auto subscription = engine_->subscribe(cursor_);
    sim_.require(subscription.has_value(), "a cursor was refused after a restart");
    for (;;) {
      const auto events = subscription->poll(3);
      sim_.require(events.has_value(), "the feed failed");
      if (events->empty()) break;
      for (const auto& event : *events) {
        sim_.require(event.seq > last_seq_, "an entry came twice or out of order");
        sim_.require(event.at > last_at_, "log time did not grow");
        const auto expected = ++versions_[event.id];
        sim_.require(event.version == expected, "a version is missing or doubled in the feed");
        last_seq_ = event.seq;
        last_at_ = event.at;
      }
    }
    cursor_ = subscription->cursor();
  }

  bool settled() const {
    if (!std::ranges::all_of(pending_, &Pending::answered) || !engine_ || process_->crashed()) return false;
    const auto office = engine_->get<account>("post-office");
    if (!office || office->data.deposits < kParcels) return false;
    for (int i = 0; i < kParcels; ++i) {
      const auto read = engine_->read("parcel", fmt::format("p{}", i));
      if (!read || !read->finished) return false;
    }
    return true;
  }

  void check() {
    if (process_->crashed()) restart();
    watch();
    int sum = 0;
    int deposits = 0;
    for (int i = 0; i < kAccounts; ++i) {
      const auto found = engine_->get<account>(fmt::format("a{}", i));
      sim_.require(found.has_value(), "an acknowledged account is lost");
      sum += found->data.amount;
      deposits += found->data.deposits;
    }
    sim_.require(sum == 10 * kDeposits, fmt::format("money was lost or made: {}", sum));
    sim_.require(deposits == kDeposits + kTransfers,
                 fmt::format("deposits were lost or doubled: {}", deposits));
    sim_.require(engine_->get<account>("post-office")->data.deposits == kParcels,
                 "a message was lost or doubled");
    const auto posted = engine_->query({.text = "SELECT count(*) FROM posted"});
    sim_.require(posted && posted->front().front() == SqlValue(kParcels),
                 "application rows differ from the log");
    for (int i = 0; i < kParcels; ++i) {
      const auto key = fmt::format("p{}", i);
      sim_.require(engine_->get<parcel>(key)->data.packed == 1, "work was consumed twice");
      sim_.require(packed_[key].size() == 1, "attempts of one piece of work had different request ids");
    }
    replay_.check(*engine_);
    const auto problems = engine_->check();
    sim_.require(problems && problems->empty(), "the store's own check found a problem");
  }

  sim::Simulation& sim_;
  sim::Disk disk_;
  sim::Process& client_ = sim_.spawn("client");
  std::vector<Pending> pending_;
  std::map<std::string, std::set<std::string>> packed_;
  std::string cursor_ = "begin";
  std::int64_t last_seq_ = 0;
  Time last_at_{};
  std::map<InstanceId, std::int64_t> versions_;
  Replay replay_{sim_};
  std::unique_ptr<Lane> client_lane_ = client_.open_lane("requests");
  sim::Process* process_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<void> engine(sim::Simulation& sim) {
  sim.arm("engine.commit", sim::crash_with_ppm(30'000));
  sim.arm("engine.committed", sim::crash_with_ppm(30'000));
  sim.arm("engine.answer", sim::crash_with_ppm(30'000));
  sim.arm("work", sim::fail_with_ppm(200'000));
  sim.arm("work", sim::crash_with_ppm(100'000));
  EngineWorld(sim).run();
  return {};
}

}  // namespace pawl::scenarios
