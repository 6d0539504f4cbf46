// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "images/source/part.hpp"
#include "images/source/source.hpp"
#include "kernel/utf8.hpp"

namespace pawl::images {
namespace {

using source::Part;

constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Where files may be taken from. The descriptor stays on the directory, whatever its name becomes.
struct Allowed {
  std::string path;  ///< with "/" at its end
  Descriptor handle;
};

/// What is open, and what it was then.
struct OpenFile {
  Descriptor handle;
  ObjectInfo info;
};

Error source_error(std::string_view doing, std::string_view path, int code) {
  Code kind = Code::source_failed;
  if (code == ENOENT || code == ENOTDIR) kind = Code::source_missing;
  // A symbolic link is ELOOP and a way out of the directory EXDEV.
  if (code == EACCES || code == EPERM || code == ELOOP || code == EXDEV) kind = Code::source_denied;
  auto why = std::generic_category().message(code);
  if (code == ELOOP) why = "a symbolic link is not followed";
  if (code == EXDEV) why = "it leads out of the allowed directory";
  return {kind, fmt::format("{} {}: {}", doing, shown(path), why)};
}

Result<ObjectInfo> info_of(int file, std::string_view path) {
  struct stat status{};
  if (fstat(file, &status) != 0) return fail(source_error("reading", path, errno));
  if (!S_ISREG(status.st_mode))
    return fail(Code::source_denied, fmt::format("{} is not a regular file", shown(path)));
  return ObjectInfo{.bytes = static_cast<std::uint64_t>(status.st_size),
                    .etag = fmt::format("\"{}-{}-{}.{:09}\"", status.st_ino, status.st_size,
                                        status.st_mtim.tv_sec, status.st_mtim.tv_nsec)};
}

class Files final : public Source {
 public:
  explicit Files(std::vector<Allowed> allowed) : allowed_(std::move(allowed)) {}

  Result<ObjectInfo> look(const ObjectName& name, std::stop_token) override {
    PAWL_TRY(auto file, open_file(name));
    return std::move(file.info);
  }

  Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                        const FetchOptions& options) override {
    PAWL_TRY(const auto file, open_file(name));
    if (file.info.bytes > options.max_bytes) {
      PAWL_CHECK(forget_part(path));
      return fail(too_large(file.info.bytes, options));
    }
    PAWL_TRY(auto part, Part::open(path, name.key));
    auto fetched = copy(name, file, part, options);
    if (!fetched) return part.give_up(std::move(fetched).error());
    return fetched;
  }

 private:
  static Error too_large(std::uint64_t bytes, const FetchOptions& options) {
    return {Code::too_large, fmt::format("the file has {} bytes; at most {} are allowed (images.image_size)",
                                         bytes, options.max_bytes)};
  }

  Result<OpenFile> open_file(const ObjectName& name) const {
    if (!name.bucket.empty())
      return fail(Code::invalid_argument, fmt::format("bucket \"{}\": a file has none", shown(name.bucket)));
    for (const auto& [directory, handle] : allowed_) {
      if (!name.key.starts_with(directory)) continue;
      const auto below = name.key.substr(directory.size());
      PAWL_CHECK(check_key(below));
      open_how how{};
      // Not blocking, because opening a pipe would wait for its other end.
      how.flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
      how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
      Descriptor file(static_cast<int>(syscall(SYS_openat2, handle.get(), below.c_str(), &how, sizeof how)));
      if (!file) return fail(source_error("opening", name.key, errno));
      PAWL_TRY(auto info, info_of(file.get(), name.key));
      return OpenFile{std::move(file), std::move(info)};
    }
    return fail(
        Code::invalid_argument,
        fmt::format("{} is not below a directory that files may be taken from; a file is named by its "
                    "absolute path",
                    shown(name.key)));
  }

  static Result<Fetched> copy(const ObjectName& name, const OpenFile& file, Part& part,
                              const FetchOptions& options) {
    const auto& info = file.info;
    const auto changed = [&] {
      return fail(Code::source_changed, fmt::format("{} changed while it was copied", shown(name.key)));
    };
    if (part.size() > 0) {
      if (part.tag().etag != info.etag) return changed();
      PAWL_CHECK(part.hash_kept(options.stop));
    } else {
      PAWL_CHECK(part.begin_anew(info.etag, info.bytes));
    }
    std::string bytes(kPiece, '\0');
    while (part.size() < info.bytes) {
      if (options.stop.stop_requested()) return fail(Code::cancelled, "stopped while copying a file");
      const auto got =
          pread(file.handle.get(), bytes.data(), std::min<std::uint64_t>(kPiece, info.bytes - part.size()),
                static_cast<off_t>(part.size()));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(source_error("reading", name.key, errno));
      if (got == 0) return changed();
      PAWL_CHECK(part.append(std::string_view(bytes).substr(0, static_cast<std::size_t>(got))));
      if (options.progress) options.progress(part.size(), info.bytes);
    }
    PAWL_TRY(const auto now, info_of(file.handle.get(), name.key));
    if (now.etag != info.etag) return changed();
    return part.finish();
  }

  const std::vector<Allowed> allowed_;
};

}  // namespace

Result<std::unique_ptr<Source>> open_files(std::vector<std::string> directories) {
  std::vector<Allowed> allowed;
  for (auto& directory : directories) {
    if (!directory.starts_with('/'))
      return fail(Code::invalid_argument,
                  fmt::format("the directory \"{}\" is not an absolute path", shown(directory)));
    Descriptor handle(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!handle)
      return fail(Code::invalid_argument, fmt::format("opening the directory {}: {}", shown(directory),
                                                      std::generic_category().message(errno)));
    if (!directory.ends_with('/')) directory += '/';
    allowed.push_back({std::move(directory), std::move(handle)});
  }
  return std::make_unique<Files>(std::move(allowed));
}

}  // namespace pawl::images
