// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/backoff.hpp"

#include <algorithm>
#include <random>
#include <thread>

namespace pawl::postgres {

Backoff::Backoff(Duration patience) : end_(std::chrono::steady_clock::now() + patience) {}

bool Backoff::again() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= end_) return false;
  static thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<std::int64_t> jitter(next_.count() / 2, next_.count());
  std::this_thread::sleep_until(std::min(end_, now + Duration(jitter(random))));
  next_ = std::min<Duration>(next_ * 2, std::chrono::milliseconds(500));
  return true;
}

}  // namespace pawl::postgres
