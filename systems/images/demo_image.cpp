// SPDX-License-Identifier: Apache-2.0
#include "images/demo_image.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string_view>

namespace pawl::images {
namespace {

/// Writes entries with fixed times, so that the same image is always the same bytes.
class TarWriter {
 public:
  explicit TarWriter(const std::string& path)
      : archive_(archive_write_new(), [](archive* open) { archive_write_free(open); }) {
    archive_write_set_format_pax_restricted(archive_.get());
    good_ = archive_write_open_filename(archive_.get(), path.c_str()) == ARCHIVE_OK;
  }

  void directory(const std::string& name) { add(name, AE_IFDIR, 0755, {}); }
  void file(const std::string& name, std::string_view content) { add(name, AE_IFREG, 0644, content); }
  void link(const std::string& name, const std::string& target) { add(name, AE_IFLNK, 0777, {}, target); }

  bool finish() { return archive_write_close(archive_.get()) == ARCHIVE_OK && good_; }
  std::string problem() const {
    const char* text = archive_error_string(archive_.get());
    return text == nullptr ? "no reason was given" : text;
  }

 private:
  void add(const std::string& name, unsigned kind, unsigned mode, std::string_view content,
           const std::string& target = {}) {
    constexpr time_t kWhen = 1'700'000'000;
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), kind);
    archive_entry_set_perm(entry.get(), mode);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(content.size()));
    archive_entry_set_mtime(entry.get(), kWhen, 0);
    if (!target.empty()) archive_entry_set_symlink(entry.get(), target.c_str());
    good_ = good_ && archive_write_header(archive_.get(), entry.get()) == ARCHIVE_OK &&
            archive_write_data(archive_.get(), content.data(), content.size()) ==
                static_cast<la_ssize_t>(content.size());
  }

  std::unique_ptr<archive, void (*)(archive*)> archive_;
  bool good_ = true;
};

void fill(TarWriter& tar) {
  for (const auto* name : {"rootfs", "rootfs/etc", "rootfs/usr", "rootfs/usr/bin", "rootfs/usr/share",
                           "rootfs/usr/share/hello", "rootfs/var", "rootfs/var/log", "rootfs/tmp"}) {
    tar.directory(name);
  }
  tar.file("rootfs/etc/hostname", "hello\n");
  tar.file("rootfs/etc/os-release", "NAME=\"Hello\"\nID=hello\nVERSION_ID=1\n");
  tar.file("rootfs/usr/bin/hello", "#!/bin/sh\necho 'Hello from a snapshot.'\n");
  tar.link("rootfs/bin", "usr/bin");
  for (int page = 1; page <= 200; ++page) {
    tar.file(fmt::format("rootfs/usr/share/hello/page-{:03}", page),
             std::string(4096, static_cast<char>('a' + page % 26)));
  }
}

}  // namespace

Result<std::string> write_demo_image(const std::string& directory) {
  auto path = directory + "/hello.tar";
  std::error_code failure;
  if (std::filesystem::exists(path, failure)) return path;
  const auto part = path + ".new";
  TarWriter tar(part);
  fill(tar);
  if (!tar.finish()) {
    return fail(Code::store_io, fmt::format("{} cannot be written: {}", part, tar.problem()));
  }
  std::filesystem::rename(part, path, failure);
  if (failure) return fail(Code::store_io, fmt::format("{} cannot be written: {}", path, failure.message()));
  return path;
}

}  // namespace pawl::images
