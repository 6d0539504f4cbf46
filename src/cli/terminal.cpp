// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>

#include "cli/text.hpp"

namespace pawl::cli {
namespace {

std::optional<std::size_t> positive(const char* name) {
  const char* text = std::getenv(name);
  const auto number = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return number > 0 && number < 10'000 ? std::optional(static_cast<std::size_t>(number)) : std::nullopt;
}

std::string_view code_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::head:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::good:
      return "\x1b[32m";
    case Style::busy:
      return "\x1b[33m";
    case Style::bad:
      return "\x1b[31m";
    case Style::key:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

bool output_is_terminal() {
  static const bool kTerminal = ::isatty(STDOUT_FILENO) == 1;
  return kTerminal;
}

bool errors_are_terminal() {
  static const bool kTerminal = ::isatty(STDERR_FILENO) == 1;
  return kTerminal;
}

bool colours() {
  static const bool kColours = [] {
    const char* none = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    return output_is_terminal() && (none == nullptr || *none == '\0') &&
           (term == nullptr || std::strcmp(term, "dumb") != 0);
  }();
  return kColours;
}

Size terminal_size() {
  Size size{.rows = positive("LINES").value_or(24), .columns = positive("COLUMNS").value_or(80)};
  winsize told{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &told) == 0) {
    if (told.ws_row > 0) size.rows = told.ws_row;
    if (told.ws_col > 0) size.columns = told.ws_col;
  }
  return size;
}

std::string paint(std::string_view text, Style style) {
  if (style == Style::plain || text.empty() || !colours()) return std::string(text);
  return fmt::format("{}{}\x1b[0m", code_of(style), text);
}

Result<std::string> read_secret(std::string_view prompt) {
  termios before{};
  const bool terminal = ::tcgetattr(STDIN_FILENO, &before) == 0;
  if (terminal) {
    auto silent = before;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent);
    // After echo is off, so that an immediate answer is not shown.
    fmt::print(stderr, "{}: ", printable(prompt));
  }
  std::string line;
  std::getline(std::cin, line);
  const bool read = !std::cin.fail();
  if (terminal) {
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    fmt::print(stderr, "\n");
  }
  if (!read) return fail(Code::invalid_argument, fmt::format("{}: no input", prompt));
  return line;
}

void ProgressBar::show(double done, std::string_view behind) {
  if (!errors_are_terminal()) return;
  constexpr std::size_t kCells = 30;
  const auto share = std::clamp(done, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * kCells);
  std::string bar;
  for (std::size_t i = 0; i < kCells; ++i) bar += i < full ? "█" : "░";
  auto line = fmt::format("{} {} {:3.0f} %", printable(label_), bar, share * 100);
  if (!behind.empty())
    line = clip(fmt::format("{}  {}", line, printable(behind)), terminal_size().columns - 1);
  if (line == shown_) return;
  shown_ = std::move(line);
  fmt::print(stderr, "\r{}\x1b[K", shown_);
}

void ProgressBar::clear() {
  if (shown_.empty()) return;
  fmt::print(stderr, "\r\x1b[K");
  shown_.clear();
}

}  // namespace pawl::cli
