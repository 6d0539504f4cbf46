// SPDX-License-Identifier: Apache-2.0
#include "cli/source.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "cli/credentials.hpp"
#include "cli/output.hpp"

namespace pawl::cli {
namespace {

constexpr const char* kDefaultUrl = "http://127.0.0.1:7420";

std::string or_environment(const std::string& given, const char* name, const char* default_value) {
  if (!given.empty()) return given;
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : default_value;
}

}  // namespace

std::string store_address(const std::string& given) {
  if (given.find("://") != std::string::npos || given.starts_with("sqlite:")) return given;
  std::error_code ignored;
  const std::filesystem::path path(given);
  return "sqlite:" + (std::filesystem::is_directory(path, ignored) ? path / "pawl.db" : path).string();
}

Result<Client> open_client(const SourceOptions& options) {
  if (!options.store.empty()) {
    return fail(Code::invalid_argument, "this needs a running server: use --url instead of --store");
  }
  PAWL_TRY(auto url, parse_url(or_environment(options.url, "PAWL_URL", kDefaultUrl)));
  PAWL_TRY(auto token, find_token(url, options.token_file));
  if (!token.empty() && !url.tls && !url.loopback()) {
    note(fmt::format("warning: the token goes to {} unencrypted; use https", url.authority()));
  }
  return Client(
      {.url = std::move(url), .token = std::move(token), .ca = or_environment(options.ca, "PAWL_CA", "")});
}

Result<std::unique_ptr<Source>> open_source(const SourceOptions& options) {
  if (options.store.empty()) {
    PAWL_TRY(auto client, open_client(options));
    return server_source(std::move(client));
  }
  if (!options.url.empty())
    return fail(Code::invalid_argument, "--url and --store are two places to read: give one");
  return store_source(store_address(options.store));
}

Result<JsonDocument> parse_answer(std::string_view text) {
  auto document = JsonDocument::parse(text, {.depth = 64, .bytes = std::size_t{128} << 20});
  if (!document) {
    return fail(Code::answer_invalid, fmt::format("the answer is not JSON: {}", document.error().message()));
  }
  if (document->root().kind() != JsonKind::object)
    return fail(Code::answer_invalid, "the answer is no JSON object");
  return document;
}

std::string text_of(JsonValue object, std::string_view name) {
  const auto found = object.find(name);
  return std::string(found ? found->as_string().value_or("") : "");
}

std::int64_t number_of(JsonValue object, std::string_view name) {
  const auto found = object.find(name);
  return found ? found->as_integer().value_or(0) : 0;
}

}  // namespace pawl::cli
