// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Keeps a number of requests outstanding and measures them: every answer sends the next request.
///
///     auto measured = bench::drive({.outstanding = 256}, [&](std::size_t slot, bench::Answered answered) {
///       journal.append(record, std::move(answered));
///     });
///     measured.per_second;

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <ctime>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

using Seconds = std::chrono::duration<double>;

struct LoadOptions {
  std::size_t outstanding = 1;
  Seconds warm_up{0.3};
  Seconds length{1.5};
};

struct Measured {
  double per_second = 0;
  double p50_us = 0;
  double p99_us = 0;
  double cpu_us = 0;  ///< of the whole process, per request
  bool failed = false;
};

/// CPU seconds of this process so far.
inline double process_cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The value below which this part of the others lies; `values` is reordered.
inline double percentile(std::vector<float>& values, double part) {
  if (values.empty()) return 0;
  const auto index = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::ranges::nth_element(values, place);
  return *place;
}

/// What a request calls when it is durable, on a thread of whoever answers.
using Answered = std::move_only_function<void(bool good)>;

/// One measurement. A thread of its own is the caller: it sends, collects answers and sends again, as the
/// callers of an engine do, while others answer.
template <class Send>
class Load {
 public:
  Load(LoadOptions options, Send send)
      : options_(options), send_(std::move(send)), slots_(options.outstanding), active_(options.outstanding) {
    latencies_.reserve(std::size_t{1} << 22);
  }

  Measured run() {
    std::jthread caller([this] { call(); });
    std::this_thread::sleep_for(options_.warm_up);
    const auto begin = Clock::now();
    const double cpu = process_cpu_seconds();
    phase_ = Phase::measure;
    std::this_thread::sleep_for(options_.length);
    phase_ = Phase::stop;
    const Seconds taken = Clock::now() - begin;
    const double used = process_cpu_seconds() - cpu;
    caller.join();
    const auto count = static_cast<double>(latencies_.size());
    return {.per_second = count / taken.count(),
            .p50_us = percentile(latencies_, 0.5),
            .p99_us = percentile(latencies_, 0.99),
            .cpu_us = used * 1e6 / count,
            .failed = failed_ || latencies_.empty()};
  }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase { warm_up, measure, stop };
  struct Answer {
    std::size_t slot;
    bool good;
    Clock::time_point at;
  };

  void call() {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) next(slot);
    std::vector<Answer> answers;
    while (active_ != 0) {
      {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [this] { return !answers_.empty(); });
        answers.swap(answers_);
      }
      for (const auto& answer : answers) take(answer);
      answers.clear();
    }
  }

  void next(std::size_t slot) {
    slots_[slot] = Clock::now();
    send_(slot, [this, slot](bool good) {
      const std::lock_guard lock(mutex_);
      answers_.push_back({slot, good, Clock::now()});
      if (answers_.size() == 1) arrived_.notify_one();
    });
  }

  void take(const Answer& answer) {
    const auto phase = phase_.load(std::memory_order_relaxed);
    if (!answer.good) failed_ = true;
    if (phase == Phase::measure && latencies_.size() < latencies_.capacity()) {
      latencies_.push_back(std::chrono::duration<float, std::micro>(answer.at - slots_[answer.slot]).count());
    }
    if (answer.good && phase != Phase::stop) return next(answer.slot);
    --active_;
  }

  LoadOptions options_;
  Send send_;
  std::vector<Clock::time_point> slots_;
  std::vector<float> latencies_;
  std::atomic<Phase> phase_{Phase::warm_up};
  std::size_t active_;
  bool failed_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Answer> answers_;
};

template <class Send>
Measured drive(LoadOptions options, Send send) {
  return Load<Send>(options, std::move(send)).run();
}

}  // namespace bench
