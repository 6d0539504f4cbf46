// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How a volume of dm-thin is recognised while it is not active: the pool itself knows numbers only. ext4
/// leaves the first 1024 bytes of a device alone, so a label stands in the first sector of them. It is
/// written last, so a volume with its own label is complete. In a fresh snapshot there is still the origin's
/// label.

#include <cstdint>
#include <optional>
#include <string>

#include "images/backend/backend.hpp"

namespace pawl::images::pools {

/// How much of a volume is read to recognise it.
inline constexpr std::uint64_t kLabelRead = 4096;

struct ThinLabel {
  std::uint32_t id = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::string marker;
};

/// What the beginning of a volume shows.
struct ThinFace {
  std::optional<ThinLabel> label{};
  std::string ext4_marker{};  ///< the UUID of a file system; empty if there is none
  bool blank = false;         ///< nothing but zeros
};

Result<ThinFace> read_face(const std::string& device);
/// Durable when it returns.
Result<void> write_label(const std::string& device, const Volume& volume);

}  // namespace pawl::images::pools
