// SPDX-License-Identifier: Apache-2.0
// The configuration: any bytes are either read, or refused with a message that says where.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "images/system.hpp"
#include "pawl/assert.hpp"
#include "server/config.hpp"
#include "server/demo.hpp"
#include "workers/system.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const pawl::server::Systems systems = [] {
    pawl::server::Systems all;
    all.push_back(pawl::server::make_demo());
    all.push_back(pawl::images::make_images());
    all.push_back(pawl::workers::make_workers());
    return all;
  }();
  const auto config = pawl::server::parse_config(text, "fuzz", systems);
  if (!config) {
    PAWL_ASSERT(config.error().code() == pawl::Code::config_invalid, "a refusal says that the file is wrong");
    PAWL_ASSERT(config.error().message().starts_with("fuzz:"), "a refusal says where",
                config.error().message());
  }
  return 0;
}
