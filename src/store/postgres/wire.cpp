// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/wire.hpp"

#include <array>

namespace pawl::postgres {
namespace {

template <class Integer>
void put(std::string& out, Integer value) {
  std::array<char, sizeof(Integer)> bytes{};
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    bytes.at(i) = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * (sizeof(Integer) - 1 - i)));
  }
  out.append(bytes.data(), bytes.size());
}

/// Prefixed with its size, as a field of a COPY.
template <class Integer>
void put_sized(std::string& out, Integer value) {
  std::array<char, 4 + sizeof(Integer)> bytes{0, 0, 0, sizeof(Integer)};
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    bytes.at(4 + i) = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * (sizeof(Integer) - 1 - i)));
  }
  out.append(bytes.data(), bytes.size());
}

template <class Integer>
void overwrite(std::string& out, std::size_t at, Integer value) {
  std::string bytes;
  put(bytes, value);
  out.replace(at, bytes.size(), bytes);
}

/// Length of the UTF-8 character at the beginning; 0 if it is invalid. As strict as the server: no overlong
/// forms, no surrogates, nothing above U+10FFFF.
std::size_t character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool good =
        follows(1) && follows(2) && !(first == 0xe0 && byte(1) < 0xa0) && !(first == 0xed && byte(1) > 0x9f);
    return good ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool good = follows(1) && follows(2) && follows(3) && !(first == 0xf0 && byte(1) < 0x90) &&
                      !(first == 0xf4 && byte(1) > 0x8f);
    return good ? 4 : 0;
  }
  return 0;
}

/// Position of the first byte that needs an escape; the size if there is none.
std::size_t first_escape(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size()) {
      // Eight bytes at a time, as long as all are between 2 and 127.
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + i, sizeof word);
      constexpr std::uint64_t kHigh = 0x8080808080808080;
      constexpr std::uint64_t kTwos = 0x0202020202020202;
      if (((word | (word - kTwos)) & kHigh) == 0) {
        i += 8;
        continue;
      }
    }
    if (static_cast<unsigned char>(text[i]) < 2) return i;
    const auto length = character(text.substr(i));
    if (length == 0) return i;
    i += length;
  }
  return text.size();
}

}  // namespace

void put_int4(std::string& out, std::int32_t value) { put(out, value); }
void put_int8(std::string& out, std::int64_t value) { put(out, value); }

std::int64_t get_int(std::string_view bytes) {
  std::uint64_t value = !bytes.empty() && (bytes[0] & 0x80) != 0 ? ~std::uint64_t{0} : 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

std::string_view escaped(std::string_view text, std::string& buffer) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  auto clean = first_escape(text);
  if (clean == text.size()) return text;
  buffer.clear();
  while (true) {
    buffer.append(text.substr(0, clean));
    text.remove_prefix(clean);
    if (text.empty()) return buffer;
    const auto byte = static_cast<unsigned char>(text[0]);
    buffer += '\1';
    if (byte < 2) {
      buffer += kDigits[byte];
    } else {
      buffer += 'x';
      buffer += kDigits[byte >> 4U];
      buffer += kDigits[byte & 15U];
    }
    text.remove_prefix(1);
    clean = first_escape(text);
  }
}

std::string unescaped(std::string_view text) {
  auto next = text.find('\1');
  if (next == std::string_view::npos) return std::string(text);
  std::string out;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  while (next != std::string_view::npos && next + 1 < text.size()) {
    out.append(text.substr(0, next));
    const char kind = text[next + 1];
    std::size_t used = 2;
    if (kind == 'x' && next + 3 < text.size()) {
      out += static_cast<char>(digit(text[next + 2]) * 16 + digit(text[next + 3]));
      used = 4;
    } else {
      out += kind == '1' ? '\1' : '\0';
    }
    text.remove_prefix(next + used);
    next = text.find('\1');
  }
  return out.append(text);
}

void RowArray::clear() {
  rows_ = 0;
  bytes_.clear();
  put_int4(bytes_, 1);  // dimensions
  put_int4(bytes_, 0);  // no NULLs among the rows
  put(bytes_, row_type_);
  put_int4(bytes_, 0);  // size, set at the end
  put_int4(bytes_, 1);  // lower bound
}

RowArray& RowArray::begin(std::int32_t columns) {
  row_begins_ = bytes_.size();
  put_int4(bytes_, 0);  // size, set at the end
  put_int4(bytes_, columns);
  return *this;
}

void RowArray::end() {
  overwrite(bytes_, row_begins_, static_cast<std::int32_t>(bytes_.size() - row_begins_ - 4));
  ++rows_;
}

void RowArray::add(const CopyRows& rows, std::span<const std::uint32_t> types) {
  auto left = rows.bytes();
  const auto take = [&](std::size_t count) {
    const auto taken = left.substr(0, count);
    left.remove_prefix(count);
    return taken;
  };
  while (!left.empty()) {
    begin(static_cast<std::int32_t>(get_int(take(2))));
    for (const auto type : types) {
      const auto length = take(4);
      const auto size = get_int(length);
      put(bytes_, type);
      bytes_.append(length);
      if (size > 0) bytes_.append(take(static_cast<std::size_t>(size)));
    }
    end();
  }
}

std::string_view RowArray::finish() {
  overwrite(bytes_, 12, rows_);
  return bytes_;
}

void RowArray::field(std::uint32_t type, std::int32_t size) {
  put(bytes_, type);
  put_int4(bytes_, size);
}

RowArray& RowArray::int4(std::int64_t value) {
  field(kInt4, 4);
  put(bytes_, static_cast<std::int32_t>(value));
  return *this;
}

RowArray& RowArray::int8(std::int64_t value) {
  field(kInt8, 8);
  put(bytes_, value);
  return *this;
}

RowArray& RowArray::boolean(bool value) {
  field(kBool, 1);
  bytes_ += value ? '\1' : '\0';
  return *this;
}

RowArray& RowArray::uuid(std::span<const std::uint8_t> bytes) {
  field(kUuid, static_cast<std::int32_t>(bytes.size()));
  for (const auto byte : bytes) bytes_ += static_cast<char>(byte);
  return *this;
}

RowArray& RowArray::text(std::string_view text) {
  const auto stored = escaped(text, buffer_);
  field(kText, static_cast<std::int32_t>(stored.size()));
  bytes_.append(stored);
  return *this;
}

void CopyRows::clear() {
  rows_ = 0;
  bytes_.clear();
}

CopyRows& CopyRows::begin(std::int16_t columns) {
  constexpr std::size_t kUsual = std::size_t{32} << 10;
  if (bytes_.capacity() < kUsual) bytes_.reserve(kUsual);
  put(bytes_, columns);
  ++rows_;
  return *this;
}

CopyRows& CopyRows::int2(std::int64_t value) {
  put_sized(bytes_, static_cast<std::int16_t>(value));
  return *this;
}

CopyRows& CopyRows::int4(std::int64_t value) {
  put_sized(bytes_, static_cast<std::int32_t>(value));
  return *this;
}

CopyRows& CopyRows::int8(std::int64_t value) {
  put_sized(bytes_, value);
  return *this;
}

CopyRows& CopyRows::boolean(bool value) {
  put_sized(bytes_, static_cast<std::int8_t>(value ? 1 : 0));
  return *this;
}

CopyRows& CopyRows::uuid(std::span<const std::uint8_t> bytes) {
  put_int4(bytes_, static_cast<std::int32_t>(bytes.size()));
  bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return *this;
}

CopyRows& CopyRows::text(std::string_view text) {
  const auto stored = escaped(text, buffer_);
  put_int4(bytes_, static_cast<std::int32_t>(stored.size()));
  bytes_.append(stored);
  return *this;
}

CopyRows& CopyRows::optional_text(std::string_view text) { return text.empty() ? null() : this->text(text); }

CopyRows& CopyRows::null() {
  put_int4(bytes_, -1);
  return *this;
}

}  // namespace pawl::postgres
