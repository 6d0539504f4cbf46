// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A file that comes in bit by bit and is there only when it is whole.
///
///     PAWL_TRY(auto part, Part::open("alpine.tar", "images/alpine.tar"));
///     part.size();                        // what an interrupted call has left: go on there
///     PAWL_CHECK(part.append(bytes));
///     return part.finish();               // alpine.tar is there, durable
///
/// Beside "alpine.tar.part" stands "alpine.tar.part.tag", which says what object the bytes belong to. Bytes
/// that were written survive the death of the process, but the machine may lose them when it goes down: the
/// tag names the boot during which they were written and how many of them are durable for certain.

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "images/background_hash.hpp"
#include "images/descriptor.hpp"
#include "images/source/source.hpp"
#include "pawl/error.hpp"

namespace pawl::images::source {

/// `disk_full` or `store_io`, from an errno.
Error file_error(std::string_view doing, const std::string& path, int code);

/// What the bytes are of.
struct PartTag {
  std::string object;  ///< the bucket and the key, or the path
  std::string etag;
  std::uint64_t bytes = 0;  ///< of the whole object
};

/// Used by one thread at a time; another fetch to the same path, also of another process, is refused.
class Part {
 public:
  /// Takes up what was kept for this object, if anything. Errors: `source_failed` while another run fetches
  /// to the same path, `disk_full`, `store_io`.
  static Result<Part> open(std::string path, std::string_view object);

  std::uint64_t size() const { return size_; }
  std::uint64_t resumed_at() const { return resumed_at_; }
  /// Of the object that the kept bytes belong to; meaningful where `size` is not 0.
  const PartTag& tag() const { return tag_; }

  /// Hashes what was kept, to be called before the first `append` that goes on there. Error: `cancelled`.
  Result<void> hash_kept(const std::stop_token& stop);

  /// Throws away what is there and begins another one. Without an etag or a size nothing is kept later.
  Result<void> begin_anew(std::string etag, std::optional<std::uint64_t> bytes);

  Result<void> append(std::string_view bytes);

  /// Makes everything durable under the final name.
  Result<Fetched> finish();

  /// After a failure: keeps what a later call can go on with, and removes everything else. Returns `error`.
  std::unexpected<Error> give_up(Error error);

  /// Removes what is there.
  void discard();

 private:
  Part(std::string path, std::string object) : path_(std::move(path)) { tag_.object = std::move(object); }

  Result<void> lock();
  Result<void> load();
  Result<void> write_tag(std::uint64_t durable) const;
  Result<void> flush();
  Result<void> keep();
  std::string part_path() const { return path_ + ".part"; }

  std::string path_;
  Descriptor file_;
  PartTag tag_;
  bool resumable_ = false;
  std::uint64_t size_ = 0;     ///< with what is in the buffer
  std::uint64_t written_ = 0;  ///< without
  std::uint64_t started_ = 0;  ///< up to where the kernel was told to write to the device
  std::uint64_t resumed_at_ = 0;
  std::string buffer_;
  std::unique_ptr<BackgroundHash> hash_ = std::make_unique<BackgroundHash>();
};

}  // namespace pawl::images::source
