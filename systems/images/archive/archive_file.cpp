// SPDX-License-Identifier: Apache-2.0
#include "images/archive/archive_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "images/archive/findings.hpp"

namespace pawl::images {
namespace {

// What comes in goes out again at once, so it should still be in the processor's cache.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10;
// Headers are looked at before libarchive reads them: those of one entry have less than 16 MiB.
constexpr std::size_t kMostAhead = std::size_t{32} << 20;

ssize_t read_at(int file, char* to, std::size_t size, std::uint64_t position) {
  while (true) {
    const auto got = ::pread(file, to, size, static_cast<off_t>(position));
    if (got >= 0 || errno != EINTR) return got;
  }
}

}  // namespace

ArchiveFile::ArchiveFile(Descriptor file, std::uint64_t bytes)
    : file_(std::move(file)), file_bytes_(bytes), bytes_(bytes) {
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

Result<void> ArchiveFile::decompress(Compression compression, std::uint64_t most_bytes,
                                     std::stop_token stop) {
  stop_ = std::move(stop);
  most_bytes_ = most_bytes;
  bytes_.reset();
  PAWL_TRY(unpacker_, open_decompressor(compression, [this]() -> Result<std::string_view> {
             // A file may unpack to nothing for long.
             if (stop_.stop_requested()) return fail(Code::cancelled, "unpacking the archive was stopped");
             return read_file();
           }));
  return {};
}

Result<std::string_view> ArchiveFile::block(std::uint64_t position) {
  if (position >= piece_begin_ && position < piece_begin_ + piece_.size()) {
    return piece_.substr(position - piece_begin_, kBlock);
  }
  if (unpacker_) {
    while (position + kBlock > next_ + ahead_.size() && !bytes_) {
      if (ahead_.size() > kMostAhead) return fail(Code::internal, "a block was asked for too early");
      std::string piece;
      PAWL_CHECK(unpack_into(piece));
      ahead_ += piece;
    }
    const auto begin = std::min<std::uint64_t>(position - next_, ahead_.size());
    return std::string_view(ahead_).substr(begin, kBlock);
  }
  if (position >= file_bytes_) return std::string_view();
  const auto size = std::min<std::uint64_t>(kBlock, file_bytes_ - position);
  if (position < window_begin_ || position + size > window_begin_ + window_size_) {
    window_begin_ = position;
    const auto got = read_at(file_.get(), window_.data(), window_.size(), position);
    window_size_ = got < 0 ? 0 : static_cast<std::size_t>(got);
    if (window_size_ < size) {
      return fail(Code::store_io, fmt::format("the archive cannot be read at byte {}: {}", position,
                                              got < 0 ? errno_text(errno) : "it became shorter meanwhile"));
    }
  }
  return std::string_view(window_.data() + (position - window_begin_), size);
}

Result<std::string_view> ArchiveFile::read_file() {
  read_buffer_.resize(kPieceBytes);
  const auto got = read_at(file_.get(), read_buffer_.data(), read_buffer_.size(), read_);
  if (got < 0) return fail(Code::store_io, fmt::format("the archive cannot be read: {}", errno_text(errno)));
  read_buffer_.resize(static_cast<std::size_t>(got));
  read_ += read_buffer_.size();
  return hash_ ? hash_->take(read_buffer_) : std::string_view(read_buffer_);
}

/// A whole piece, so that blocks do not reach from one into the next; a shorter one only at the end.
Result<void> ArchiveFile::unpack_into(std::string& piece) {
  piece.resize(kPieceBytes);
  std::size_t size = 0;
  while (size < piece.size()) {
    PAWL_TRY(const auto got, unpacker_->read(piece.data() + size, piece.size() - size));
    if (got == 0) break;
    size += got;
  }
  const auto end = next_ + ahead_.size() + size;
  if (size < piece.size()) bytes_ = end;
  piece.resize(size);
  if (end <= most_bytes_) return {};
  return fail(
      Code::archive_hostile,
      fmt::format("the compressed archive unpacks to more than {} bytes (images.image_size)", most_bytes_),
      {{"violation", std::string(name(Violation::total_too_large))}, {"path", ""}});
}

Result<std::string_view> ArchiveFile::next_piece() {
  piece_ = {};
  if (!unpacker_) {
    PAWL_TRY(piece_, read_file());
  } else {
    unpacked_.clear();
    if (!ahead_.empty()) {
      unpacked_.swap(ahead_);
    } else if (!bytes_) {
      PAWL_CHECK(unpack_into(unpacked_));
    }
    piece_ = unpacked_;
  }
  piece_begin_ = next_;
  next_ += piece_.size();
  return piece_;
}

void ArchiveFile::hash() { hash_ = std::make_unique<BackgroundHash>(); }

Result<void> ArchiveFile::finish() {
  while (unpacker_ && !bytes_) PAWL_CHECK(next_piece());
  return {};
}

Result<std::string> ArchiveFile::digest() {
  while (true) {
    PAWL_TRY(const auto piece, read_file());
    if (piece.empty()) return hash_->hex();
  }
}

std::int64_t ArchiveFile::skip(std::int64_t bytes) {
  if (hash_ || unpacker_) return 0;
  const auto left = file_bytes_ - std::min(file_bytes_, next_);
  const auto skipped = std::min(static_cast<std::uint64_t>(bytes), left);
  next_ += skipped;
  read_ += skipped;
  return static_cast<std::int64_t>(skipped);
}

}  // namespace pawl::images
