// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Looks at an application's statement before the server sees it: placeholders are translated, and what would
/// reach beyond the transaction or into the store's own tables is refused.
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
  write,   ///< reading and writing the application's own tables
  define,  ///< CREATE, ALTER and DROP of them as well
};

/// A value.
struct SqlText {
  enum class Kind : std::uint8_t { word, quoted, symbol, other };
  struct Token {
    Kind kind = Kind::other;
    std::string text;  ///< words in small letters, quoted names without quotes; empty for strings and numbers
  };

  std::string translated;
  std::size_t parameters = 0;  ///< the highest number of a placeholder
  std::vector<Token> tokens;
  bool several = false;  ///< something follows a semicolon
  bool has_nul = false;

  static SqlText scan(std::string_view text);
};

/// What it is that is not allowed, if there is something.
std::optional<std::string> refused(const SqlText& text, Allow allow, std::string_view schema);

/// Whether the statement begins with a word that is known here. What is not is shown to the server's parser
/// only, which has words for mistakes.
bool is_known(const SqlText& text);

}  // namespace pawl::postgres
