// SPDX-License-Identifier: Apache-2.0
#pragma once

/// ULIDs: 128-bit ids in the order of their creation. 48 bits of milliseconds, then 80 random bits.
///
///     pawl::UlidSource ids([&] { return runtime.random(); });
///     pawl::Ulid id = ids.next(runtime.now());
///     id.to_string();                                        // "01JCV7Q3M8K5T2X9ZB4N6R0WYD"
///     pawl::Ulid::parse("01jcv7q3m8k5t2x9zb4n6r0wyd");       // either case

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// A value: 16 bytes, most significant first, so that byte order, text order and order of creation agree. The
/// default is all zeros. Const use is safe concurrently.
class Ulid {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  constexpr Ulid() = default;
  constexpr explicit Ulid(const Bytes& bytes) : bytes_(bytes) {}

  /// Exactly 26 characters of Crockford's base 32 in either case, the first at most 7. The look-alikes I, L,
  /// O and U are refused, so that one id has one spelling per case. Error: `invalid_argument`, field `text`.
  static Result<Ulid> parse(std::string_view text);

  /// 26 upper-case characters.
  std::string to_string() const;

  /// The time of creation, in milliseconds.
  Time time() const;

  constexpr const Bytes& bytes() const noexcept { return bytes_; }
  auto operator<=>(const Ulid&) const = default;

 private:
  Bytes bytes_{};
};

/// Generates ULIDs, each greater than the one before: within a millisecond, or when the clock goes back, by
/// incrementing; on overflow, with the next millisecond. Times before 1970 count as 1970.
/// Not thread-safe: one source per thread or lane, or a lock around it.
class UlidSource {
 public:
  using Random = std::move_only_function<std::uint64_t()>;

  /// `random` gives 64 fresh bits per call.
  explicit UlidSource(Random random) : random_(std::move(random)) {}

  Ulid next(Time now);

 private:
  void draw();

  Random random_;
  bool started_ = false;
  std::uint64_t millis_ = 0;
  std::uint16_t high_ = 0;  ///< the upper 16 of the 80 random bits
  std::uint64_t low_ = 0;
};

}  // namespace pawl

template <>
struct std::hash<pawl::Ulid> {
  std::size_t operator()(const pawl::Ulid& id) const noexcept;
};
