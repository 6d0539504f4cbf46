// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/address.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <algorithm>
#include <memory>

namespace pawl::postgres {
namespace {

constexpr std::string_view kExpected = "expected postgresql://user@host:port/database?parameters";

bool is_postgres_url(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

Error bad_url(const std::string& why) {
  return Error(Code::invalid_argument, fmt::format("the store's URL: {}; {}", why, kExpected));
}

Result<bool> to_flag(std::string_view name, std::string_view value) {
  if (value == "1" || value == "true") return true;
  if (value == "0" || value == "false") return false;
  return fail(bad_url(fmt::format("{} is \"{}\", it must be 1 or 0", name, value)));
}

/// Letters, digits and underscores only: the name becomes part of SQL texts and of a channel's name.
bool is_plain_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && name.size() <= 40 && std::ranges::all_of(name, fits) &&
         !(name[0] >= '0' && name[0] <= '9');
}

Result<void> take_own(PostgresOptions& options, std::string_view name, std::string_view value) {
  if (name == "pawl_schema") {
    options.schema = value;
  } else if (name == "pawl_take_over") {
    PAWL_TRY(options.take_over, to_flag(name, value));
  } else if (name == "pawl_unsafe") {
    PAWL_TRY(options.unsafe, to_flag(name, value));
  } else if (name == "pawl_lease" || name == "pawl_patience") {
    auto duration = parse_duration(value);
    if (!duration) return fail(bad_url(fmt::format("{}: {}", name, duration.error().message())));
    (name == "pawl_lease" ? options.lease : options.patience) = *duration;
  } else {
    return fail(
        bad_url(fmt::format("there is no parameter \"{}\"; known are pawl_schema, pawl_lease, "
                            "pawl_patience, pawl_take_over and pawl_unsafe",
                            name)));
  }
  return {};
}

/// Takes the parameters that begin with `pawl_` out of the URL.
Result<std::string> without_own(PostgresOptions& options) {
  const auto question = options.url.find('?');
  if (question == std::string::npos) return options.url;
  std::string kept = options.url.substr(0, question);
  char separator = '?';
  std::string_view rest = std::string_view(options.url).substr(question + 1);
  while (!rest.empty()) {
    const auto part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    if (part.starts_with("pawl_")) {
      const auto equals = std::min(part.find('='), part.size());
      PAWL_CHECK(take_own(options, part.substr(0, equals), part.substr(std::min(equals + 1, part.size()))));
    } else {
      kept += separator;
      kept += part;
      separator = '&';
    }
  }
  return kept;
}

}  // namespace

Result<Address> Address::parse(PostgresOptions& options) {
  if (!is_postgres_url(options.url)) return fail(bad_url("it does not begin with postgresql://"));
  PAWL_TRY(const auto url, without_own(options));
  if (!is_plain_name(options.schema)) {
    return fail(
        bad_url(fmt::format("the schema \"{}\" must be of a-z, 0-9 and _, at most 40 long", options.schema)));
  }
  if (options.lease < std::chrono::milliseconds(100) || options.patience < Duration::zero()) {
    return fail(bad_url("pawl_lease must be at least 100ms, pawl_patience not below 0"));
  }
  char* said = nullptr;
  const std::unique_ptr<PQconninfoOption, FreeOptions> parsed(PQconninfoParse(url.c_str(), &said));
  const std::unique_ptr<char, decltype(&PQfreemem)> message(said, &PQfreemem);
  if (!parsed) {
    // Most of libpq's messages quote the URL, which may contain a password; this one does not.
    const std::string_view text = said == nullptr ? "" : said;
    const bool harmless = text.starts_with("invalid URI query parameter");
    return fail(bad_url(harmless ? std::string(text.substr(0, text.find('\n'))) : "libpq cannot parse it"));
  }
  Address address;
  std::string user;
  std::string host;
  std::string port;
  std::string database;
  for (const auto* option = parsed.get(); option->keyword != nullptr; ++option) {
    if (option->val == nullptr) continue;
    const std::string name = option->keyword;
    const std::string value = option->val;
    address.settings_.emplace_back(name, value);
    // libpq marks what must not be shown with an asterisk.
    if (std::string_view(option->dispchar).starts_with('*') && !value.empty())
      address.secrets_.push_back(value);
    if (name == "user") user = value;
    if (name == "host") host = value;
    if (name == "port") port = value;
    if (name == "dbname") database = value;
  }
  address.shown_ = fmt::format("{}{}{}{}{}{}/{} schema {}", user, user.empty() ? "" : "@", host,
                               port.empty() ? "" : ":", port, "", database, options.schema);
  return address;
}

void Address::set_default(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(settings_, name, [](const auto& setting) { return setting.first; });
  if (found == settings_.end()) settings_.emplace_back(name, value);
}

std::string Address::redact(std::string text) const {
  for (const auto& secret : secrets_) {
    for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at)) {
      text.replace(at, secret.size(), "***");
      at += 3;
    }
  }
  return text;
}

}  // namespace pawl::postgres
