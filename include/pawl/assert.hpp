// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Assertions that stay on in release builds: a broken invariant stops the process before it can write.
///
///     PAWL_ASSERT(head.version == entry.version, "the log and the head agree", head.version, entry.version);
///
/// Prints the expression, the sentence, the values and the source location, then aborts. For programmer
/// errors only; bad input is an `Error`. Safe from any thread.

#include <concepts>
#include <source_location>
#include <string>
#include <string_view>

namespace pawl::detail {

[[noreturn]] void assertion_failed(std::string_view expression, std::string_view sentence,
                                   std::string_view values, std::source_location where) noexcept;

inline void append_value(std::string& out, std::string_view value) {
  out.append(" [").append(value).append("]");
}
inline void append_value(std::string& out, const char* value) { append_value(out, std::string_view(value)); }
inline void append_value(std::string& out, bool value) {
  append_value(out, std::string_view(value ? "true" : "false"));
}
template <class T>
  requires(std::integral<T> || std::floating_point<T>)
void append_value(std::string& out, T value) {
  append_value(out, std::string_view(std::to_string(value)));
}

template <class... Values>
[[noreturn]] void assertion_failed_with(std::string_view expression, std::string_view sentence,
                                        std::source_location where, const Values&... values) noexcept {
  std::string text;
  (append_value(text, values), ...);
  assertion_failed(expression, sentence, text, where);
}

}  // namespace pawl::detail

/// PAWL_ASSERT(condition, "what must hold" [, values…])
#define PAWL_ASSERT(condition, sentence, ...)                                                            \
  do {                                                                                                   \
    if (!(condition)) [[unlikely]] {                                                                     \
      ::pawl::detail::assertion_failed_with(#condition, sentence,                                        \
                                            std::source_location::current() __VA_OPT__(, ) __VA_ARGS__); \
    }                                                                                                    \
  } while (false)
