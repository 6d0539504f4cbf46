// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::cli {

/// The address of a server: "http://127.0.0.1:7420" or "https://pawl.example/base".
struct Url {
  bool tls = false;
  std::string host;  ///< without the brackets of an IPv6 address
  std::string port;
  std::string base;  ///< what stands before every path, without a slash at its end; often empty

  /// As it goes into the header Host, and into messages.
  std::string authority() const;
  std::string text() const;
  bool loopback() const;
};

/// Error: `invalid_argument` with the expected form.
Result<Url> parse_url(std::string_view text);

/// "?a=1&b=2" of the pairs with a value; empty if there are none.
std::string query(const std::vector<std::pair<std::string, std::string>>& parameters);

}  // namespace pawl::cli
