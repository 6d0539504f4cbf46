// SPDX-License-Identifier: Apache-2.0
#include "workers/types/message_monitor.hpp"

#include <algorithm>
#include <chrono>

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWindow = 10s;      // a shorter window would show rare messages as none
constexpr Duration kNoneAfter = 1min;  // time without a message

}  // namespace

Moment this_moment() {
  return {.at = std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()),
          .time = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now())};
}

void MessageMonitor::expect(std::optional<Duration> every) {
  const std::lock_guard lock(mutex_);
  every_ = every;
}

void MessageMonitor::subscribed(const Moment& now) {
  const std::lock_guard lock(mutex_);
  subscribed_ = now;
  if (listening_) return;
  listening_ = true;
  heard_ = now;
  window_ = now;
  counted_ = 0;
}

void MessageMonitor::message(const Moment& now) {
  const std::lock_guard lock(mutex_);
  if (!listening_) return;
  note_silence(now);
  close_gap(now);
  heard_ = now;
  last_message_ = now.at;
  ++counted_;
}

void MessageMonitor::end(const Moment& now) {
  const std::lock_guard lock(mutex_);
  note_silence(now);
  close_gap(now);
  listening_ = false;
  last_message_.reset();
  rate_ = Rate::none;
}

MessageStats MessageMonitor::stats(const Moment& now) {
  const std::lock_guard lock(mutex_);
  note_silence(now);
  measure(now);
  // After a connect, the first message gets the full interval.
  const auto since = std::max(heard_.at, subscribed_.at);
  const bool in_time = every_ ? now.at - since <= *every_ : rate_ != Rate::none;
  return {.listening = listening_,
          .receiving = listening_ && in_time,
          .rate = rate_,
          .gaps = gaps_,
          .last_gap = last_gap_};
}

void MessageMonitor::note_silence(const Moment& now) {
  if (!listening_ || in_gap_ || !every_ || now.at - heard_.at <= *every_) return;
  in_gap_ = true;
  ++gaps_;
  last_gap_ = Gap{.from = heard_.time};
}

void MessageMonitor::close_gap(const Moment& now) {
  if (!in_gap_) return;
  in_gap_ = false;
  last_gap_->lasted = std::chrono::floor<std::chrono::seconds>(now.at - heard_.at);
}

void MessageMonitor::measure(const Moment& now) {
  if (!last_message_ || now.at - *last_message_ > std::max(kNoneAfter, every_.value_or(Duration::zero()))) {
    rate_ = Rate::none;
    if (!last_message_) return;
  }
  const auto passed = now.at - window_.at;
  // Report a first rate early; it is corrected at the end of the window.
  if (passed < kWindow && (rate_ != Rate::none || counted_ == 0)) return;
  const auto seconds = std::chrono::duration<double>(std::max<Duration>(passed, 1s)).count();
  if (counted_ > 0 || rate_ != Rate::none)
    rate_ = settle_rate(rate_, static_cast<double>(counted_) / seconds);
  if (passed < kWindow) return;
  window_ = now;
  counted_ = 0;
}

}  // namespace pawl::workers
