// SPDX-License-Identifier: Apache-2.0
#include "server/listen.hpp"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "server/origin.hpp"
#include "server/transport.hpp"

namespace pawl::server {
namespace {

/// "127.0.0.1:7420" or "[::1]:7420".
Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  Address address;
  const auto number = colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const auto* end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, address.port);
  // A number that is too large is read to its end, too.
  if (number.empty() || read.ptr != end || read.ec != std::errc{}) {
    return fail(Code::invalid_argument,
                fmt::format("\"{}\" is not an address with a port, such as 127.0.0.1:7420", text));
  }
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  return address;
}

/// Beyond loopback the server needs both authentication and TLS.
Result<void> check_exposure(const ServerOptions& options, std::string_view host, bool with_auth) {
  if (is_loopback(host) || options.allow_insecure) return {};
  if (with_auth && !options.certificate.empty()) return {};
  return fail(Code::unsafe_address,
              fmt::format("{} can be reached from other machines: listen on 127.0.0.1, set up auth and TLS, "
                          "or set allow_insecure",
                          options.listen));
}

}  // namespace

Result<Address> check_listening(const ServerOptions& options, bool with_auth) {
  PAWL_TRY(auto address, parse_address(options.listen));
  PAWL_CHECK(check_exposure(options, address.host, with_auth));
  PAWL_CHECK(Transport::check(address.host, options.certificate, options.key));
  return address;
}

}  // namespace pawl::server
