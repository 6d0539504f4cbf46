// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/driver.hpp"

#include <fmt/format.h>

#include <csignal>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/random.hpp"
#include "tests/crash/child.hpp"
#include "tests/crash/load.hpp"

namespace pawl::crash {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWindow = 256;  // requests under way at the same time
constexpr Duration kPatience = 60s;   // after which a worker that says nothing is a failure

/// When to kill: so long after the start, or after readiness, or at the answer of that number; or once so
/// many requests, and no more, are all answered, when nothing covers up an acknowledgement that came too
/// early.
struct Moment {
  std::optional<Duration> after_start{};
  std::optional<Duration> after_ready{};
  std::optional<std::size_t> answers{};
  std::optional<std::size_t> only{};
};

Moment draw_moment(Random& random) {
  const auto up_to = [&](Duration most) {
    return Duration(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most.count()) + 1)));
  };
  switch (random.below(8)) {
    case 0:
      return {.after_start = up_to(20ms)};  // while it opens the store
    case 1:
      return {.after_ready = up_to(3ms)};  // while it resumes what the last one left
    case 2:
      return {.answers = 1 + random.below(500)};
    case 3:
    case 4:
      return {.only = kWindow + random.below(500)};
    default:
      return {.after_ready = up_to(150ms)};
  }
}

/// One worker's life.
class Session {
 public:
  static Result<Session> start(const DriverOptions& options, Load& load) {
    std::vector<std::string> arguments{"--worker", options.directory};
    if (options.acknowledge_before_commit)
      arguments.insert(arguments.end(), {"--broken", "ack-before-commit"});
    PAWL_TRY(auto child, Child::start(arguments));
    return Session(std::move(child), load);
  }

  Result<void> run_until(const Moment& moment) {
    const auto started = Child::now();
    left_ = moment.only.value_or(std::numeric_limits<std::size_t>::max());
    while (!reached(moment)) {
      auto until = started + kPatience;
      if (moment.after_start) until = started + *moment.after_start;
      if (moment.after_ready && ready_at_) until = *ready_at_ + *moment.after_ready;
      PAWL_CHECK(listen(until));
      if (ended_) return fail(Code::internal, "the worker ended by itself");
      if (Child::now() >= until) break;
    }
    if (!moment.after_start && !ready_at_) return fail(Code::timed_out, "the worker did not become ready");
    return {};
  }

  /// What had been said completely before the kill counts.
  Result<void> kill() {
    PAWL_TRY(const auto heard, child_.kill());
    return take(heard);
  }

  /// Repeats what is unanswered, lets everything happen, and ends the worker in good order.
  Result<void> finish() {
    const auto until = Child::now() + 2 * kPatience;
    left_ = 0;
    while (!ended_ && Child::now() < until) {
      PAWL_CHECK(listen(until));
      if (ready_at_ && load_->open().empty()) child_.end_input();
    }
    if (!ended_)
      return fail(Code::timed_out, fmt::format("{} requests are unanswered", load_->open().size()));
    return child_.wait();
  }

 private:
  Session(Child child, Load& load) : child_(std::move(child)), load_(&load) {}

  bool reached(const Moment& moment) const {
    if (moment.only) return ready_at_ && left_ == 0 && load_->open().empty();
    return moment.answers && answers_ >= *moment.answers;
  }

  Result<void> listen(Instant until) {
    PAWL_TRY(const auto heard, child_.listen(until));
    PAWL_CHECK(take(heard));
    ended_ = heard.ended;
    for (; ready_at_ && left_ > 0 && load_->open().size() < kWindow; --left_) send(load_->next());
    return {};
  }

  Result<void> take(const Child::Heard& heard) {
    for (const auto& line : heard.lines) {
      if (line == kReady) {
        ready_at_ = Child::now();
        for (const auto& [number, request] : load_->open()) send(request);
        continue;
      }
      PAWL_TRY(const auto answer, decode<Answer>(line));
      PAWL_CHECK(load_->note(answer));
      ++answers_;
    }
    return {};
  }

  void send(const Request& request) { child_.send(encode(request).value()); }

  Child child_;
  Load* load_;
  std::optional<Instant> ready_at_;
  std::size_t left_ = 0;  // requests it may still be asked
  std::size_t answers_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<void> run_driver(const DriverOptions& options, Report& report) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that is gone shows by the end of its output
  Random random(options.seed);
  Load load(random.next());
  Audit audit(options.directory);
  while (report.kills < options.kills) {
    const auto moment = draw_moment(random);
    PAWL_TRY(auto session, Session::start(options, load));
    PAWL_CHECK(session.run_until(moment));
    PAWL_CHECK(session.kill());
    ++report.kills;
    report.acknowledged = load.acknowledged();
    PAWL_TRY(report.findings, audit.check(load, false));
    if (!report.findings.sound()) return {};
  }
  PAWL_TRY(auto last, Session::start(options, load));
  PAWL_CHECK(last.finish());
  report.acknowledged = load.acknowledged();
  // Everything once more from the beginning, the parts that earlier audits have seen included.
  PAWL_TRY(report.findings, Audit(options.directory).check(load, true));
  return {};
}

}  // namespace pawl::crash
