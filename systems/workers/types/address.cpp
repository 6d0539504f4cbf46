// SPDX-License-Identifier: Apache-2.0
#include "workers/types/address.hpp"

#include <fmt/format.h>

#include <charconv>

namespace pawl::workers {

Result<Address> parse_address(std::string_view text, std::uint16_t default_port) {
  const auto refuse = [&] {
    return fail(Code::spec_invalid,
                fmt::format("'{}' is not an address; write host:port, or [number]:port for IPv6", text),
                {{"address", std::string(text)}});
  };
  auto host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos) return refuse();
    host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return refuse();
  } else if (const auto colon = text.find(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon);
  }
  Address found{.host = std::string(host), .port = default_port};
  if (!port.empty()) {
    port.remove_prefix(1);
    const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), found.port);
    if (problem != std::errc{} || end != port.data() + port.size()) return refuse();
  }
  if (found.host.empty() || found.port == 0) return refuse();
  if (found.host.find_first_of(" \t\r\n/@") != std::string::npos) return refuse();
  return found;
}

}  // namespace pawl::workers
