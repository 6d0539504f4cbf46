// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Output of the command: tables for people, errors with their codes, exit codes (docs/cli.md).

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.hpp"
#include "cli/text.hpp"
#include "pawl/error.hpp"

namespace pawl::cli {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kUnreachable = 3;
inline constexpr int kNotAuthorised = 4;
inline constexpr int kNotFound = 5;
inline constexpr int kConflict = 6;
inline constexpr int kRunEnded = 7;

/// The exit code for this error.
int exit_code(Code code) noexcept;

/// Prints the error with its code and a hint to stderr; returns its exit code.
int report(const Error& error);

/// Prints one JSON document on one line; an error where it could not be written. What could steer a terminal
/// is written as \\uNNNN, which means the same.
int print_json(Result<std::string> json);

/// A note on stderr.
void note(std::string_view text);

/// One cell of a table. Its text is made printable here, for every table.
struct Cell {
  std::string text;
  Style style = Style::plain;
  Cell(std::string_view shown, Style as = Style::plain) : text(printable(shown)), style(as) {}
  Cell(const std::string& shown, Style as = Style::plain) : Cell(std::string_view(shown), as) {}
  Cell(const char* shown, Style as = Style::plain) : Cell(std::string_view(shown), as) {}
};

/// Columns as wide as their widest cell; on a terminal, lines are cut off at its width. A head that begins
/// with '>' is a column of numbers. Not thread-safe.
class Table {
 public:
  explicit Table(const std::vector<std::string>& head);
  void add(std::vector<Cell> cells);
  /// The lines, head first, cut off at this many columns; 0: not cut off.
  std::vector<std::string> lines(std::size_t most) const;
  /// Prints to standard output; without rows, only the head.
  void print() const;

 private:
  std::vector<std::vector<Cell>> rows_;
  std::vector<bool> right_;
};

}  // namespace pawl::cli
