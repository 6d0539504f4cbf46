// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pawl/codec.hpp"

namespace pawl::crash {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;  // after which a worker that says nothing is a failure
constexpr Duration kPause = 10ms;    // before a request is repeated

}  // namespace

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

Result<Session> Session::start(const WorkerOptions& options, Load& load) {
  std::vector<std::string> arguments{"--worker", options.store, "--dir", options.directory};
  if (options.take_over) arguments.emplace_back("--take-over");
  if (options.acknowledge_before_commit) arguments.insert(arguments.end(), {"--broken", "ack-before-commit"});
  PAWL_TRY(auto child, Child::start(arguments));
  return Session(std::move(child), load);
}

Result<bool> Session::run_until(const Moment& moment) {
  const auto started = Child::now();
  const auto answers_before = answers_;
  left_ = moment.only.value_or(std::numeric_limits<std::size_t>::max());
  while (!reached(moment, answers_before)) {
    auto until = started + kPatience;
    if (moment.after_start) until = started + *moment.after_start;
    if (moment.after_ready && ready_at_) until = *ready_at_ + *moment.after_ready;
    PAWL_CHECK(listen(until));
    if (ended_ || reopen_) return false;
    if (Child::now() >= until) break;
  }
  if (!moment.after_start && !ready_at_) return fail(Code::timed_out, "the worker did not become ready");
  if (moment.answers && !reached(moment, answers_before))
    return fail(Code::timed_out, "the worker does not answer");
  return true;
}

bool Session::reached(const Moment& moment, std::size_t answers_before) const {
  if (moment.only) return ready_at_ && left_ == 0 && load_->open().empty();
  return moment.answers && answers_ >= answers_before + *moment.answers;
}

Result<void> Session::kill() {
  PAWL_TRY(const auto heard, child_.kill());
  return take(heard);
}

Result<void> Session::give_up() {
  PAWL_TRY(const auto heard, child_.kill(true));
  return take(heard);
}

Result<void> Session::finish() {
  const auto until = Child::now() + 2 * kPatience;
  left_ = 0;
  while (!ended_ && Child::now() < until) {
    PAWL_CHECK(listen(until));
    if (ready_at_ && load_->open().empty()) child_.end_input();
  }
  if (!ended_) return fail(Code::timed_out, fmt::format("{} requests are unanswered", load_->open().size()));
  return child_.wait();
}

Result<void> Session::stop() {
  PAWL_CHECK(child_.stop());
  PAWL_TRY(const auto heard, child_.listen(Child::now()));
  return take(heard);
}

Result<void> Session::go_on_fenced() {
  fenced_ = true;
  left_ = 0;
  again_.clear();
  child_.go_on();
  const auto until = Child::now() + kPatience;
  while (!owed_.empty()) {
    PAWL_CHECK(listen(until));
    if (ended_) return child_.wait(1);
    if (Child::now() >= until)
      return fail(Code::timed_out,
                  fmt::format("a stopped owner leaves {} requests without an answer", owed_.size()));
  }
  PAWL_CHECK(probe(until));
  return kill();
}

Result<void> Session::probe(Instant until) {
  // While its lease lasts it may refuse from memory, as it was right to do before.
  do {
    const auto& request = load_->next();
    probe_ = request.number;
    probed_.reset();
    send(request);
    while (!probed_) {
      PAWL_CHECK(listen(until));
      if (ended_) return fail(Code::internal, "a stopped owner ended when it was asked something");
      if (Child::now() >= until) return fail(Code::timed_out, "a stopped owner does not answer");
    }
  } while (*probed_ == Outcome::refused);
  if (*probed_ != Outcome::done) return {};
  return fail(Code::internal, fmt::format("an owner that was followed has acknowledged request {}", probe_));
}

Result<void> Session::listen(Instant until) {
  if (Child::now() >= again_at_) {
    for (const auto number : std::exchange(again_, {})) send(load_->request(number));
  }
  for (; ready_at_ && left_ > 0 && load_->open().size() < kWindow; --left_) send(load_->next());
  if (!again_.empty()) until = std::min(until, again_at_);
  PAWL_TRY(const auto heard, child_.listen(until));
  ended_ = heard.ended;
  return take(heard);
}

Result<void> Session::take(const Child::Heard& heard) {
  for (const auto& line : heard.lines) {
    if (line == kReady) {
      ready_at_ = Child::now();
      for (const auto& [number, request] : load_->open()) send(request);
      continue;
    }
    PAWL_TRY(const auto answer, decode<Answer>(line));
    PAWL_CHECK(take_answer(answer));
  }
  return {};
}

Result<void> Session::take_answer(const Answer& answer) {
  owed_.erase(answer.number);
  if (answer.number == probe_) probed_ = answer.outcome;
  if (fenced_) return load_->note_late(answer);
  PAWL_CHECK(load_->note(answer));
  if (answer.outcome == Outcome::reopen) {
    reopen_ = true;
  } else if (answer.outcome == Outcome::unknown) {
    if (again_.empty()) again_at_ = Child::now() + kPause;
    again_.push_back(answer.number);
  } else {
    ++answers_;
  }
  return {};
}

void Session::send(const Request& request) {
  owed_.insert(request.number);
  child_.send(encode(request).value());
}

}  // namespace pawl::crash
