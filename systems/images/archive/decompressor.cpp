// SPDX-License-Identifier: Apache-2.0
#include "images/archive/decompressor.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>

#include <cerrno>
#include <optional>

#include "images/archive/findings.hpp"
#include "pawl/error.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

// The highest preset of xz needs 65 MiB. Without a limit, a few bytes could ask for 4 GiB.
constexpr std::uint64_t kMostXzMemory = std::uint64_t{256} << 20;

std::unexpected<Error> compression_damaged(std::string_view format, std::string_view what, Damage damage) {
  return fail(Code::archive_corrupt, fmt::format("the archive is compressed with {}: {}", format, what),
              {{"violation", std::string(enum_name(damage))}, {"compression", std::string(format)}});
}

std::unexpected<Error> compression_breaks_off(std::string_view format) {
  return compression_damaged(format, "it breaks off inside its compressed data", Damage::truncated);
}

/// gzip: parts with a checksum each, and zeros behind the last one.
class GzipDecompressor final : public Decompressor {
 public:
  explicit GzipDecompressor(CompressedInput input) : input_(std::move(input)) {}
  ~GzipDecompressor() override { ::inflateEnd(&stream_); }

  bool open() {
    constexpr int kGzipOnly = 16;
    return ::inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK;
  }

  Result<std::size_t> read(char* to, std::size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) {
        PAWL_TRY(const auto more, input_());
        if (more.empty() && !between_) return compression_breaks_off("gzip");
        if (more.empty()) break;
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(more.data()));
        stream_.avail_in = static_cast<uInt>(more.size());
      }
      if (between_) {
        PAWL_TRY(const bool another, begin_part());
        if (!another) continue;
      }
      const auto status = ::inflate(&stream_, Z_NO_FLUSH);
      between_ = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        return compression_damaged("gzip", stream_.msg != nullptr ? stream_.msg : "its data is damaged",
                                   Damage::malformed);
      }
    }
    return size - stream_.avail_out;
  }

 private:
  /// False where what is there are zeros, which are passed over.
  Result<bool> begin_part() {
    if (*stream_.next_in == 0) {
      padded_ = true;
      ++stream_.next_in;
      --stream_.avail_in;
      return false;
    }
    if (padded_)
      return compression_damaged("gzip", "something follows the zeros behind its end", Damage::malformed);
    ::inflateReset(&stream_);
    between_ = false;
    return true;
  }

  CompressedInput input_;
  z_stream stream_{};
  bool between_ = false;  ///< behind a part
  bool padded_ = false;
};

class XzDecompressor final : public Decompressor {
 public:
  explicit XzDecompressor(CompressedInput input) : input_(std::move(input)) {}
  ~XzDecompressor() override { ::lzma_end(&stream_); }

  bool open() { return ::lzma_stream_decoder(&stream_, kMostXzMemory, LZMA_CONCATENATED) == LZMA_OK; }

  Result<std::size_t> read(char* to, std::size_t size) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(to);
    stream_.avail_out = size;
    while (stream_.avail_out > 0 && !ended_) {
      if (stream_.avail_in == 0 && !all_read_) {
        PAWL_TRY(const auto more, input_());
        all_read_ = more.empty();
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(more.data());
        stream_.avail_in = more.size();
      }
      const auto status = ::lzma_code(&stream_, all_read_ ? LZMA_FINISH : LZMA_RUN);
      ended_ = status == LZMA_STREAM_END;
      if (status == LZMA_BUF_ERROR && all_read_) return compression_breaks_off("xz");
      if (status == LZMA_MEMLIMIT_ERROR) {
        return compression_damaged(
            "xz",
            fmt::format("unpacking it takes more than {} MiB of memory; pack it with a smaller "
                        "dictionary",
                        kMostXzMemory >> 20U),
            Damage::malformed);
      }
      if (status != LZMA_OK && status != LZMA_STREAM_END && status != LZMA_BUF_ERROR) {
        return compression_damaged("xz", "its data is damaged", Damage::malformed);
      }
    }
    return size - stream_.avail_out;
  }

 private:
  CompressedInput input_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool all_read_ = false;
  bool ended_ = false;
};

/// zstd by way of libarchive, which limits its window to 128 MiB.
class ZstdDecompressor final : public Decompressor {
 public:
  explicit ZstdDecompressor(CompressedInput input) : input_(std::move(input)) {}

  bool open() {
    // A warning would mean that libarchive starts a program for it.
    return handle_ && archive_read_support_filter_zstd(handle_.get()) == ARCHIVE_OK &&
           archive_read_support_format_raw(handle_.get()) == ARCHIVE_OK &&
           archive_read_set_read_callback(handle_.get(), read_more) == ARCHIVE_OK &&
           archive_read_set_callback_data(handle_.get(), this) == ARCHIVE_OK;
  }

  Result<std::size_t> read(char* to, std::size_t size) override {
    if (!begun_) PAWL_CHECK(begin());
    const auto got = archive_read_data(handle_.get(), to, size);
    if (got < 0) return failure();
    return static_cast<std::size_t>(got);
  }

 private:
  struct Closer {
    void operator()(archive* handle) const noexcept { archive_read_free(handle); }
  };

  Result<void> begin() {
    begun_ = true;
    archive_entry* entry = nullptr;
    if (archive_read_open1(handle_.get()) != ARCHIVE_OK) return failure();
    constexpr int kFilters = 2;  // zstd and the bytes themselves
    if (archive_filter_count(handle_.get()) > kFilters) {
      return compression_damaged("zstd", "it is compressed more than once", Damage::malformed);
    }
    if (archive_read_next_header(handle_.get(), &entry) != ARCHIVE_OK) return failure();
    return {};
  }

  std::unexpected<Error> failure() {
    if (failure_) return fail(*failure_);
    const auto* text = archive_error_string(handle_.get());
    const std::string_view what = text != nullptr ? text : "it holds nothing";
    if (all_read_ && what.contains("runcated")) return compression_breaks_off("zstd");
    return compression_damaged("zstd", what, Damage::malformed);
  }

  static ssize_t read_more(archive* handle, void* self, const void** buffer) {
    auto& that = *static_cast<ZstdDecompressor*>(self);
    const auto more = that.input_();
    if (!more) {
      that.failure_ = more.error();
      archive_set_error(handle, EIO, "the archive cannot be read");
      return -1;
    }
    that.all_read_ = more->empty();
    *buffer = more->data();
    return static_cast<ssize_t>(more->size());
  }

  CompressedInput input_;
  std::unique_ptr<archive, Closer> handle_{archive_read_new()};
  std::optional<Error> failure_;
  bool begun_ = false;
  bool all_read_ = false;
};

template <class T>
Result<std::unique_ptr<Decompressor>> open_as(CompressedInput input, std::string_view library) {
  auto made = std::make_unique<T>(std::move(input));
  if (!made->open()) return fail(Code::internal, fmt::format("{} cannot be set up", library));
  return made;
}

}  // namespace

Result<std::unique_ptr<Decompressor>> open_decompressor(Compression compression, CompressedInput input) {
  switch (compression) {
    case Compression::gzip:
      return open_as<GzipDecompressor>(std::move(input), "zlib");
    case Compression::zstd:
      return open_as<ZstdDecompressor>(std::move(input), "zstd in libarchive");
    case Compression::xz:
      return open_as<XzDecompressor>(std::move(input), "liblzma");
  }
  return fail(Code::internal, "there is no such compression");
}

}  // namespace pawl::images
