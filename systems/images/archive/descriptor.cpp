// SPDX-License-Identifier: Apache-2.0
#include "images/archive/descriptor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <cerrno>
#include <system_error>

#include "images/archive/findings.hpp"

namespace pawl::images {
namespace {

Descriptor open_resolved(int root, const std::string& path, int flags, std::uint64_t resolve) noexcept {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.resolve = resolve | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
  const char* name = path.empty() ? "." : path.c_str();
  while (true) {
    const auto opened = ::syscall(SYS_openat2, root, name, &how, sizeof how);
    if (opened >= 0) return Descriptor(static_cast<int>(opened));
    if (errno != EINTR && errno != EAGAIN) return {};
  }
}

}  // namespace

Descriptor open_beneath(int root, const std::string& path, int flags) noexcept {
  return open_resolved(root, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

Descriptor open_in_root(int root, const std::string& path) noexcept {
  return open_resolved(root, path, O_RDONLY | O_DIRECTORY, RESOLVE_IN_ROOT);
}

std::string errno_text(int number) { return std::generic_category().message(number); }

std::unexpected<Error> write_failed(int number, std::string_view doing, std::string_view path) {
  const bool full = number == ENOSPC || number == EDQUOT;
  return fail(full ? Code::disk_full : Code::volume_failed,
              fmt::format("{} \"{}\": {}", doing, entry_name(path), errno_text(number)),
              {{"path", entry_name(path)}, {"errno", std::to_string(number)}});
}

}  // namespace pawl::images
