// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Checks, errors and locks that all back ends share.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "images/backend/backend.hpp"

namespace pawl::images::pools {

/// Its id, name, size and marker are as the header says. Error: `invalid_argument`.
Result<void> check_volume(const Volume& volume);
Result<void> check_volume_id(std::uint32_t id);
/// The copy can hold what the origin holds, and is another one. Error: `invalid_argument`.
Result<void> check_copy(const Volume& origin, const Volume& copy);

/// `volume_missing`; `why` completes the sentence "volume 7 (img-1) …".
Error missing_volume(const Volume& volume, std::string_view why);
/// `volume_exists`.
Error taken_volume(const Volume& volume, std::string_view other_marker);

/// Why a volume was not written completely.
enum class WriteFailure : std::uint8_t { none, pool_full, volume_failed };

/// Recorded in the mode of a file, which needs no space: the pool may be full. Durable when it
/// returns.
Result<void> record_write_failure(const std::string& file, WriteFailure write_failure);
/// What was recorded; `none` if there is no such file.
WriteFailure recorded_write_failure(const std::string& file);

/// The error of a volume that was not written completely.
Error incomplete_volume(const Volume& volume, WriteFailure write_failure);

/// Gives each volume to one caller at a time; different volumes do not wait for each other. Thread-safe.
class VolumeLocks {
 public:
  /// Holds one or two volumes while it lives.
  class Hold {
   public:
    Hold(VolumeLocks& locks, std::set<std::uint32_t> ids);
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold();

   private:
    VolumeLocks& locks_;
    std::set<std::uint32_t> ids_;
  };

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::set<std::uint32_t> held_;
};

}  // namespace pawl::images::pools
