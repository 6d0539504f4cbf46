// SPDX-License-Identifier: Apache-2.0
// Restricts what an application's statement may do. This protects against mistakes only: a malicious program
// has the connection string anyway. docs/postgresql.md describes roles that restrict more.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <span>

#include "store/postgres/schema.hpp"
#include "store/postgres/sql_text.hpp"

namespace pawl::postgres {
namespace {

bool one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}
bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr auto kReading = std::to_array<std::string_view>({"select", "with", "values", "table", "explain"});
constexpr auto kWriting = std::to_array<std::string_view>({"insert", "update", "delete", "merge"});
constexpr auto kDefining =
    std::to_array<std::string_view>({"create", "alter", "drop", "truncate", "comment"});
constexpr auto kTransactions = std::to_array<std::string_view>(
    {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare"});
/// Other statements of PostgreSQL, and those that only SQLite has.
constexpr auto kOthers = std::to_array<std::string_view>(
    {"analyze",  "call", "checkpoint", "close",    "cluster", "copy",    "deallocate", "declare",
     "discard",  "do",   "execute",    "fetch",    "grant",   "import",  "listen",     "load",
     "lock",     "move", "notify",     "reassign", "refresh", "reindex", "reset",      "revoke",
     "security", "set",  "show",       "unlisten", "vacuum",  "attach",  "detach",     "pragma"});
/// Objects that may be defined.
constexpr auto kObjects = std::to_array<std::string_view>(
    {"table", "index", "view", "sequence", "type", "domain", "function", "trigger"});

std::string upper(std::string_view word) {
  std::string text(word);
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

/// Functions with effects beyond the transaction.
bool reaches_out(std::string_view function) {
  if (function.find("advisory") != function.npos) return function.find("_xact_") == function.npos;
  return one_of(function, {"set_config", "pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf",
                           "pg_notify", "lo_import", "lo_export"}) ||
         function.starts_with("dblink");
}

/// Checks the tokens of one statement.
class Guard {
 public:
  Guard(const SqlText& text, Allow allow, std::string_view schema)
      : tokens_(text.tokens), allow_(allow), schema_(schema) {}

  std::optional<std::string> run() {
    const auto first = word(0);
    if (one_of(first, kTransactions)) return fmt::format("{} (transaction control)", upper(first));
    if (first == "pragma") return fmt::format("PRAGMA {}", word(1));
    if (one_of(first, kOthers)) return upper(first);
    if (first == "insert" && word(1) == "or") return fmt::format("INSERT OR {}", upper(word(2)));
    if (allow_ == Allow::read && (one_of(first, kWriting) || one_of(first, kDefining)))
      return "anything but reading";
    if (one_of(first, kDefining)) {
      if (allow_ != Allow::define) return fmt::format("changing the schema ({})", upper(first));
      if (auto what = definition()) return what;
    }
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (auto what = at(i)) return what;
    }
    return std::nullopt;
  }

 private:
  std::string_view word(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind == SqlText::Kind::word ? std::string_view(tokens_[i].text)
                                                                        : "";
  }
  bool is_symbol(std::size_t i, char c) const {
    return i < tokens_.size() && tokens_[i].kind == SqlText::Kind::symbol && tokens_[i].text[0] == c;
  }
  bool is_name(std::size_t i) const {
    return i < tokens_.size() &&
           (tokens_[i].kind == SqlText::Kind::word || tokens_[i].kind == SqlText::Kind::quoted);
  }

  /// The name at this position, if it is that of a table of the store.
  std::optional<std::string> own(std::size_t i) const {
    while (one_of(word(i), {"only", "table", "if", "not", "exists"})) ++i;
    if (!is_name(i)) return std::nullopt;
    const auto& name = tokens_[i].text;
    const bool qualified = is_symbol(i + 1, '.') && is_name(i + 2);
    if (qualified && name == schema_) return tokens_[i + 2].text;
    if (!qualified && is_own_table(name)) return name;
    return std::nullopt;
  }

  std::optional<std::string> writing(std::size_t i) const {
    const auto name = own(i);
    if (!name) return std::nullopt;
    return fmt::format("writing the table '{}', which is not the application's", *name);
  }

  std::optional<std::string> changing(std::size_t i) const {
    const auto name = own(i);
    if (!name) return std::nullopt;
    return fmt::format("changing the schema of '{}', which is not the application's", *name);
  }

  std::optional<std::string> at(std::size_t i) const {
    const auto text = word(i);
    const auto before = i == 0 ? std::string_view{} : word(i - 1);
    if (text == "u" && is_symbol(i + 1, '&')) return "a name or string with Unicode escapes";
    if (text == "into" && one_of(before, {"insert", "merge"})) return writing(i + 1);
    if (text == "into") return "SELECT INTO, which makes a table,";
    if (text == "update" && !one_of(before, {"for", "key", "do", "on", "or", "before", "after", "of"}))
      return writing(i + 1);
    if (text == "from" && before == "delete") return writing(i + 1);
    if (is_symbol(i + 1, '(') && reaches_out(text)) return fmt::format("the function {}", text);
    return std::nullopt;
  }

  /// CREATE, ALTER, DROP, TRUNCATE, COMMENT.
  std::optional<std::string> definition() const {
    const auto first = word(0);
    std::size_t i = 1;
    if (first == "truncate") return changing(1);
    if (first == "comment") i = 2;
    while (one_of(word(i), {"or", "replace", "unique", "materialized", "recursive", "constraint"})) ++i;
    if (one_of(word(i), {"temp", "temporary", "local", "global", "unlogged"})) {
      return fmt::format("changing the schema ({} {})", upper(first), upper(word(i)));
    }
    if (!one_of(word(i), kObjects))
      return fmt::format("changing the schema ({} {})", upper(first), upper(word(i)));
    if (auto what = changing(i + 1)) return what;
    for (++i; i < tokens_.size(); ++i) {
      const bool names_table =
          one_of(word(i), {"on", "references", "of", "inherits"}) || (first == "drop" && is_symbol(i, ','));
      if (!names_table) continue;
      if (auto what = changing(is_symbol(i + 1, '(') ? i + 2 : i + 1)) return what;
    }
    return std::nullopt;
  }

  const std::vector<SqlText::Token>& tokens_;
  Allow allow_;
  std::string_view schema_;
};

}  // namespace

bool is_known(const SqlText& text) {
  if (text.tokens.empty() || text.tokens.front().kind != SqlText::Kind::word) return false;
  const auto& first = text.tokens.front().text;
  return one_of(first, kReading) || one_of(first, kWriting) || one_of(first, kDefining) ||
         one_of(first, kTransactions) || one_of(first, kOthers);
}

std::optional<std::string> refused(const SqlText& text, Allow allow, std::string_view schema) {
  if (text.tokens.empty() || text.has_nul) return "an empty text, or one with a NUL byte,";
  if (text.several) return "a text of several statements";
  if (!is_known(text)) return std::nullopt;  // only parsed by the server, never run
  return Guard(text, allow, schema).run();
}

}  // namespace pawl::postgres
