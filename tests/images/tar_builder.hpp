// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Raw tar archives, well-formed or not, and a place to unpack them next to something that must stay as it
/// is.
///
///     const ArchivePlace place(ArchivePlace::Kind::memory);
///     place.write(TarBuilder().file("a", "content").end());
///     const auto found = scan(place.archive(), {});

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "images/archive/archive.hpp"

namespace pawl::images {

/// One header block, by default that of an empty file. What is given is written as it is, right or wrong.
struct RawHeader {
  std::string name{};
  char type = '0';
  std::uint32_t mode = 0644;
  std::uint64_t size = 0;
  std::string link{};
  std::string prefix{};
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::uint64_t mtime = 1'700'000'000;
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::string size_field{};  ///< instead of `size`, if not empty
  std::string magic = std::string("ustar\00000", 8);
  int wrong_by = 0;  ///< added to the checksum
};

class TarBuilder {
 public:
  TarBuilder& header(const RawHeader& header);
  TarBuilder& file(std::string name, std::string_view content = "", std::uint32_t mode = 0644);
  TarBuilder& directory(std::string name, std::uint32_t mode = 0755);
  TarBuilder& symlink(std::string name, std::string target);
  TarBuilder& hardlink(std::string name, std::string target);
  /// An extension of any type with a body: 'x', 'g', 'L', 'K'.
  TarBuilder& extension(char type, std::string_view body);
  TarBuilder& pax(const std::vector<std::pair<std::string, std::string>>& records);
  /// Bytes as they are, filled up to a whole block.
  TarBuilder& body(std::string_view bytes);
  TarBuilder& raw(std::string_view bytes);
  /// The two empty blocks.
  TarBuilder& end();

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string pax_record(std::string_view key, std::string_view value);

/// A directory with archive.tar, an empty root/ and a canary/ that nothing may touch. Removed at the end.
class ArchivePlace {
 public:
  /// On a disk, or in memory where that is possible: unpacking syncs, which takes long on a busy disk.
  enum class Kind : std::uint8_t { disk, memory };
  explicit ArchivePlace(Kind kind);
  ~ArchivePlace();
  ArchivePlace(const ArchivePlace&) = delete;
  ArchivePlace& operator=(const ArchivePlace&) = delete;

  std::string archive() const { return (top_ / "archive.tar").string(); }
  std::filesystem::path top() const { return top_; }
  std::filesystem::path root() const { return top_ / "root"; }
  std::filesystem::path canary() const { return top_ / "canary"; }
  void write(const TarBuilder& archive) const { write(archive.bytes()); }
  void write(std::string_view bytes) const;

  /// Unpacks the archive into root/ through a descriptor of it.
  Result<ArchiveStats> unpack(const ArchiveOptions& options = {}) const;
  /// Makes root/ empty again.
  void clear() const;
  /// What is wrong outside root/; empty where all is as it was.
  std::string outside() const;

 private:
  std::filesystem::path top_;
};

/// Runs a program to its end; its exit status.
int run_command(const std::vector<std::string>& arguments);

/// What `body` returns when it runs in a process of its own, which may give away what it likes.
int in_child(const std::function<int()>& body);

/// One line for everything that two trees have in common if they are equal: names, kinds, modes, owners,
/// times, sizes, targets, links among each other, extended attributes, and a hash of the content.
std::vector<std::string> describe_tree(const std::filesystem::path& root);

}  // namespace pawl::images
