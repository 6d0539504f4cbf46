// SPDX-License-Identifier: Apache-2.0
#include "images/archive/archive_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace pawl::images {
namespace {

// What comes in goes out again at once, so it should still be in the processor's cache.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;

ssize_t read_at(int file, char* to, std::size_t size, std::uint64_t position) {
  while (true) {
    const auto got = ::pread(file, to, size, static_cast<off_t>(position));
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

ArchiveFile::ArchiveFile(Descriptor file, std::uint64_t bytes) : file_(std::move(file)), bytes_(bytes) {
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

Result<const char*> ArchiveFile::block(std::uint64_t position) {
  if (position >= piece_begin_ && position + kBlock <= piece_begin_ + piece_.size()) {
    return piece_.data() + (position - piece_begin_);
  }
  if (position < window_begin_ || position + kBlock > window_begin_ + window_size_) {
    window_begin_ = position;
    const auto got = read_at(file_.get(), window_.data(), window_.size(), position);
    window_size_ = got < 0 ? 0 : static_cast<std::size_t>(got);
    if (window_size_ < kBlock) {
      return fail(Code::store_io, fmt::format("the archive cannot be read at byte {}: {}", position,
                                              got < 0 ? errno_text(errno) : "it became shorter meanwhile"));
    }
  }
  return window_.data() + (position - window_begin_);
}

ssize_t ArchiveFile::next_piece(const void** begin) {
  buffer_.resize(kPieceBytes);
  const auto got = read_at(file_.get(), buffer_.data(), buffer_.size(), next_);
  buffer_.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  piece_ = hash_ ? hash_->take(buffer_) : std::string_view(buffer_);
  piece_begin_ = next_;
  next_ += piece_.size();
  *begin = piece_.data();
  return got;
}

void ArchiveFile::hash() { hash_ = std::make_unique<BackgroundHash>(); }

Result<std::string> ArchiveFile::digest() {
  const void* unused = nullptr;
  while (true) {
    const auto got = next_piece(&unused);
    if (got < 0)
      return fail(Code::store_io, fmt::format("the archive cannot be read: {}", errno_text(errno)));
    if (got == 0) break;
  }
  return hash_->hex();
}

std::int64_t ArchiveFile::skip(std::int64_t bytes) {
  if (hash_) return 0;
  const auto left = bytes_ - std::min(bytes_, next_);
  const auto skipped = std::min(static_cast<std::uint64_t>(bytes), left);
  next_ += skipped;
  return static_cast<std::int64_t>(skipped);
}

}  // namespace pawl::images
