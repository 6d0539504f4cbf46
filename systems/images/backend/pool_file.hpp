// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A pool in a sparse file: a file system of its own on a loop device, mounted at <root>/pool.

#include <cstdint>
#include <functional>
#include <string>

#include "images/backend/backend.hpp"
#include "images/backend/steps.hpp"

namespace pawl::images::pools {

/// Thread-safe as far as its callers take turns with attach, detach and grow.
class PoolFile {
 public:
  struct Kind {
    std::string type;                       ///< of the file system
    std::vector<std::string> make_program;  ///< to which the file's name is added
    std::string settings{};                 ///< of mounting
  };

  PoolFile(Kind kind, const BackendOptions& options, Step step);

  std::string file() const { return root_ + "/pool." + kind_.type; }
  std::string point() const { return root_ + "/pool"; }

  Result<void> attach();
  Result<void> detach();
  Result<void> check_attached() const;
  Result<PoolUsage> usage() const;
  /// The file and its device. Error: `invalid_argument` if it is larger already.
  Result<void> grow(std::uint64_t bytes);

 private:
  Result<void> make() const;

  const Kind kind_;
  const std::string root_;
  const std::uint64_t bytes_;
  const Duration busy_timeout_;
  Step step_;
};

/// Makes a sparse file of this size, durable.
Result<void> make_sparse(const std::string& path, std::uint64_t bytes);

}  // namespace pawl::images::pools
