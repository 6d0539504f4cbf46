// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An archive, entry by entry, under the rules: what scan and extraction have in common.
///
///     PAWL_TRY(const auto reader, ArchiveReader::open(path, options));
///     while (true) {
///       PAWL_TRY(const auto entry, reader->next());
///       if (!entry) break;                                      // the end, and all of it is well
///       PAWL_TRY(const auto block, reader->content());          // as often as there is some
///     }

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "images/archive/archive.hpp"
#include "images/archive/archive_file.hpp"
#include "images/archive/findings.hpp"
#include "images/archive/headers.hpp"
#include "images/archive/rules.hpp"
#include "pawl/error.hpp"

struct archive;
struct archive_entry;

namespace pawl::images {

/// The extended attributes in which the kernel keeps access control lists.
inline constexpr const char* kAccessAcl = "system.posix_acl_access";
inline constexpr const char* kDefaultAcl = "system.posix_acl_default";

/// What an entry carries beside its content.
struct Attributes {
  uid_t uid = 0;
  gid_t gid = 0;
  timespec mtime{};
  dev_t device = 0;
  /// Access control lists, as the kernel takes them; empty if there are none.
  struct Acl {
    std::string access{};
    std::string preset{};  ///< of a directory, for what is made in it ("default" in POSIX)
    bool lost = false;     ///< there was another one, which cannot be kept
  } acl{};
  struct Extended {
    std::string name{};
    std::string value{};
  };
  std::vector<Extended> extended{};
};

/// A piece of a file's content and where it belongs; what lies between pieces is a hole.
struct ContentBlock {
  const char* bytes = nullptr;
  std::size_t size = 0;
  std::uint64_t offset = 0;
};

/// Not for several threads at once.
class ArchiveReader {
 public:
  static Result<std::unique_ptr<ArchiveReader>> open(const std::string& path, const ArchiveOptions& options);

  /// The next entry that the rules admit, with its attributes in `attributes()`. Nothing at the end.
  Result<std::optional<Admitted>> next();
  /// Of a regular file: its next piece, nothing at its end. Valid until the next call.
  Result<std::optional<ContentBlock>> content();

  /// At the end: that the archive was the one that the options name. Error: `archive_corrupt`.
  Result<void> check_digest();

  const Attributes& attributes() const { return attributes_; }
  ArchiveStats stats() const;

 private:
  struct Closer {
    void operator()(archive* handle) const noexcept;
  };

  ArchiveReader(Descriptor file, std::uint64_t bytes, const ArchiveOptions& options);
  static ssize_t read_more(archive* handle, void* self, const void** buffer);
  static std::int64_t skip_more(archive* handle, void* self, std::int64_t request);
  Result<void> check_magic();
  Result<void> start();
  Result<void> check_stop() const;
  Result<void> read_attributes(const EntryHead& head);
  void read_extended();
  void read_acl();
  std::unexpected<Error> broken(std::string_view what, Damage damage = Damage::malformed) const;

  ArchiveFile file_;
  const ArchiveOptions& options_;
  HeaderReader headers_;
  Rules rules_;
  std::unique_ptr<archive, Closer> handle_;
  archive_entry* entry_ = nullptr;
  Attributes attributes_;
  EntryHead head_;
  std::uint64_t delivered_ = 0;  ///< of the entry's content
  std::optional<Error> read_failure_;
};

}  // namespace pawl::images
