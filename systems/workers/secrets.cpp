// SPDX-License-Identifier: Apache-2.0
#include "workers/secrets.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "pawl/json.hpp"
#include "supervise/marked.hpp"
#include "workers/config/yaml.hpp"

namespace pawl::workers {
namespace {

/// Shorter values are part of too many words.
constexpr std::size_t kShortest = 4;
/// Shorter values of a URL's query are words such as "json" and "true".
constexpr std::size_t kShortestInQuery = 8;
constexpr JsonLimits kLimits{.depth = 64, .bytes = std::size_t{64} << 20};
constexpr std::string_view kButFirst = "[1:]";

enum class Hiding : std::uint8_t { nothing, all, all_but_first };

/// What the type says of one of its fields.
Hiding hiding_of(const WorkerType& type, std::string_view field) {
  for (const std::string_view declared : type.confidential) {
    if (declared == field) return Hiding::all;
    if (declared.ends_with(kButFirst) && declared.substr(0, declared.size() - kButFirst.size()) == field)
      return Hiding::all_but_first;
  }
  return Hiding::nothing;
}

std::string text_of(JsonValue value) {
  const auto text = value.as_string();
  return text ? std::string(*text) : value.to_text();
}

using Take = std::function<void(std::string)>;

/// Every value within, except booleans and null, of which there are too few to be secret.
void collect(JsonValue value, const Take& take) {
  switch (value.kind()) {
    case JsonKind::object:
    case JsonKind::array:
      for (std::size_t i = 0; i < value.size(); ++i) collect(value.at(i), take);
      return;
    case JsonKind::string:
    case JsonKind::integer:
    case JsonKind::number:
      return take(text_of(value));
    case JsonKind::null:
    case JsonKind::boolean:
      return;
  }
}

/// The confidential parts of a URL within a text: "scheme://user@host/path?query".
struct UrlSecrets {
  std::size_t user = 0;  ///< where the user information begins
  std::size_t user_size = 0;
  std::size_t query = 0;  ///< where the query begins, behind the question mark
  std::size_t query_size = 0;
  std::size_t end = 0;  ///< of the URL
};

/// Where the URL ends that has this position in it. Template expressions with their blanks belong to it.
std::size_t end_of_url(std::string_view text, std::size_t at) {
  constexpr std::string_view kNotInUrl = " \t\r\n\"'<>";
  while (at < text.size() && !kNotInUrl.contains(text[at])) {
    const auto closing = text.substr(at, 2) == "{{" ? text.find("}}", at) : std::string_view::npos;
    at = closing == std::string_view::npos ? at + 1 : closing + 2;
  }
  return at;
}

/// The first URL of the text at or behind this place.
std::optional<UrlSecrets> find_url(std::string_view text, std::size_t from) {
  constexpr std::string_view kScheme = "://";
  const auto found = text.find(kScheme, from);
  if (found == std::string_view::npos) return std::nullopt;
  UrlSecrets url;
  url.user = url.query = found + kScheme.size();
  url.end = end_of_url(text, url.user);
  const auto whole = text.substr(0, url.end);
  const auto authority_end = std::min(whole.find_first_of("/?#", url.user), url.end);
  const auto at = whole.substr(0, authority_end).rfind('@');
  if (at != std::string_view::npos && at >= url.user) url.user_size = at - url.user;
  if (const auto question = whole.find('?', authority_end); question != std::string_view::npos) {
    url.query = question + 1;
    url.query_size = url.end - url.query;
  }
  return url;
}

std::string hide_urls(std::string_view text) {
  std::string made;
  std::size_t done = 0;
  const auto replace = [&](std::size_t begin, std::size_t size) {
    if (size == 0) return;
    made += text.substr(done, begin - done);
    made += kHidden;
    done = begin + size;
  };
  for (auto url = find_url(text, 0); url; url = find_url(text, url->end)) {
    replace(url->user, url->user_size);
    replace(url->query, url->query_size);
  }
  return made += text.substr(done);
}

void collect_of_urls(std::string_view text, const Take& take) {
  for (auto url = find_url(text, 0); url; url = find_url(text, url->end)) {
    const auto user = text.substr(url->user, url->user_size);
    take(std::string(user));
    if (const auto colon = user.find(':'); colon != std::string_view::npos)
      take(std::string(user.substr(colon + 1)));
    auto query = text.substr(url->query, url->query_size);
    while (!query.empty()) {
      const auto pair = query.substr(0, query.find('&'));
      const auto equals = pair.find('=');
      const auto value = equals == std::string_view::npos ? pair : pair.substr(equals + 1);
      if (value.size() >= kShortestInQuery) take(std::string(value));
      query.remove_prefix(std::min(pair.size() + 1, query.size()));
    }
  }
}

/// The URLs of all texts within.
void collect_urls(JsonValue value, const Take& take) {
  if (const auto text = value.as_string()) return collect_of_urls(*text, take);
  if (value.kind() != JsonKind::object && value.kind() != JsonKind::array) return;
  for (std::size_t i = 0; i < value.size(); ++i) collect_urls(value.at(i), take);
}

/// Everything within is hidden if `hides_all`.
void write_hidden(JsonWriter& out, const Secrets& secrets, JsonValue value, bool hides_all) {
  switch (value.kind()) {
    case JsonKind::object:
      out.begin_object();
      for (std::size_t i = 0; i < value.size(); ++i) {
        out.key(value.key_at(i));
        write_hidden(out, secrets, value.at(i), hides_all);
      }
      out.end_object();
      return;
    case JsonKind::array:
      out.begin_array();
      for (std::size_t i = 0; i < value.size(); ++i) write_hidden(out, secrets, value.at(i), hides_all);
      out.end_array();
      return;
    case JsonKind::string:
      out.string(hides_all ? std::string(kHidden) : secrets.hide(*value.as_string()));
      return;
    case JsonKind::integer:
    case JsonKind::number:
      if (const auto text = value.to_text(); !hides_all && secrets.hide(text) == text) {
        out.splice(text);
      } else {
        out.string(kHidden);
      }
      return;
    case JsonKind::null:
    case JsonKind::boolean:
      break;
  }
  if (hides_all) {
    out.string(kHidden);
  } else {
    out.splice(value.to_text());
  }
}

/// Writes a part of the JSON, or the marker if it cannot be read.
template <class Write>
std::string rewrite(std::string_view json, Write write) {
  const auto document = JsonDocument::parse(json, kLimits);
  JsonWriter out;
  if (document) {
    write(out, document->root());
  } else {
    out.string(kHidden);
  }
  return out.take().value_or("null");
}

}  // namespace

Secrets::Secrets(const WorkerView& worker, const WorkerType& type) : type_(&type) {
  add_variables(worker.spec.variables);
  add_desired(worker.desired.text);
}

void Secrets::add(const UserSpec& spec) {
  add_variables(spec.variables);
  const supervise::MarkedTemplate config(spec.config, spec.variables, {});
  if (const auto document = config.fill(read_yaml(config.text()), type_->templates))
    add_desired(document->json);
}

void Secrets::add_variables(const Variables& variables) {
  for (const auto* group : {&variables.user, &variables.global}) {
    for (const auto& [_, value] : *group) {
      const auto document = JsonDocument::parse(value.text, kLimits);
      if (document) collect(document->root(), [this](std::string text) { add_value(std::move(text)); });
    }
  }
}

void Secrets::add_desired(std::string_view json) {
  const auto document = JsonDocument::parse(json, kLimits);
  if (!document || document->root().kind() != JsonKind::object) return;
  const auto root = document->root();
  const Take take = [this](std::string text) { add_value(std::move(text)); };
  collect_urls(root, take);
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto field = root.at(i);
    const auto hiding = hiding_of(*type_, root.key_at(i));
    if (hiding == Hiding::all) collect(field, take);
    if (hiding == Hiding::all_but_first) {
      for (std::size_t j = 1; j < field.size(); ++j) collect(field.at(j), take);
    }
  }
}

void Secrets::add_value(std::string value) {
  if (value.empty()) return;
  if (value.size() < kShortest) {
    short_values_.insert(std::move(value));
    return;
  }
  const auto place =
      std::ranges::lower_bound(values_, value.size(), std::ranges::greater(), &std::string::size);
  values_.insert(place, std::move(value));
}

std::string Secrets::hide(std::string_view text) const {
  if (short_values_.contains(text)) return std::string(kHidden);
  std::string made(text);
  for (const auto& value : values_) {
    for (auto at = made.find(value); at != std::string::npos; at = made.find(value, at + kHidden.size()))
      made.replace(at, value.size(), kHidden);
  }
  return hide_urls(made);
}

std::string Secrets::hide_config(std::string_view text) const {
  const bool names_confidential = std::ranges::any_of(type_->confidential, [text](std::string_view field) {
    return text.contains(field.substr(0, field.find('[')));
  });
  return names_confidential ? std::string(kHidden) : hide(text);
}

std::string Secrets::hide_json(std::string_view json) const {
  return rewrite(json, [this](JsonWriter& out, JsonValue root) { write_hidden(out, *this, root, false); });
}

std::string Secrets::hide_desired(std::string_view json) const {
  return rewrite(json, [this](JsonWriter& out, JsonValue root) {
    if (root.kind() != JsonKind::object) return write_hidden(out, *this, root, false);
    out.begin_object();
    for (std::size_t i = 0; i < root.size(); ++i) {
      const auto field = root.at(i);
      const auto hiding = hiding_of(*type_, root.key_at(i));
      out.key(root.key_at(i));
      if (hiding != Hiding::all_but_first || field.kind() != JsonKind::array) {
        write_hidden(out, *this, field, hiding != Hiding::nothing);
        continue;
      }
      out.begin_array();
      for (std::size_t j = 0; j < field.size(); ++j) write_hidden(out, *this, field.at(j), j > 0);
      out.end_array();
    }
    out.end_object();
  });
}

}  // namespace pawl::workers
