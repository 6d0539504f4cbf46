// SPDX-License-Identifier: Apache-2.0
// How a log record becomes a line: escaping, cutting, numbers, colours.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "kernel/code_point.hpp"
#include "pawl/log.hpp"

namespace pawl {
namespace {

constexpr std::string_view kRedacted = "***";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t kMessageColumns = 32;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// What could break the line, drive a terminal, or turn the reading direction.
bool must_escape(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || c == 0x2028 || c == 0x2029 || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

void append_escape(std::string& out, char32_t c) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint32_t>(c));
  }
}

/// Valid UTF-8 on one line; the escapes are those of JSON. `quoted` escapes what ends a JSON string, too.
void append_clean(std::string& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.size == 0) {
      out += kReplacement;
    } else if (must_escape(c.value)) {
      append_escape(out, c.value);
    } else {
      if (quoted && (c.value == '"' || c.value == '\\')) out += '\\';
      out += text.substr(0, c.size);
    }
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
}

/// Like append_clean, but at most `kLogTextLimit` bytes of the text and then a mark.
void append_cut(std::string& out, std::string_view text, bool quoted) {
  if (text.size() <= kLogTextLimit) return append_clean(out, text, quoted);
  std::size_t kept = kLogTextLimit;
  while (kept > kLogTextLimit - 4 && is_continuation(text[kept])) --kept;
  append_clean(out, text.substr(0, kept), quoted);
  fmt::format_to(std::back_inserter(out), "…+{} bytes", text.size() - kept);
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_cut(out, text, true);
  out += '"';
}

/// Quoted only if the reader could not tell where it ends.
void append_word(std::string& out, std::string_view text) {
  const auto unsafe = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte == 0x7F || c == '"' || c == '=' || c == '\\';
  };
  if (text.empty() || text.size() > kLogTextLimit || std::ranges::any_of(text, unsafe)) {
    append_quoted(out, text);
  } else {
    append_clean(out, text, false);
  }
}

std::uint64_t magnitude(Duration duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  return duration.count() < 0 ? 0 - count : count;
}

/// Seconds with all six digits.
void append_seconds(std::string& out, Duration duration) {
  const std::uint64_t micros = magnitude(duration);
  fmt::format_to(std::back_inserter(out), "{}{}.{:06}", duration.count() < 0 ? "-" : "", micros / 1'000'000,
                 micros % 1'000'000);
}

/// 850us, 1.5ms, 7200s: exact, and what `parse_duration` reads.
void append_readable(std::string& out, Duration duration) {
  const std::uint64_t micros = magnitude(duration);
  if (micros >= 1'000'000) {
    out += to_string(duration);
    return;
  }
  if (duration.count() < 0) out += '-';
  if (micros < 1000) {
    fmt::format_to(std::back_inserter(out), "{}us", micros);
    return;
  }
  fmt::format_to(std::back_inserter(out), "{}", micros / 1000);
  if (micros % 1000 != 0) {
    fmt::format_to(std::back_inserter(out), ".{:03}", micros % 1000);
    out.erase(out.find_last_not_of('0') + 1);
  }
  out += "ms";
}

void append_real(std::string& out, double value) { fmt::format_to(std::back_inserter(out), "{}", value); }

struct AsJson {
  std::string& out;
  void operator()(std::string_view value) const { append_quoted(out, value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(std::uint64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(double value) const {
    if (std::isfinite(value)) return append_real(out, value);
    out += '"';
    append_real(out, value);
    out += '"';
  }
  void operator()(Duration value) const { append_seconds(out, value); }
  void operator()(Time value) const { append_quoted(out, to_string(value)); }
  void operator()(LogValue::Redacted) const { append_quoted(out, kRedacted); }
};

struct AsText {
  std::string& out;
  void operator()(std::string_view value) const { append_word(out, value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(std::int64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(std::uint64_t value) const { fmt::format_to(std::back_inserter(out), "{}", value); }
  void operator()(double value) const { append_real(out, value); }
  void operator()(Duration value) const { append_readable(out, value); }
  void operator()(Time value) const { out += to_string(value); }
  void operator()(LogValue::Redacted) const { out += kRedacted; }
};

std::string_view colour_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return "\x1b[2m";
    case LogLevel::debug:
      return "\x1b[36m";
    case LogLevel::info:
      return "\x1b[32m";
    case LogLevel::warn:
      return "\x1b[33m";
    case LogLevel::error:
      return "\x1b[1;31m";
  }
  return "";
}

}  // namespace

void append_json(std::string& out, const LogRecord& record) {
  out += "{\"time\":\"";
  out += to_string(record.time);
  out += "\",\"level\":\"";
  out += name(record.level);
  out += "\",\"message\":";
  append_quoted(out, record.message);
  for (const LogField& field : record.fields) {
    const bool taken = field.key == "time" || field.key == "level" || field.key == "message";
    out += taken ? ",\"field." : ",\"";
    append_cut(out, field.key, true);
    out += "\":";
    std::visit(AsJson{out}, field.value.get());
  }
  out += "}\n";
}

void append_text(std::string& out, const LogRecord& record, bool colour) {
  const auto paint = [&](std::string_view code) { out += colour ? code : std::string_view(); };
  constexpr std::string_view kDim = "\x1b[2m";
  constexpr std::string_view kPlain = "\x1b[0m";
  paint(kDim);
  out += to_string(record.time);
  paint(kPlain);
  out += ' ';
  paint(colour_of(record.level));
  std::string level(name(record.level));
  std::ranges::transform(level, level.begin(), [](char c) { return static_cast<char>(c - 'a' + 'A'); });
  fmt::format_to(std::back_inserter(out), "{:<5}", level);
  paint(kPlain);
  out += ' ';
  const std::size_t begin = out.size();
  append_cut(out, record.message, false);
  if (!record.fields.empty()) {
    const auto columns = static_cast<std::size_t>(std::ranges::count_if(
        std::string_view(out).substr(begin), [](char c) { return !is_continuation(c); }));
    if (columns < kMessageColumns) out.append(kMessageColumns - columns, ' ');
  }
  for (const LogField& field : record.fields) {
    out += ' ';
    paint(kDim);
    append_word(out, field.key);
    out += '=';
    paint(kPlain);
    std::visit(AsText{out}, field.value.get());
  }
  out += '\n';
}

}  // namespace pawl
