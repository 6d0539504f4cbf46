// SPDX-License-Identifier: Apache-2.0
// Whether an unpacked tree looks like a root file system.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"
#include "images/archive/findings.hpp"
#include "images/archive/rules.hpp"

namespace pawl::images {
namespace {

struct CloseListing {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

std::unexpected<Error> layout_wrong(std::string_view path, std::string_view what) {
  return fail(Code::layout_invalid, fmt::format("\"{}\" {}", entry_name(path), what),
              {{"path", entry_name(path)}});
}

std::unexpected<Error> layout_unreadable(int number, std::string_view path) {
  return fail(Code::volume_failed,
              fmt::format("\"{}\" cannot be read: {}", entry_name(path), errno_text(number)),
              {{"path", entry_name(path)}, {"errno", std::to_string(number)}});
}

enum class Presence : std::uint8_t { directory, other, missing };

/// What is at a path below the root, without following links.
Result<Presence> presence(int root, const std::string& path) {
  const auto opened = open_beneath(root, path, O_PATH | O_NOFOLLOW);
  if (!opened) {
    if (errno == ENOENT) return Presence::missing;
    // A link, or something that is no directory, on the way.
    if (errno == ELOOP || errno == ENOTDIR) return Presence::other;
    return layout_unreadable(errno, path);
  }
  struct stat status{};
  if (::fstat(opened.get(), &status) != 0) return layout_unreadable(errno, path);
  return S_ISDIR(status.st_mode) ? Presence::directory : Presence::other;
}

Result<bool> is_directory(int parent, const dirent& found, const std::string& path) {
  if (found.d_type != DT_UNKNOWN) return found.d_type == DT_DIR;
  struct stat status{};
  if (::fstatat(parent, found.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return layout_unreadable(errno, path);
  return S_ISDIR(status.st_mode);
}

/// A directory that is checked with all that is below it. It may be reached by a link, so that its own name
/// says nothing about where it is.
class Checked {
 public:
  Checked(Descriptor top, std::string name) : top_(std::move(top)), name_(std::move(name)) {}

  Result<void> check() {
    std::vector<std::string> left{""};
    while (!left.empty()) {
      const auto below = std::move(left.back());
      left.pop_back();
      PAWL_CHECK(check_directory(below, left));
    }
    return {};
  }

 private:
  std::string path_of(const std::string& below) const {
    return below.empty() ? name_ : fmt::format("{}/{}", name_, below);
  }

  /// Checks one directory and adds those in it to `left`.
  Result<void> check_directory(const std::string& below, std::vector<std::string>& left) const {
    const auto path = path_of(below);
    const auto opened = open_beneath(top_.get(), below, O_RDONLY | O_DIRECTORY);
    struct stat status{};
    if (!opened || ::fstat(opened.get(), &status) != 0) return layout_unreadable(errno, path);
    if ((status.st_mode & S_IWOTH) != 0) {
      return layout_wrong(path,
                          fmt::format("is writable for everybody (mode {:04o}); a directory at or below etc "
                                      "and usr must not be",
                                      status.st_mode & 07777U));
    }
    const std::unique_ptr<DIR, CloseListing> listing(::fdopendir(::fcntl(opened.get(), F_DUPFD_CLOEXEC, 0)));
    if (!listing) return layout_unreadable(errno, path);
    while (true) {
      errno = 0;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this stream
      const auto* found = ::readdir(listing.get());
      if (found == nullptr) break;
      const std::string_view component(found->d_name);
      if (component == "." || component == "..") continue;
      PAWL_TRY(const bool is_below, is_directory(opened.get(), *found, path));
      if (!is_below) continue;
      left.push_back(below.empty() ? std::string(component) : fmt::format("{}/{}", below, component));
      // An archive cannot hold such a tree, so something else has written here.
      const auto whole = path_of(left.back());
      if (whole.size() > Rules::kLongestPath ||
          std::ranges::count(whole, '/') >= static_cast<std::ptrdiff_t>(Rules::kDeepest)) {
        return layout_wrong(whole, fmt::format("is more than {} directories deep", Rules::kDeepest - 1));
      }
    }
    if (errno != 0) return layout_unreadable(errno, path);
    return {};
  }

  Descriptor top_;
  std::string name_;
};

}  // namespace

Result<std::vector<std::string>> verify_layout(int root, const Layout& layout) {
  std::string base = layout.direct ? "" : "rootfs";
  if (layout.either && !layout.direct) {
    PAWL_TRY(const auto rootfs, presence(root, base));
    const bool is_root = open_in_root(root, "etc") && open_in_root(root, "usr");
    if (rootfs == Presence::missing && is_root) base.clear();
  }
  if (!base.empty()) {
    PAWL_TRY(const auto rootfs, presence(root, base));
    if (rootfs == Presence::missing) {
      return layout_wrong(base,
                          "is missing; the root file system is expected there (images.direct_layout says "
                          "that it is the archive itself)");
    }
    if (rootfs == Presence::other) return layout_wrong(base, "is no directory");
  }
  const auto top = open_beneath(root, base, O_RDONLY | O_DIRECTORY);
  if (!top) return layout_unreadable(errno, base);
  std::vector<std::string> notes;
  for (const std::string expected : {"etc", "usr", "var"}) {
    const auto path = base.empty() ? expected : fmt::format("{}/{}", base, expected);
    auto found = open_in_root(top.get(), expected);
    if (found) {
      if (expected != "var") PAWL_CHECK(Checked(std::move(found), path).check());
      continue;
    }
    // ELOOP: a link that leads to itself; EXDEV: out of the volume.
    const bool missing = errno == ENOENT || errno == ELOOP || errno == EXDEV;
    if (!missing && errno != ENOTDIR) return layout_unreadable(errno, path);
    const auto* what = missing ? "is missing" : "is no directory";
    if (layout.strict) {
      return layout_wrong(path, fmt::format("{}, which images.strict_layout does not allow", what));
    }
    notes.push_back(fmt::format("\"{}\" {}", path, what));
  }
  return notes;
}

}  // namespace pawl::images
