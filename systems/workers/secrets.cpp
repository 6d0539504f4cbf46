// SPDX-License-Identifier: Apache-2.0
#include "workers/secrets.hpp"

#include <algorithm>
#include <array>

#include "pawl/json.hpp"

namespace pawl::workers {
namespace {

constexpr std::array<std::string_view, 3> kSecret = {"environment", "headers", "variables"};
constexpr std::string_view kCommand = "command";
/// Shorter values are part of too many words.
constexpr std::size_t kShortest = 4;
constexpr JsonLimits kLimits{.bytes = std::size_t{64} << 20};

bool is_secret_name(std::string_view name) { return std::ranges::find(kSecret, name) != kSecret.end(); }

std::string text_of(JsonValue value) {
  const auto text = value.as_string();
  return text ? std::string(*text) : value.to_text();
}

/// Every value below, but what can only be one of two or three.
void collect(JsonValue value, std::vector<std::string>& out) {
  switch (value.kind()) {
    case JsonKind::object:
    case JsonKind::array:
      for (std::size_t i = 0; i < value.size(); ++i) collect(value.at(i), out);
      return;
    case JsonKind::string:
    case JsonKind::integer:
    case JsonKind::number:
      if (auto text = text_of(value); text.size() >= kShortest) out.push_back(std::move(text));
      return;
    case JsonKind::null:
    case JsonKind::boolean:
      return;
  }
}

/// The values below objects with a secret name.
void collect_named(JsonValue value, std::vector<std::string>& out) {
  const bool is_object = value.kind() == JsonKind::object;
  if (!is_object && value.kind() != JsonKind::array) return;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (is_object && is_secret_name(value.key_at(i))) {
      collect(value.at(i), out);
    } else {
      collect_named(value.at(i), out);
    }
  }
}

bool names_a_secret(std::string_view text) {
  return text.find(kCommand) != std::string_view::npos ||
         std::ranges::any_of(kSecret, [text](std::string_view name) { return text.contains(name); });
}

/// Everything below is hidden where `inside`.
void write_hidden(JsonWriter& out, const Secrets& secrets, JsonValue value, bool inside) {
  switch (value.kind()) {
    case JsonKind::object:
      out.begin_object();
      for (std::size_t i = 0; i < value.size(); ++i) {
        const auto key = value.key_at(i);
        const auto member = value.at(i);
        out.key(key);
        if (key == kCommand && member.kind() == JsonKind::array && !inside) {
          out.begin_array();
          for (std::size_t j = 0; j < member.size(); ++j) write_hidden(out, secrets, member.at(j), j > 0);
          out.end_array();
        } else {
          write_hidden(out, secrets, member, inside || is_secret_name(key));
        }
      }
      out.end_object();
      return;
    case JsonKind::array:
      out.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) write_hidden(out, secrets, value.at(i), inside);
      out.end_array();
      return;
    case JsonKind::string:
      out.string(inside ? std::string(kHidden) : secrets.hide_config(*value.as_string()));
      return;
    case JsonKind::integer:
    case JsonKind::number:
      if (const auto text = value.to_text(); !inside && secrets.hide(text) == text) {
        out.splice(text);
      } else {
        out.string(kHidden);
      }
      return;
    case JsonKind::null:
    case JsonKind::boolean:
      break;
  }
  if (inside) {
    out.string(kHidden);
  } else {
    out.splice(value.to_text());
  }
}

}  // namespace

Secrets::Secrets(const WorkerView& worker) {
  for (const auto* variables : {&worker.spec.variables.user, &worker.spec.variables.global}) {
    for (const auto& [_, value] : *variables) {
      if (const auto document = JsonDocument::parse(value.text, kLimits)) collect(document->root(), values_);
    }
  }
  if (const auto document = JsonDocument::parse(worker.desired.text, kLimits)) {
    collect_named(document->root(), values_);
  }
  std::ranges::sort(values_, std::ranges::greater(), &std::string::size);
}

std::string Secrets::hide(std::string_view text) const {
  std::string made(text);
  for (const auto& value : values_) {
    for (auto at = made.find(value); at != std::string::npos; at = made.find(value, at + kHidden.size())) {
      made.replace(at, value.size(), kHidden);
    }
  }
  return made;
}

std::string Secrets::hide_config(std::string_view text) const {
  return names_a_secret(text) ? std::string(kHidden) : hide(text);
}

std::string Secrets::hide_json(std::string_view json) const {
  const auto document = JsonDocument::parse(json, kLimits);
  JsonWriter out;
  if (document) {
    write_hidden(out, *this, document->root(), false);
  } else {
    out.string(kHidden);
  }
  return out.take().value_or("null");
}

}  // namespace pawl::workers
