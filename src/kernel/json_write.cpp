// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernel/json_text.hpp"
#include "kernel/utf8.hpp"
#include "pawl/json.hpp"

namespace pawl {
namespace {

constexpr std::size_t kFirstBytes = 256;  // room for a usual struct at once

}  // namespace

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

JsonWriter& JsonWriter::field(std::string_view identifier) {
  if (text_.capacity() < kFirstBytes) text_.reserve(kFirstBytes);
  const auto before = text_.size();
  const std::size_t comma = need_comma_ ? 1 : 0;
  const auto after = before + comma + identifier.size() + 3;
  // The library of g++ 12 may hand over a larger size than was asked for.
  text_.resize_and_overwrite(after, [&](char* bytes, std::size_t) {
    auto* to = bytes + before;
    if (comma != 0) *to++ = ',';
    *to++ = '"';
    std::memcpy(to, identifier.data(), identifier.size());
    bytes[after - 2] = '"';
    bytes[after - 1] = ':';
    return after;
  });
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }
JsonWriter& JsonWriter::boolean(bool value) { return raw(value ? "true" : "false"); }
JsonWriter& JsonWriter::integer(std::int64_t value) {
  const fmt::format_int digits(value);
  return raw({digits.data(), digits.size()});
}
JsonWriter& JsonWriter::integer(std::uint64_t value) {
  const fmt::format_int digits(value);
  return raw({digits.data(), digits.size()});
}

JsonWriter& JsonWriter::number(double value) {
  if (!std::isfinite(value)) {
    refuse("a number must be finite");
    return null();
  }
  separate();
  append_json_number(text_, value);
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  separate();
  if (is_utf8(text)) {
    append_json_string(text_, text);
  } else {
    refuse("text must be UTF-8");
  }
  return *this;
}

JsonWriter& JsonWriter::embed(std::string_view json) {
  const auto room = JsonLimits{}.depth - std::min(depth_, JsonLimits{}.depth);
  const JsonLimits limits{.depth = room};
  if (!is_json(json, limits)) {
    const auto document = JsonDocument::parse(json, limits);
    refuse("embedded JSON: " + document.error().message());
  }
  return raw(json);
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
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
