// SPDX-License-Identifier: Apache-2.0
#include "pawl/http.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pawl::http {
namespace {

char lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, {}, lower, lower);
}

const Pair* find_parameter(const Pairs& parameters, std::string_view name) noexcept {
  const auto found = std::ranges::find(parameters, name, &Pair::first);
  return found == parameters.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(Method method) noexcept {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::post:
      return "POST";
    case Method::put:
      return "PUT";
    case Method::patch:
      return "PATCH";
    case Method::remove:
      return "DELETE";
  }
  return "GET";
}

std::string_view name(Role role) noexcept {
  switch (role) {
    case Role::anyone:
      return "anyone";
    case Role::viewer:
      return "viewer";
    case Role::operator_:
      return "operator";
    case Role::admin:
      return "admin";
  }
  return "anyone";
}

Result<Role> parse_role(std::string_view text) {
  for (const auto role : {Role::viewer, Role::operator_, Role::admin}) {
    if (text == name(role)) return role;
  }
  return fail(Code::unknown_name,
              fmt::format("\"{}\" is not a role; roles are viewer, operator and admin", text.substr(0, 64)));
}

std::string_view Request::header(std::string_view name) const noexcept {
  const auto found =
      std::ranges::find_if(headers, [&](const Pair& header) { return same_name(header.first, name); });
  return found == headers.end() ? std::string_view{} : std::string_view(found->second);
}

const std::string& Request::parameter(std::string_view name) const noexcept {
  static const std::string kEmpty;
  const auto* found = find_parameter(parameters, name);
  return found == nullptr ? kEmpty : found->second;
}

bool Request::has_parameter(std::string_view name) const noexcept {
  return find_parameter(parameters, name) != nullptr;
}

Result<Response> json(Result<std::string> body, int status) {
  if (!body) return fail(std::move(body).error());
  return Response{.status = status, .body = *std::move(body)};
}

std::string encode_percent(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
                       byte == '~';
    encoded += plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return encoded;
}

}  // namespace pawl::http
