// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <algorithm>
#include <thread>

namespace pawl {

Result<bool> Store::wait(Seq after, Duration most) {
  // Nothing tells one process of another's commits here, so it looks.
  constexpr Duration kPause = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + most;
  while (true) {
    PAWL_TRY(const auto entries, feed(after, 1));
    if (!entries.empty()) return true;
    const auto left = std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
    if (left <= Duration::zero()) return false;
    std::this_thread::sleep_for(std::min(left, kPause));
  }
}

}  // namespace pawl
