// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Standard output and input as a terminal: size, colours, prompts, progress.

#include <cstddef>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::cli {

enum class Style { plain, head, dim, good, busy, bad, key };

/// Whether standard output is a terminal that shows colours (NO_COLOR is unset, TERM is not "dumb").
bool colours();
bool output_is_terminal();
bool errors_are_terminal();

struct Size {
  std::size_t rows = 24;
  std::size_t columns = 80;
};
/// Of the terminal at standard output; `COLUMNS` and `LINES` where it does not say.
Size terminal_size();

/// The text with the codes of the style if there are colours.
std::string paint(std::string_view text, Style style);

/// Reads a line without showing it where standard input is a terminal; the prompt goes to stderr. Error:
/// `invalid_argument` where the input ends.
Result<std::string> read_secret(std::string_view prompt);

/// A progress bar on stderr; no-op without a terminal. Not thread-safe.
class ProgressBar {
 public:
  explicit ProgressBar(std::string label) : label_(std::move(label)) {}
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// From 0 to 1, with a text behind it.
  void show(double done, std::string_view behind = {});
  void rename(std::string label) { label_ = std::move(label); }
  void clear();

 private:
  std::string label_;
  std::string shown_;
};

}  // namespace pawl::cli
