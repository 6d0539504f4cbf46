// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Descriptors, and opening by name without leaving a directory.
///
///     PAWL_TRY(const auto etc, open_beneath(root, "rootfs/etc", O_RDONLY | O_DIRECTORY));

#include <unistd.h>

#include <string>
#include <utility>

#include "pawl/error.hpp"

namespace pawl::images {

/// Closes what it holds. A value that can be moved.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }

  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// Opens something at or below `root` without following any link and without leaving its file system; "" is
/// the root itself. Returns none and sets errno where that fails.
Descriptor open_beneath(int root, const std::string& path, int flags) noexcept;

/// The text of an error number.
std::string errno_text(int number);

/// `disk_full` where there is no space, `volume_failed` for anything else.
[[nodiscard]] std::unexpected<Error> write_failed(int number, std::string_view doing, std::string_view path);

}  // namespace pawl::images
