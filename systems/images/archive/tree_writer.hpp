// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Writes the entries of an archive below a directory, through descriptors of their parents that no link can
/// lead elsewhere.
///
///     TreeWriter writer(root, policy);
///     PAWL_CHECK(writer.prepare());
///     PAWL_CHECK(writer.write(entry, reader));   // each entry
///     PAWL_CHECK(writer.finish());               // modes and times of directories, sync

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"
#include "images/archive/reader.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// Not for several threads at once.
class TreeWriter {
 public:
  TreeWriter(int root, const ArchivePolicy& policy);

  /// Errors: `volume_failed` if the directory is not empty or openat2 is missing.
  Result<void> prepare() const;
  /// Errors: those of `ArchiveReader::content`, `disk_full`, `volume_failed`.
  Result<void> write(const Admitted& entry, ArchiveReader& reader);
  Result<void> finish();

  std::vector<std::string> notes() && { return std::move(notes_); }

 private:
  /// What a directory gets when everything inside is written.
  struct Directory {
    std::string path{};
    mode_t mode = 0;
    bool implied = false;  ///< without an entry: no owner, no time
    uid_t uid = 0;
    gid_t gid = 0;
    timespec mtime{};
    Attributes::Acl acl{};
  };
  struct OpenParent {
    std::string path{};
    Descriptor directory{};
    std::uint64_t used = 0;
  };
  struct Place {
    int parent = -1;
    const char* name = nullptr;  ///< points into the entry's path
  };

  Result<Place> place_of(const std::string& path);
  Result<int> open_directory(std::string_view path);
  Result<void> make_parents(const std::string& path);
  Result<void> write_directory(const Admitted& entry, const Attributes& attributes);
  Result<void> write_file(const Admitted& entry, ArchiveReader& reader);
  Result<void> write_content(int file, const Admitted& entry, ArchiveReader& reader) const;
  Result<void> write_symlink(const Admitted& entry, const Attributes& attributes);
  Result<void> write_hardlink(const Admitted& entry);
  Result<void> write_node(const Admitted& entry, const Attributes& attributes);
  Result<void> set_owner_and_time(const Place& place, const Admitted& entry, const Attributes& attributes);
  Result<void> set_extended(int file, const Admitted& entry, const Attributes& attributes);
  Result<void> set_acl(int file, const std::string& path, const Attributes::Acl& acl);
  Result<void> finish_directory(const Directory& directory);
  void note(std::string_view text);

  int root_;
  ArchivePolicy policy_;
  bool privileged_;
  std::uint64_t clock_ = 0;
  std::array<OpenParent, 32> parents_;
  std::vector<Directory> directories_;
  std::vector<std::string> notes_;
};

}  // namespace pawl::images
