// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernel/utf8.hpp"
#include "pawl/json.hpp"

namespace pawl {

void JsonWriter::separate() {
  if (need_comma_) text_ += ',';
  need_comma_ = true;
}

void JsonWriter::enter(char bracket) {
  separate();
  if (++depth_ > JsonLimits{}.depth)
    refuse(fmt::format("nested more than {} levels deep", JsonLimits{}.depth));
  text_ += bracket;
  need_comma_ = false;
}

void JsonWriter::leave(char bracket) {
  --depth_;
  text_ += bracket;
  need_comma_ = true;
}

JsonWriter& JsonWriter::begin_object() { return enter('{'), *this; }
JsonWriter& JsonWriter::end_object() { return leave('}'), *this; }
JsonWriter& JsonWriter::begin_array() { return enter('['), *this; }
JsonWriter& JsonWriter::end_array() { return leave(']'), *this; }

JsonWriter& JsonWriter::key(std::string_view name) {
  string(name);
  text_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }
JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::integer(std::int64_t value) { return raw(fmt::format_int(value).c_str()); }
JsonWriter& JsonWriter::integer(std::uint64_t value) { return raw(fmt::format_int(value).c_str()); }

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) {
    refuse("a number must be finite");
    return null();
  }
  char buffer[32];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), value).ptr;
  return raw({buffer, static_cast<std::size_t>(end - buffer)});
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  text_ += '"';
  const auto plain = [](char c) { return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f; };
  if (std::ranges::all_of(text, plain)) {
    text_ += text;
  } else if (is_utf8(text)) {
    append_escaped(text);
  } else {
    refuse("text must be UTF-8");
  }
  text_ += '"';
  return *this;
}

JsonWriter& JsonWriter::embed(std::string_view json) {
  const auto room = JsonLimits{}.depth - std::min(depth_, JsonLimits{}.depth);
  const auto document = JsonDocument::parse(json, {.depth = room});
  if (!document) refuse("embedded JSON: " + document.error().message());
  return raw(json);
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

void JsonWriter::append_escaped(std::string_view text) {
  for (const char c : text) {
    switch (c) {
      case '"':
        text_ += "\\\"";
        break;
      case '\\':
        text_ += "\\\\";
        break;
      case '\n':
        text_ += "\\n";
        break;
      case '\r':
        text_ += "\\r";
        break;
      case '\t':
        text_ += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          fmt::format_to(std::back_inserter(text_), "\\u{:04x}", static_cast<unsigned>(c));
        } else {
          text_ += c;
        }
    }
  }
}

void JsonWriter::refuse(std::string reason) {
  if (refusal_) return;
  const auto tail = std::string_view(text_).substr(text_.size() - std::min<std::size_t>(text_.size(), 40));
  refusal_ = fmt::format("{} (after {})", reason, tail);
}

Result<std::string> JsonWriter::take() {
  if (refusal_) return fail(Code::unencodable, *refusal_);
  need_comma_ = false;
  return std::exchange(text_, {});
}

}  // namespace pawl
