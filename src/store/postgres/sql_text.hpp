// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Processes an application's statement before it is sent: translates placeholders, and refuses statements
/// with effects beyond the transaction or on the store's own tables.
///
///     const auto text = SqlText::scan("UPDATE t SET a = ?1 -- why?1");   // text.translated: a = $1 -- why?1
///     if (auto what = refused(text, Allow::write, "pawl")) …

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pawl::postgres {

enum class Allow : std::uint8_t {
  read,    ///< an application's SELECT
  write,   ///< reads and writes of the application's own tables
  define,  ///< CREATE, ALTER and DROP of these tables as well
};

/// A value.
struct SqlText {
  enum class Kind : std::uint8_t { word, quoted, symbol, other };
  struct Token {
    Kind kind = Kind::other;
    std::string text;  ///< words in lower case, quoted names without quotes; empty for strings and numbers
  };

  std::string translated;
  std::size_t parameters = 0;  ///< the highest number of a placeholder
  std::vector<Token> tokens;
  bool several = false;  ///< something follows a semicolon
  bool has_nul = false;

  static SqlText scan(std::string_view text);
};

/// Describes what is not allowed, if anything.
std::optional<std::string> refused(const SqlText& text, Allow allow, std::string_view schema);

/// Whether the statement begins with a known word. Others are only parsed by the server, for its error
/// message.
bool is_known(const SqlText& text);

}  // namespace pawl::postgres
