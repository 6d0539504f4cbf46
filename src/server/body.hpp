// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reads requests strictly: unknown fields and wrong types are refused with their path.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/json.hpp"
#include "pawl/time.hpp"

namespace pawl::server {

/// A JSON object as the body of a request. Not thread-safe.
class Body {
 public:
  /// Errors: `malformed_json`, `too_deep`, `wrong_type`, and `unknown_name` for a field not in `known`.
  static Result<Body> parse(const http::Request& request, std::initializer_list<std::string_view> known);

  /// Errors: `missing_field`, `wrong_type`.
  Result<std::string> text(std::string_view name) const;
  Result<std::string> text_or(std::string_view name, std::string_view default_value) const;
  Result<std::optional<std::int64_t>> integer(std::string_view name) const;
  Result<std::optional<double>> number(std::string_view name) const;
  /// Such as "10s". Error: also `invalid_argument`.
  Result<std::optional<Duration>> duration(std::string_view name) const;
  Result<std::vector<std::string>> texts(std::string_view name) const;
  /// An object as JSON text; "{}" if absent.
  Result<std::string> object(std::string_view name) const;
  /// Any value as JSON text; nullopt if absent.
  std::optional<std::string> value(std::string_view name) const;
  /// A nested object, read as strictly; nullopt if absent.
  Result<std::optional<Body>> inner(std::string_view name,
                                    std::initializer_list<std::string_view> known) const;

 private:
  Body(std::shared_ptr<const JsonDocument> document, JsonValue root, std::string path)
      : document_(std::move(document)), root_(root), path_(std::move(path)) {}
  static Result<Body> make(std::shared_ptr<const JsonDocument> document, JsonValue root, std::string path,
                           std::initializer_list<std::string_view> known);
  std::string place(std::string_view name) const;
  Error wrong_type(std::string_view name, std::string_view expected, const JsonValue& got) const;

  std::shared_ptr<const JsonDocument> document_;
  JsonValue root_;
  std::string path_;  // "$", "$.after"
};

// Parameters of a query. Error: `invalid_argument`, with the name.
Result<std::size_t> limit_parameter(const http::Request& request, std::size_t default_value,
                                    std::size_t most);
Result<std::int64_t> integer_parameter(const http::Request& request, std::string_view name);
Result<std::optional<Time>> time_parameter(const http::Request& request, std::string_view name);
Result<std::optional<bool>> boolean_parameter(const http::Request& request, std::string_view name);
Result<std::optional<Duration>> duration_parameter(const http::Request& request, std::string_view name);

/// The header Idempotency-Key as a request id; empty if absent.
Result<std::string> request_id(const http::Request& request);

/// The parameter `order` of a listing: oldest, which is the default, or newest.
http::Parameter order_of_listing();
Result<bool> newest_first_parameter(const http::Request& request);

}  // namespace pawl::server
