// SPDX-License-Identifier: Apache-2.0
// Errors are values: a call that can fail returns a Result, and each caller may add what it knows.
#include <charconv>
#include <iostream>

#include "pawl/error.hpp"

pawl::Result<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (status != std::errc() || end != text.data() + text.size()) {
    return pawl::fail(pawl::Code::invalid_argument, "a port is a whole number",
                      {{"port", std::string(text)}});
  }
  return port;
}

pawl::Result<std::string> address(std::string_view host, std::string_view port_text) {
  PAWL_TRY(const int port, parse_port(port_text));  // hands the error to our caller
  return std::string(host) + ":" + std::to_string(port);
}

int main() {
  for (const auto* port : {"8080", "eighty"}) {
    const auto result = address("localhost", port);
    std::cout << (result ? *result : result.error().to_string()) << '\n';
  }
}

// prints: localhost:8080
// prints: PAWL-2001 invalid_argument: a port is a whole number (port=eighty)
