// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A small seeded random generator with the same results on every platform and compiler, which the
/// distributions of the standard library do not guarantee.
///
///     pawl::Random random{42};
///     std::uint64_t die = 1 + random.below(6);        // every face equally likely
///     if (random.chance_ppm(50'000)) drop_message();  // 5 percent
///
/// Not for secrets: the numbers are predictable.

#include <array>
#include <bit>
#include <cstdint>

#include "pawl/assert.hpp"

namespace pawl {

/// The splitmix64 sequence: turns any number, also a small one, into well mixed bits. Advances `state`.
constexpr std::uint64_t splitmix64(std::uint64_t& state) noexcept {
  state += 0x9e3779b97f4a7c15;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// xoshiro256**. A value: copy it to repeat its numbers. Externally synchronised.
class Random {
 public:
  using State = std::array<std::uint64_t, 4>;

  /// Equal seeds give equal numbers.
  explicit constexpr Random(std::uint64_t seed) noexcept {
    for (auto& word : state_) word = splitmix64(seed);
  }

  /// Starts from 256 bits, which must not all be zero.
  explicit constexpr Random(const State& state) : state_(state) {
    PAWL_ASSERT(state != State{}, "the state of a random generator has a bit set");
  }

  /// 64 random bits.
  constexpr std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// A number from 0 to `bound` - 1, each equally likely. `bound` is at least 1.
  constexpr std::uint64_t below(std::uint64_t bound) {
    PAWL_ASSERT(bound > 0, "a random number is drawn below a positive bound");
    if (bound == 1) return 0;
    // Drawing just enough bits and rejecting what is too large is unbiased and needs no division.
    const int surplus = std::countl_zero(bound - 1);
    for (;;) {
      const std::uint64_t drawn = next() >> surplus;
      if (drawn < bound) return drawn;
    }
  }

  /// True with a probability of `ppm` in a million. Draws a number also when the answer is certain.
  constexpr bool chance_ppm(std::uint32_t ppm) { return below(1'000'000) < ppm; }

 private:
  State state_{};
};

}  // namespace pawl
