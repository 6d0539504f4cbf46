// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Errors are values: every call that can fail returns `Result<T>`.
///
///     pawl::Result<int> parse_port(std::string_view text);
///
///     pawl::Result<void> listen(std::string_view text) {
///       PAWL_TRY(int port, parse_port(text));          // returns the error to the caller
///       if (port < 1024) return pawl::fail(pawl::Code::invalid_argument, "the port is privileged");
///       return {};
///     }
///
/// Each `Code` has a permanent number (`error_codes.hpp`) and a page `docs/errors/<number>.md`. The message
/// says what happened and what to do; the fields are for programs.

#include <cstdint>
#include <expected>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/error_codes.hpp"

namespace pawl {

/// The description of a code. Static data.
struct CodeInfo {
  Code code;
  std::string_view name;     ///< stable name, e.g. "illegal_event"
  std::string_view summary;  ///< one sentence for people
};

/// All codes in ascending order of their numbers.
std::span<const CodeInfo> all_codes() noexcept;

/// The entry of `code`.
const CodeInfo& info(Code code) noexcept;

/// The stable name of `code`, e.g. "illegal_event".
std::string_view name(Code code) noexcept;

/// A failure: a code for programs, a message for people, and named facts for both. A value; copy it freely.
class [[nodiscard]] Error {
 public:
  struct Field {
    std::string key;
    std::string value;
    bool operator==(const Field&) const = default;
  };

  Error(Code code, std::string message, std::vector<Field> fields = {})
      : code_(code), message_(std::move(message)), fields_(std::move(fields)) {}

  Code code() const noexcept { return code_; }
  const std::string& message() const noexcept { return message_; }
  const std::vector<Field>& fields() const noexcept { return fields_; }

  /// The value of a field, or an empty view.
  std::string_view field(std::string_view key) const noexcept;

  /// Adds a fact on the way up; returns the error so that it can be returned in one line.
  Error& with(std::string key, std::string value) &;
  Error&& with(std::string key, std::string value) &&;

  /// Prepends context to the message: "while loading pawl.yaml: …".
  Error&& while_(std::string_view doing) &&;

  /// One line: "PAWL-1001 illegal_event: message (key=value, …)".
  std::string to_string() const;

  bool operator==(const Error&) const = default;

 private:
  Code code_;
  std::string message_;
  std::vector<Field> fields_;
};

}  // namespace pawl

/// What `value()` of a Result throws that holds an error: its `what()` is the error's text, so that a program
/// that ends by it says why.
template <>
class std::bad_expected_access<pawl::Error> : public std::bad_expected_access<void> {
 public:
  explicit bad_expected_access(pawl::Error error);

  const char* what() const noexcept override { return text_.c_str(); }
  pawl::Error& error() & noexcept { return error_; }
  const pawl::Error& error() const& noexcept { return error_; }
  pawl::Error&& error() && noexcept { return std::move(error_); }
  const pawl::Error&& error() const&& noexcept { return std::move(error_); }

 private:
  pawl::Error error_;
  std::string text_;
};

namespace pawl {

template <class T>
using Result = std::expected<T, Error>;

/// Returns an error as a Result.
[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string message,
                                                 std::vector<Error::Field> fields = {}) {
  return std::unexpected(Error(code, std::move(message), std::move(fields)));
}
[[nodiscard]] inline std::unexpected<Error> fail(Error error) { return std::unexpected(std::move(error)); }

}  // namespace pawl

#define PAWL_DETAIL_CAT2(a, b) a##b
#define PAWL_DETAIL_CAT(a, b) PAWL_DETAIL_CAT2(a, b)
#define PAWL_DETAIL_TRY(tmp, decl, ...)                                    \
  auto tmp = (__VA_ARGS__);                                                \
  if (!tmp) return std::unexpected<::pawl::Error>(std::move(tmp).error()); \
  decl = *std::move(tmp)

/// `PAWL_TRY(auto x, f())` declares x with f's value, or returns f's error.
#define PAWL_TRY(decl, ...) PAWL_DETAIL_TRY(PAWL_DETAIL_CAT(pawl_try_, __LINE__), decl, __VA_ARGS__)

/// `PAWL_CHECK(f())` returns f's error; f's value, if any, is dropped.
#define PAWL_CHECK(...)                                                                                  \
  do {                                                                                                   \
    auto pawl_check_result = (__VA_ARGS__);                                                              \
    if (!pawl_check_result) return std::unexpected<::pawl::Error>(std::move(pawl_check_result).error()); \
  } while (false)
