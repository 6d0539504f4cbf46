// SPDX-License-Identifier: Apache-2.0
#include "images/directories.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

namespace pawl::images {
namespace {

constexpr int kMostLinks = 40;  // the kernel gives up there

/// Goes from the root to a directory, one name after the other, as the kernel does.
class SafePath {
 public:
  SafePath(std::string path, std::string_view setting) : path_(std::move(path)), setting_(setting) {}

  Result<void> make() {
    std::error_code failure;
    const auto absolute = std::filesystem::absolute(path_, failure);
    if (failure) return failed("finding", path_, failure.value());
    push(absolute.string());
    PAWL_CHECK(check_directory("/", false));
    while (!left_.empty()) {
      const auto component = std::move(left_.back());
      left_.pop_back();
      if (component == "..") {
        at_ = std::filesystem::path(at_).parent_path().string();
        if (at_ == "/") at_.clear();
        continue;
      }
      PAWL_CHECK(enter(at_ + "/" + component));
    }
    return check_directory(at_.empty() ? "/" : at_, true);
  }

 private:
  Result<void> enter(const std::string& next) {
    PAWL_TRY(auto status, look(next));
    if (!status) {
      if (::mkdir(next.c_str(), 0755) != 0 && errno != EEXIST) return failed("making", next, errno);
      PAWL_TRY(status, look(next));
    }
    if (!status) return failed("making", next, ENOENT);
    if (S_ISLNK(status->st_mode)) return follow(next, *status);
    at_ = next;
    return check_directory(next, false);
  }

  Result<void> follow(const std::string& link, const struct stat& status) {
    if (left_.empty()) return unsafe(link, "is a symbolic link: name the directory itself");
    PAWL_CHECK(check_owner(link, status));
    if (++links_ > kMostLinks) return failed("following", link, ELOOP);
    std::error_code failure;
    const auto target = std::filesystem::read_symlink(link, failure);
    if (failure) return failed("following", link, failure.value());
    if (target.is_absolute()) at_.clear();
    push(target.string());
    return {};
  }

  Result<void> check_directory(const std::string& directory, bool last) const {
    PAWL_TRY(const auto status, look(directory));
    if (!status) return failed("opening", directory, ENOENT);
    if (!S_ISDIR(status->st_mode)) return unsafe(directory, "is no directory");
    PAWL_CHECK(check_owner(directory, *status));
    const bool writable = (status->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    // With the sticky bit, others cannot remove or rename what belongs to the server there.
    if (!writable || (!last && (status->st_mode & S_ISVTX) != 0)) return {};
    return unsafe(directory,
                  fmt::format("is writable by its group or by others (mode {:04o}): take that away "
                              "with chmod go-w",
                              status->st_mode & 07777U));
  }

  Result<void> check_owner(const std::string& path, const struct stat& status) const {
    if (status.st_uid == 0 || status.st_uid == ::geteuid()) return {};
    return unsafe(path,
                  fmt::format("belongs to user {}: give it to root or to the server's user", status.st_uid));
  }

  /// Nothing where there is nothing.
  Result<std::optional<struct stat>> look(const std::string& path) const {
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0) return status;
    if (errno == ENOENT) return std::nullopt;
    return failed("opening", path, errno);
  }

  /// The components of a path come before those that are left.
  void push(const std::string& path) {
    for (auto end = path.size(); end != std::string::npos;) {
      const auto slash = end == 0 ? std::string::npos : path.rfind('/', end - 1);
      const auto begin = slash == std::string::npos ? 0 : slash + 1;
      auto component = path.substr(begin, end - begin);
      if (!component.empty() && component != ".") left_.push_back(std::move(component));
      end = slash;
    }
  }

  std::unexpected<Error> unsafe(const std::string& path, std::string_view why) const {
    return fail(Code::config_invalid,
                fmt::format("{}: another user could replace what is in {}: {} {}, or choose "
                            "another directory",
                            setting_, path_, path, why));
  }
  std::unexpected<Error> failed(std::string_view doing, const std::string& path, int number) const {
    return fail(Code::volume_failed, fmt::format("{} {} for the directory {}: {}", doing, path, path_,
                                                 std::generic_category().message(number)));
  }

  std::string path_;
  std::string_view setting_;
  std::vector<std::string> left_;  ///< the next one last
  std::string at_;                 ///< without links; empty is the root
  int links_ = 0;
};

}  // namespace

Result<void> make_safe_directory(const std::string& path, std::string_view setting) {
  return SafePath(path, setting).make();
}

}  // namespace pawl::images
