// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whether messages come as often as they should, and when they did not. Every gap is counted once, also one
/// that began and ended between two looks.
///
///     reception.subscribed(at);
///     reception.message(at);
///     reception.look(at, 10s).gaps;

#include <cstdint>
#include <mutex>
#include <optional>

#include "pawl/time.hpp"
#include "workers/types/buckets.hpp"

namespace pawl::workers {

/// One moment by both clocks: waits are measured on the one, the other is what people read.
struct Moment {
  Instant at{};
  Time time{};
};
/// Of the real clocks.
Moment this_moment();

struct Gap {
  Time from{};                       ///< the last message before it
  std::optional<Duration> lasted{};  ///< in whole seconds; empty while it lasts
  bool operator==(const Gap&) const = default;
};

struct ReceptionView {
  bool listening = false;  ///< messages are expected
  bool receiving = false;
  Rate rate = Rate::none;
  std::uint32_t gaps = 0;  ///< longer than what was expected, since the instance began
  std::optional<Gap> last_gap{};
};

/// Thread-safe.
class Reception {
 public:
  /// Gaps are longer than this; nothing: there are none. Given before messages are expected.
  void expect(std::optional<Duration> every);
  /// From now on messages are expected. A lost connection does not end that: the time without one is a gap.
  void subscribed(const Moment& now);
  void message(const Moment& now);
  /// None is expected any more, because nobody wants to listen.
  void end(const Moment& now);
  ReceptionView look(const Moment& now);

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
