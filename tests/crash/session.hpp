// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One worker's life: it is asked the load's requests, 256 at a time, until the driver has had enough.
///
///     PAWL_TRY(auto session, Session::start(options, load));
///     PAWL_TRY(const bool lives, session.run_until(draw_moment(random)));
///     PAWL_CHECK(session.kill());

#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <vector>

#include "pawl/random.hpp"
#include "tests/crash/child.hpp"
#include "tests/crash/load.hpp"
#include "tests/crash/worker.hpp"

namespace pawl::crash {

inline constexpr std::size_t kWindow = 256;  // requests under way at the same time

/// When to strike: so long after the start, or after readiness, or so many answers later; or once so many
/// requests, and no more, are all answered, when nothing covers up an acknowledgement that came too early.
struct Moment {
  std::optional<Duration> after_start{};
  std::optional<Duration> after_ready{};
  std::optional<std::size_t> answers{};
  std::optional<std::size_t> only{};
};

Moment draw_moment(Random& random);

/// Used by one thread at a time. Destroying it kills the worker.
class Session {
 public:
  static Result<Session> start(const WorkerOptions& options, Load& load);

  /// False: the worker has ended by itself, or its engine must be opened again.
  Result<bool> run_until(const Moment& moment);
  /// What had been said completely before the kill counts.
  Result<void> kill();
  /// The same for a worker that may have ended with an error, because its server was gone. Error: it has
  /// crashed.
  Result<void> give_up();
  /// Repeats what is unanswered, lets everything happen, and ends the worker in good order.
  Result<void> finish();

  /// SIGSTOP. What had been said before counts.
  Result<void> stop();
  /// SIGCONT, after another worker has become the owner. Everything that it still owes an answer must get
  /// one, and nothing new may be acknowledged; then it is killed.
  Result<void> go_on_fenced();

 private:
  Session(Child child, Load& load) : child_(std::move(child)), load_(&load) {}

  bool reached(const Moment& moment, std::size_t answers_before) const;
  Result<void> listen(Instant until);
  Result<void> take(const Child::Heard& heard);
  Result<void> take_answer(const Answer& answer);
  void send(const Request& request);
  /// Asks the fenced owner something new.
  Result<void> probe(Instant until);

  Child child_;
  Load* load_;
  std::optional<Instant> ready_at_;
  std::size_t left_ = 0;  // requests it may still be asked
  std::size_t answers_ = 0;
  std::set<std::int64_t> owed_;      // asked here and not answered
  std::vector<std::int64_t> again_;  // to be asked again, because their outcome is unknown
  Instant again_at_{};
  std::optional<Outcome> probed_;
  std::int64_t probe_ = 0;  // number of the request that only a fenced owner was asked
  bool fenced_ = false;
  bool reopen_ = false;
  bool ended_ = false;
};

}  // namespace pawl::crash
