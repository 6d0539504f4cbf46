// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/sql_text.hpp"

#include <algorithm>
#include <cctype>

namespace pawl::postgres {
namespace {

bool begins_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_word(char c) { return begins_word(c) || is_digit(c) || c == '$'; }

/// Splits a text into tokens by PostgreSQL's lexical rules.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { result_.has_nul = text.find('\0') != text.npos; }

  SqlText run() {
    while (at_ < text_.size()) next();
    return std::move(result_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void copy(std::size_t count) {
    count = std::min(count, text_.size() - at_);
    result_.translated += text_.substr(at_, count);
    at_ += count;
  }

  void token(SqlText::Kind kind, std::string text) {
    if (ended_) result_.several = true;
    result_.tokens.push_back({kind, std::move(text)});
  }

  void next() {
    const char c = peek();
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      copy(1);
    } else if (c == '-' && peek(1) == '-') {
      copy(std::min(text_.find('\n', at_), text_.size()) - at_);
    } else if (c == '/' && peek(1) == '*') {
      comment();
    } else if (c == '\'') {
      token(SqlText::Kind::other, "");
      quoted('\'', false);
    } else if (c == '"') {
      const auto begin = at_;
      quoted('"', false);
      token(SqlText::Kind::quoted, std::string(text_.substr(begin + 1, at_ - begin - 2)));
    } else if (begins_word(c)) {
      word();
    } else if (c == '?' && is_digit(peek(1))) {
      placeholder();
    } else if (c == '$') {
      dollar();
    } else if (is_digit(c)) {
      token(SqlText::Kind::other, "");
      while (is_digit(peek()) || begins_word(peek())) copy(1);
    } else if (c == ';') {
      ended_ = true;
      copy(1);
    } else {
      token(SqlText::Kind::symbol, std::string(1, c));
      copy(1);
    }
  }

  void comment() {
    int depth = 0;  // PostgreSQL's comments nest
    do {
      if (peek() == '/' && peek(1) == '*') {
        ++depth;
        copy(2);
      } else if (peek() == '*' && peek(1) == '/') {
        --depth;
        copy(2);
      } else {
        copy(1);
      }
    } while (depth > 0 && at_ < text_.size());
  }

  void quoted(char quote, bool backslashes) {
    copy(1);
    while (at_ < text_.size()) {
      if (backslashes && peek() == '\\') {
        copy(2);
      } else if (peek() == quote && peek(1) == quote) {
        copy(2);
      } else if (peek() == quote) {
        copy(1);
        return;
      } else {
        copy(1);
      }
    }
  }

  void word() {
    const auto begin = at_;
    while (continues_word(peek())) copy(1);
    std::string text(text_.substr(begin, at_ - begin));
    std::ranges::transform(text, text.begin(),
                           [](unsigned char c) { return static_cast<char>(c < 0x80 ? std::tolower(c) : c); });
    if (peek() == '\'' && (text == "e" || text == "b" || text == "x" || text == "n")) {
      token(SqlText::Kind::other, "");
      quoted('\'', text == "e");
      return;
    }
    token(SqlText::Kind::word, std::move(text));
  }

  void number(std::size_t digits_at) {
    std::size_t value = 0;
    at_ = digits_at;
    while (is_digit(peek()) && value < 100'000)
      value = value * 10 + static_cast<std::size_t>(text_[at_++] - '0');
    result_.translated += '$' + std::to_string(value);
    result_.parameters = std::max(result_.parameters, value);
    token(SqlText::Kind::other, "");
  }

  void placeholder() { number(at_ + 1); }

  void dollar() {
    if (is_digit(peek(1))) return number(at_ + 1);
    std::size_t end = at_ + 1;
    while (end < text_.size() && continues_word(text_[end]) && text_[end] != '$') ++end;
    if (end >= text_.size() || text_[end] != '$') {
      token(SqlText::Kind::symbol, "$");
      return copy(1);
    }
    const auto tag = text_.substr(at_, end + 1 - at_);
    const auto close = text_.find(tag, end + 1);
    token(SqlText::Kind::other, "");
    copy((close == text_.npos ? text_.size() : close + tag.size()) - at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool ended_ = false;
  SqlText result_;
};

}  // namespace

SqlText SqlText::scan(std::string_view text) { return Scanner(text).run(); }

}  // namespace pawl::postgres
