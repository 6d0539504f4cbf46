// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Monitors whether messages arrive as often as expected. Every gap is counted once, also one that began and
/// ended between two calls of `stats`.
///
///     monitor.subscribed(at);
///     monitor.message(at);
///     monitor.stats(at, 10s).gaps;

#include <cstdint>
#include <mutex>
#include <optional>

#include "pawl/time.hpp"
#include "workers/types/buckets.hpp"

namespace pawl::workers {

/// One moment on both clocks: the steady one for intervals, the wall clock for display.
struct Moment {
  Instant at{};
  Time time{};
};
/// Reads the real clocks.
Moment this_moment();

struct Gap {
  Time from{};                       ///< the last message before it
  std::optional<Duration> lasted{};  ///< in whole seconds; empty while it lasts
  bool operator==(const Gap&) const = default;
};

struct MessageStats {
  bool listening = false;  ///< messages are expected
  bool receiving = false;
  Rate rate = Rate::none;
  std::uint32_t gaps = 0;  ///< since the instance started
  std::optional<Gap> last_gap{};
};

/// Thread-safe.
class MessageMonitor {
 public:
  /// Longer times without a message are gaps; empty: there are no gaps. Call before `subscribed`.
  void expect(std::optional<Duration> every);
  /// Messages are expected from now on, also while the connection is lost.
  void subscribed(const Moment& now);
  void message(const Moment& now);
  /// No more messages are expected.
  void end(const Moment& now);
  MessageStats stats(const Moment& now);

 private:
  void note_silence(const Moment& now);
  void close_gap(const Moment& now);
  void measure(const Moment& now);

  std::mutex mutex_;
  std::optional<Duration> every_{};
  bool listening_ = false;
  bool in_gap_ = false;
  Moment heard_{};       ///< the last message, or when listening began
  Moment subscribed_{};  ///< the last time
  Moment window_{};      ///< when counting began
  std::uint64_t counted_ = 0;
  std::optional<Instant> last_message_{};
  Rate rate_ = Rate::none;
  std::uint32_t gaps_ = 0;
  std::optional<Gap> last_gap_{};
};

}  // namespace pawl::workers
