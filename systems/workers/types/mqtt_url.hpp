// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "pawl/error.hpp"
#include "workers/types/address.hpp"

namespace pawl::workers {

inline constexpr std::string_view kTlsScheme = "mqtts://";

/// "mqtt://host", with or without a port; tcp:// means the same, mqtts:// is with TLS. Error: `spec_invalid`.
Result<Address> parse_mqtt_url(std::string_view url);

}  // namespace pawl::workers
