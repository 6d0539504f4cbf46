// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An application's own statement as data, which runs in the same transaction as a transition.
///
///     pawl::Sql insert{.text = "INSERT INTO invoice(id, cents) VALUES(?1, ?2)",
///                      .rows = {{"i-1", 4200}},
///                      .expect = 1};
///
/// Placeholders are ?1, ?2, … on every store. A statement runs once per row of parameters.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pawl/time.hpp"

namespace pawl {

/// Bytes, as opposed to text.
struct Blob {
  std::string bytes;
  bool operator==(const Blob&) const = default;
};

/// One parameter. A value.
class SqlValue {
 public:
  using Variant = std::variant<std::nullptr_t, std::int64_t, double, std::string, Blob>;

  explicit(false) SqlValue(std::nullptr_t) {}
  explicit(false) SqlValue(std::int64_t value) : value_(value) {}
  explicit(false) SqlValue(int value) : value_(std::int64_t{value}) {}
  explicit(false) SqlValue(double value) : value_(value) {}
  explicit(false) SqlValue(std::string text) : value_(std::move(text)) {}
  explicit(false) SqlValue(const char* text) : value_(std::string(text)) {}
  explicit(false) SqlValue(Blob blob) : value_(std::move(blob)) {}
  bool operator==(const SqlValue&) const = default;

  const Variant& get() const { return value_; }

 private:
  Variant value_ = nullptr;
};

/// A statement with its parameters. Reading and writing only: transaction control, PRAGMA and ATTACH are
/// refused.
struct Sql {
  std::string text;
  std::vector<std::vector<SqlValue>> rows{{}};  ///< by default it runs once, without parameters
  std::optional<std::int64_t> expect{};         ///< total number of rows that all runs must affect
  bool operator==(const Sql&) const = default;
};

/// Limits of one query of the application. A query that exceeds them fails; the store stays usable.
struct QueryLimits {
  Duration timeout =
      std::chrono::seconds(30);  ///< includes the wait for a connection; beyond that `timed_out`
  std::size_t rows = 1'000'000;  ///< of the result; beyond that `too_large`
  std::size_t bytes = std::size_t{256} << 20;  ///< of the result's texts and blobs; likewise
};

/// Statements that migrate the application's tables; CREATE, ALTER and DROP are allowed.
using Migration = std::vector<Sql>;

}  // namespace pawl
