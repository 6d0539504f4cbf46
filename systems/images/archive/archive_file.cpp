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

ArchiveFile::ArchiveFile(Descriptor file, std::uint64_t bytes)
    : file_(std::move(file)), bytes_(bytes), piece_(kPieceBytes) {
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

Result<const char*> ArchiveFile::block(std::uint64_t position) {
  if (position >= piece_begin_ && position + kBlock <= piece_begin_ + piece_size_) {
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
  const auto got = read_at(file_.get(), piece_.data(), piece_.size(), next_);
  piece_begin_ = next_;
  piece_size_ = got < 0 ? 0 : static_cast<std::size_t>(got);
  next_ += piece_size_;
  if (hash_) EVP_DigestUpdate(hash_.get(), piece_.data(), piece_size_);
  *begin = piece_.data();
  return got;
}

void ArchiveFile::hash() {
  hash_.reset(EVP_MD_CTX_new());
  EVP_DigestInit_ex(hash_.get(), EVP_sha256(), nullptr);
}

Result<std::string> ArchiveFile::digest() {
  const void* unused = nullptr;
  while (true) {
    const auto got = next_piece(&unused);
    if (got < 0)
      return fail(Code::store_io, fmt::format("the archive cannot be read: {}", errno_text(errno)));
    if (got == 0) break;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(hash_.get(), digest.data(), &size);
  return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + size, ""));
}

std::int64_t ArchiveFile::skip(std::int64_t bytes) {
  if (hash_) return 0;
  const auto left = bytes_ - std::min(bytes_, next_);
  const auto skipped = std::min(static_cast<std::uint64_t>(bytes), left);
  next_ += skipped;
  return static_cast<std::int64_t>(skipped);
}

}  // namespace pawl::images
