// SPDX-License-Identifier: Apache-2.0
// The configuration: any bytes are either read, or refused with a message that says where.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pawl/assert.hpp"
#include "server/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = pawl::server::parse_config(text, "fuzz");
  if (!config) {
    PAWL_ASSERT(config.error().code() == pawl::Code::config_invalid, "a refusal says that the file is wrong");
    PAWL_ASSERT(config.error().message().starts_with("fuzz:"), "a refusal says where",
                config.error().message());
  }
  return 0;
}
