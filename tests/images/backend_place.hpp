// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A pool for one test, of whose devices and mounts nothing is left when it ends, also when the test fails.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/backend.hpp"
#include "images/backend/steps.hpp"

namespace pawl::images::pools {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

/// A volume whose name and marker follow from its id.
Volume test_volume(std::uint32_t id, std::uint64_t bytes = 64 * kMiB);
/// As `test_volume`, with another marker.
Volume stranger(std::uint32_t id);

/// "dir", "reflink", …
std::string kind_name(BackendKind kind);
/// Why tests of this kind cannot run here; empty where they can.
std::string obstacle(BackendKind kind);

class Place {
 public:
  /// `own_files`: a pool of dmthin in files, even where devices are given for it by the environment.
  explicit Place(BackendKind kind, std::uint64_t pool_bytes = 512 * kMiB, bool own_files = false);
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place();

  const std::string& root() const { return options_.root; }
  BackendOptions& options() { return options_; }

  /// As another process would open it; not attached.
  std::unique_ptr<Backend> open(const Step& step = [](std::string_view) {}) const;

  /// Devices, mounts and files that no volume and no pool should have left.
  std::vector<std::string> leftovers() const;
  /// What is mounted or attached.
  std::vector<std::string> in_use() const;

 private:
  void clear() const;

  BackendOptions options_;
};

void write_text(const std::string& path, std::string_view text);
std::string read_text(const std::string& path);

}  // namespace pawl::images::pools
