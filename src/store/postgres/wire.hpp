// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PostgreSQL's binary formats: single values, arrays of composite values, rows of a COPY, and texts with
/// bytes that a database text cannot contain.
///
///     RowArray rows(row_type);
///     rows.begin(3).int8(seq).uuid(id.bytes).text(state).end();
///     params.borrow(array_type, rows.finish());

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace pawl::postgres {

/// Type OIDs, which are fixed.
enum Oid4 : std::uint32_t {
  kBool = 16,
  kBytea = 17,
  kInt8 = 20,
  kInt2 = 21,
  kInt4 = 23,
  kText = 25,
  kFloat4 = 700,
  kFloat8 = 701,
  kNumeric = 1700,
  kUuid = 2950,
};

void put_int4(std::string& out, std::int32_t value);
void put_int8(std::string& out, std::int64_t value);
std::int64_t get_int(std::string_view bytes);

/// A text of the database is UTF-8 without NUL. Other bytes are escaped with U+0001, which does not occur in
/// JSON: "\1" '0' for NUL, "\1" '1' for U+0001, "\1" 'x' and two digits for any other byte. Returns the text
/// itself if nothing needs an escape, otherwise `buffer`.
std::string_view escaped(std::string_view text, std::string& buffer);
std::string unescaped(std::string_view text);

/// Header and trailer of a binary COPY.
inline constexpr std::string_view kCopyHeader{"PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19};
inline constexpr std::string_view kCopyTrailer{"\377\377", 2};

/// Consecutive rows of a COPY.
class CopyRows {
 public:
  bool empty() const { return rows_ == 0; }
  std::size_t size() const { return rows_; }
  std::string_view bytes() const { return bytes_; }
  void clear();

  CopyRows& begin(std::int16_t columns);
  CopyRows& int2(std::int64_t value);
  CopyRows& int4(std::int64_t value);
  CopyRows& int8(std::int64_t value);
  CopyRows& boolean(bool value);
  CopyRows& uuid(std::span<const std::uint8_t> bytes);
  CopyRows& text(std::string_view text);
  /// NULL if the text is empty.
  CopyRows& optional_text(std::string_view text);
  CopyRows& null();

 private:
  std::size_t rows_ = 0;
  std::string bytes_;
  std::string buffer_;
};

/// An array of composite values, as a parameter of `unnest`.
class RowArray {
 public:
  RowArray() = default;
  /// `row_type` is the OID of the composite type.
  explicit RowArray(std::uint32_t row_type) : row_type_(row_type) { clear(); }

  void clear();
  bool empty() const { return rows_ == 0; }
  std::size_t size() const { return static_cast<std::size_t>(rows_); }
  std::size_t bytes() const { return bytes_.size(); }

  RowArray& begin(std::int32_t columns);
  RowArray& int4(std::int64_t value);
  RowArray& int8(std::int64_t value);
  RowArray& boolean(bool value);
  RowArray& uuid(std::span<const std::uint8_t> bytes);
  RowArray& text(std::string_view text);
  /// Ends the row.
  void end();
  /// Adds the rows of a COPY, whose columns have these types.
  void add(const CopyRows& rows, std::span<const std::uint32_t> types);

  /// The whole array; further rows may follow.
  std::string_view finish();

 private:
  void field(std::uint32_t type, std::int32_t size);

  std::uint32_t row_type_ = 0;
  std::int32_t rows_ = 0;
  std::size_t row_begins_ = 0;
  std::string bytes_;
  std::string buffer_;
};

}  // namespace pawl::postgres
