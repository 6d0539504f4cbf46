// SPDX-License-Identifier: Apache-2.0
// A tree of workers: any bytes are either refused with lines that say where, or read as a tree that can be
// written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pawl/assert.hpp"
#include "workers/config/diff.hpp"
#include "workers/config/tree.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = pawl::workers::read_tree(text, "fuzz", nullptr);
  if (!tree) {
    PAWL_ASSERT(tree.error().code() == pawl::Code::config_invalid, "a refusal says that the file is wrong");
    PAWL_ASSERT(tree.error().message().starts_with("fuzz:"), "a refusal says where", tree.error().message());
    return 0;
  }
  const auto written = pawl::workers::write_tree(*tree);
  // Quotes and escapes may take what was written beyond the limit.
  if (written.size() > (std::size_t{1} << 20)) return 0;
  const auto again = pawl::workers::read_tree(written, "again", nullptr);
  PAWL_ASSERT(again.has_value(), "what was written is read", written);
  PAWL_ASSERT(*again == *tree, "what was written is the same tree", written);
  PAWL_ASSERT(pawl::workers::diff(*tree, *again).empty(), "equal trees differ in nothing");
  return 0;
}
