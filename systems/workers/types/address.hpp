// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::workers {

struct Address {
  std::string host;  ///< without brackets
  std::uint16_t port = 0;
};

/// "host:port" or "[v6]:port"; with a default port, also without one. Error: `spec_invalid`.
Result<Address> parse_address(std::string_view text, std::uint16_t default_port = 0);

}  // namespace pawl::workers
