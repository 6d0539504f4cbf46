// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rules that an archive is held to, one entry after the other. Scan and extraction ask the same object.
///
///     Rules rules(limits, policy);
///     PAWL_TRY(const auto entry, rules.admit(head));   // archive_hostile, or where it goes
///     PAWL_CHECK(rules.finish());
///
/// It remembers every name, so that an entry is never below a link or a file of the same archive.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "images/archive/archive.hpp"
#include "images/archive/headers.hpp"
#include "pawl/error.hpp"

namespace pawl::images {

/// An entry that may be written.
struct Admitted {
  EntryKind kind = EntryKind::regular;
  std::uint32_t mode = 0;
  std::string path{};  ///< components joined by "/", none of them "." or ".."; empty is the root
  std::string link{};  ///< of a hard link as `path` is, of a symbolic link as the archive has it
  std::uint64_t size = 0;
};

/// Not for several threads at once.
class Rules {
 public:
  Rules(const ArchiveLimits& limits, const ArchivePolicy& policy);

  Result<Admitted> admit(const EntryHead& head);
  /// What only the whole archive shows: links that leave their boundary by way of other links.
  Result<void> finish() const;

  std::uint64_t entries() const { return entries_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }

  static constexpr std::size_t kLongestPath = 4095;
  static constexpr std::size_t kLongestComponent = 255;
  static constexpr std::size_t kDeepest = 256;

 private:
  using Id = std::uint32_t;
  static constexpr Id kRoot = 0;
  struct Node {
    Id parent = kRoot;
    EntryKind kind = EntryKind::directory;
    std::string name{};
  };
  using Key = std::pair<Id, std::string>;
  using KeyView = std::pair<Id, std::string_view>;
  struct KeyLess {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.first != b.first ? a.first < b.first : std::string_view(a.second) < std::string_view(b.second);
    }
  };
  struct Link {
    std::string target{};
    bool winding = false;  ///< goes up again after it went down
  };

  Result<void> check_size(const EntryHead& head);
  Result<std::uint32_t> check_mode(const EntryHead& head) const;
  Result<void> check_device(const Admitted& entry) const;
  Result<Link> check_symlink(const Admitted& entry, std::string_view target) const;
  Result<std::string> check_hardlink(const Admitted& entry, std::string_view target) const;
  Result<std::optional<Id>> place(const Admitted& entry);
  Result<Id> parent_of(const Admitted& entry);
  Result<std::optional<Id>> find(Id parent, std::string_view name, std::string_view path) const;
  std::optional<Id> look_up(std::string_view path) const;
  Id add(Id parent, EntryKind kind, std::string_view name);
  std::string key_name(std::string_view name) const;
  bool stays_inside(Id link, std::uint64_t& budget) const;
  std::string path_of(Id id) const;
  Id boundary_of(Id id) const;

  ArchiveLimits limits_;
  ArchivePolicy policy_;
  std::uint64_t entries_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t implied_ = 0;  ///< directories without an entry of their own
  std::vector<Node> nodes_{Node{}};
  std::map<Key, Id, KeyLess> children_;
  std::map<Id, Link> links_;
  std::string last_parent_;  ///< entries of one directory follow each other
  Id last_parent_id_ = kRoot;
};

}  // namespace pawl::images
