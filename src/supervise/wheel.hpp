// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The deadlines of all workers: a timer wheel with a slot per tick and the nodes linked into the slots.
/// Setting a deadline needs no allocation and no search, however many workers there are.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace pawl::supervise {

/// The base of what a wheel holds. Not copyable while it is linked.
struct WheelLink {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  WheelLink* before = nullptr;
  WheelLink* after = nullptr;
  std::int64_t due = kNever;  ///< the tick
};

/// Not thread-safe.
class Wheel {
 public:
  Wheel() {
    for (auto& slot : slots_) slot.before = slot.after = &slot;
  }
  Wheel(const Wheel&) = delete;
  Wheel& operator=(const Wheel&) = delete;

  void set(WheelLink& link, std::int64_t due) {
    if (link.due == due) return;
    remove(link);
    link.due = due;
    if (due == WheelLink::kNever) return;
    auto& slot = slots_[static_cast<std::size_t>(due) % kSlots];
    link.before = slot.before;
    link.after = &slot;
    slot.before->after = &link;
    slot.before = &link;
    ++size_;
  }

  void remove(WheelLink& link) {
    if (link.after != nullptr) {
      link.before->after = link.after;
      link.after->before = link.before;
      --size_;
    }
    link.before = link.after = nullptr;
    link.due = WheelLink::kNever;
  }

  /// Unlinks and passes to `take` everything due at or before this tick; `take` may set later deadlines.
  template <class F>
  void advance(std::int64_t now, F take) {
    const auto rounds = static_cast<std::int64_t>(kSlots);
    if (now - last_ > rounds) last_ = now - rounds;
    for (; last_ < now; ++last_) {
      auto& slot = slots_[static_cast<std::size_t>(last_ + 1) % kSlots];
      for (auto* link = slot.after; link != &slot;) {
        auto* next = link->after;
        if (link->due <= now) {
          remove(*link);
          // `take` may unlink others: restart from the beginning of the slot.
          take(*link);
          next = slot.after;
        }
        link = next;
      }
    }
  }

  /// The next tick at which something may be due, at most one round ahead; `kNever` if the wheel is empty.
  std::int64_t next() const {
    if (size_ == 0) return WheelLink::kNever;
    for (std::int64_t tick = last_ + 1; tick <= last_ + static_cast<std::int64_t>(kSlots); ++tick) {
      const auto& slot = slots_[static_cast<std::size_t>(tick) % kSlots];
      for (const auto* link = slot.after; link != &slot; link = link->after) {
        if (link->due <= tick) return tick;
      }
    }
    return last_ + static_cast<std::int64_t>(kSlots);
  }

 private:
  static constexpr std::size_t kSlots = 1024;
  std::array<WheelLink, kSlots> slots_{};
  std::int64_t last_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pawl::supervise
