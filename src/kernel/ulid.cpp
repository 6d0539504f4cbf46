// SPDX-License-Identifier: Apache-2.0
#include "pawl/ulid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pawl/assert.hpp"

namespace pawl {
namespace {

constexpr std::size_t kTextSize = 26;
constexpr std::string_view kAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
constexpr std::uint64_t kLastMillis = (std::uint64_t{1} << 48U) - 1;

constexpr std::uint8_t kNoDigit = 0xFF;
constexpr auto kDigits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    const char upper = kAlphabet[i];
    digits[static_cast<unsigned char>(upper)] = static_cast<std::uint8_t>(i);
    if (upper >= 'A') digits[static_cast<unsigned char>(upper - 'A' + 'a')] = static_cast<std::uint8_t>(i);
  }
  return digits;
}();

std::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  const std::string shown(text.substr(0, 64));
  return fail(Code::invalid_argument,
              fmt::format("\"{}{}\" is not a ULID: {}; expected 26 characters such as "
                          "01JCV7Q3M8K5T2X9ZB4N6R0WYD",
                          shown, text.size() > shown.size() ? "…" : "", why),
              {{"text", shown}});
}

/// `size` bytes as one number, most significant first.
std::uint64_t load(const std::uint8_t* from, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value = value << 8U | from[i];
  return value;
}

void store(std::uint8_t* to, std::size_t size, std::uint64_t value) {
  for (std::size_t i = size; i-- > 0; value >>= 8U) to[i] = static_cast<std::uint8_t>(value & 0xFFU);
}

}  // namespace

Result<Ulid> Ulid::parse(std::string_view text) {
  if (text.size() != kTextSize) return refuse(text, fmt::format("it has {} characters", text.size()));
  // 26 characters carry 130 bits: the first may fill only three of its five.
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  for (std::size_t i = 0; i < kTextSize; ++i) {
    const std::uint8_t digit = kDigits[static_cast<unsigned char>(text[i])];
    if (digit == kNoDigit)
      return refuse(text, fmt::format("character {} is not one of {}", i + 1, kAlphabet));
    if (i == 0 && digit > 7) return refuse(text, "the first character is above 7, so the time does not fit");
    high = high << 5U | low >> 59U;
    low = low << 5U | digit;
  }
  Bytes bytes;
  store(bytes.data(), 8, high);
  store(bytes.data() + 8, 8, low);
  return Ulid(bytes);
}

std::string Ulid::to_string() const {
  std::uint64_t high = load(bytes_.data(), 8);
  std::uint64_t low = load(bytes_.data() + 8, 8);
  std::string text(kTextSize, '0');
  for (std::size_t i = kTextSize; i-- > 0;) {
    text[i] = kAlphabet[low & 31U];
    low = low >> 5U | high << 59U;
    high >>= 5U;
  }
  return text;
}

Time Ulid::time() const {
  return Time(std::chrono::milliseconds(static_cast<std::int64_t>(load(bytes_.data(), 6))));
}

Ulid UlidSource::next(Time now) {
  const auto since_epoch = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const auto millis =
      std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(since_epoch, 0)), kLastMillis);
  if (!started_ || millis > millis_) {
    started_ = true;
    millis_ = millis;
    draw();
  } else if (++low_ == 0 && ++high_ == 0) {
    PAWL_ASSERT(millis_ < kLastMillis, "ULIDs last until the year 10889", millis_);
    ++millis_;
    draw();
  }
  Ulid::Bytes bytes;
  store(bytes.data(), 6, millis_);
  store(bytes.data() + 6, 2, high_);
  store(bytes.data() + 8, 8, low_);
  return Ulid(bytes);
}

void UlidSource::draw() {
  low_ = random_();
  high_ = static_cast<std::uint16_t>(random_() >> 48U);
}

}  // namespace pawl

std::size_t std::hash<pawl::Ulid>::operator()(const pawl::Ulid& id) const noexcept {
  const auto& bytes = id.bytes();
  // Ids of one burst differ in their last bits only and ids of one host in the first; both must count.
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}
