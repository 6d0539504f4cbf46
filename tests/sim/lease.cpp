// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "tests/sim/scenarios.hpp"

namespace pawl::scenarios {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLease = 10s;
constexpr std::int64_t kDriftPpm = 200'000;
// Slowest owner against fastest challenger: 1.2 / 0.8 of the lease, and a little more.
constexpr Duration kMargin = kLease * 51 / 100;

/// A row that both can compare and set; belongs to neither.
struct Register {
  std::uint64_t owner = 0;
  std::uint64_t version = 0;
};

/// Renews the lease when it owns it; takes it when the row has not changed for a whole lease. Judges time by
/// its own monotonic clock alone.
class Holder {
 public:
  Holder(sim::Process& process, Register& row, std::uint64_t id, Duration margin)
      : process_(process), row_(row), id_(id), margin_(margin) {
    lane_->post([this] { tick(); });
  }

  bool owns() const { return process_.instant() < owned_until_; }

 private:
  void tick() {
    const auto begun = process_.instant();
    const bool due = owns() || mine_ || begun - seen_at_ >= kLease + margin_;
    const bool submitted = workers_
                               ->submit([this, begun, due, expected = seen_.version](std::stop_token) {
                                 call(begun, due, expected);
                               })
                               .has_value();
    if (!submitted) lane_->after(1s, [this] { tick(); });
  }

  /// One round trip: reads, and writes when it is due and nobody else has written. A fault cuts the process
  /// off for a while.
  void call(Instant begun, bool due, std::uint64_t expected) {
    if (process_.fault("request")) cut_off_until_ = begun + Duration(process_.random() % 20'000'000);
    bool lost = begun < cut_off_until_;
    const bool written = !lost && due && seen_once_ && row_.version == expected;
    if (written) row_ = {.owner = id_, .version = expected + 1};
    const Register now = row_;
    lost = process_.fault("answer") || lost;
    lane_->post([this, begun, written, now, lost] {
      if (!lost) learn(begun, written, now);
      lane_->after(1s, [this] { tick(); });
    });
  }

  void learn(Instant begun, bool written, const Register& now) {
    if (!seen_once_ || now.version != seen_.version) seen_at_ = process_.instant();
    seen_once_ = true;
    seen_ = now;
    mine_ = now.owner == id_;
    if (written) owned_until_ = begun + kLease;  // from before the request: the challenger counts from later
    if (!mine_) owned_until_ = {};
  }

  sim::Process& process_;
  Register& row_;
  const std::uint64_t id_;
  const Duration margin_;
  Register seen_;
  bool seen_once_ = false;
  bool mine_ = false;
  Instant seen_at_{};
  Instant owned_until_{};
  Instant cut_off_until_{};
  std::unique_ptr<Lane> lane_ = process_.open_lane("lease");
  std::unique_ptr<ThreadPool> workers_ = process_.open_thread_pool("row", {.threads = 1});
};

/// A holder and its process, replaced when it crashes.
class Member {
 public:
  Member(sim::Simulation& sim, Register& row, std::string name, std::uint64_t id, Duration margin)
      : sim_(sim), row_(row), name_(std::move(name)), id_(id), margin_(margin) {
    start();
  }

  bool owns() const { return !process_->crashed() && holder_->owns(); }
  void restart_if_crashed() {
    if (process_->crashed()) start();
  }

 private:
  void start() {
    holder_.reset();
    process_ = &sim_.spawn(name_);
    process_->set_drift_ppm(static_cast<std::int64_t>(sim_.draw(2 * kDriftPpm + 1)) - kDriftPpm);
    process_->jump_clock(Duration(sim_.draw(1'000'000'000)));
    id_ += 2;  // a successor is somebody else
    holder_ = std::make_unique<Holder>(*process_, row_, id_, margin_);
  }

  sim::Simulation& sim_;
  Register& row_;
  std::string name_;
  std::uint64_t id_;
  Duration margin_;
  sim::Process* process_ = nullptr;
  std::unique_ptr<Holder> holder_;
};

Result<void> run_lease(sim::Simulation& sim, Duration margin) {
  // Often enough the lease changes hands although its owner lives.
  sim.arm("request", sim::fail_with_ppm(60'000));
  sim.arm("request", sim::crash_with_ppm(5'000));
  sim.arm("answer", sim::fail_with_ppm(60'000));
  sim.arm("answer", sim::crash_with_ppm(5'000));
  Register row;
  Member a(sim, row, "a", 0, margin);
  Member b(sim, row, "b", 1, margin);
  sim.run_until([&] {
    sim.require(!(a.owns() && b.owns()), "both own the lease");
    a.restart_if_crashed();
    b.restart_if_crashed();
    return sim.elapsed() > 40s;
  });
  return {};
}

}  // namespace

Result<void> lease(sim::Simulation& sim) { return run_lease(sim, kMargin); }
Result<void> lease_without_margin(sim::Simulation& sim) { return run_lease(sim, Duration::zero()); }

}  // namespace pawl::scenarios
