// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the command prints: tables for people, errors with their codes, exit codes (docs/cli.md).

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

/// Prints the error with its code and a hint to stderr; returns `kFailed`.
int report(const Error& error);

/// Prints one JSON document on one line; an error where it could not be written.
int print_json(Result<std::string> json);

/// The text with control characters shown as \xNN: what is stored must not steer a terminal.
std::string printable(std::string_view text);

/// Columns as wide as their widest cell. Not thread-safe.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::initializer_list<std::string_view> cells);
  /// To standard output; only the head where there are no rows.
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace pawl::cli
