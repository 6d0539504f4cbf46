// SPDX-License-Identifier: Apache-2.0
// Archives, also compressed: any bytes are scanned and unpacked under the same verdict, and nothing is
// written outside the root.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>

#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"
#include "pawl/assert.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t capacity);

namespace {

namespace fs = std::filesystem;
using namespace pawl::images;

constexpr std::size_t kBlock = 512;

/// A directory in memory with a root and something beside it, made once.
struct Place {
  Place() {
    std::string pattern = (fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path().string());
    pattern += "/pawl-archive-fuzz-XXXXXX";
    PAWL_ASSERT(::mkdtemp(pattern.data()) != nullptr, "there is a temporary directory");
    top = pattern;
    fs::create_directory(top / "canary");
  }
  ~Place() { fs::remove_all(top); }
  fs::path top;
};

/// Directories that an archive has closed must be opened to be removed. Links are removed, never followed:
/// one may lead to itself, or out of here.
void remove_tree(const fs::path& root) {
  std::error_code failure;
  ::chmod(root.c_str(), 0700);
  for (fs::recursive_directory_iterator at(root, failure), end; !failure && at != end;
       at.increment(failure)) {
    if (at->symlink_status(failure).type() == fs::file_type::directory) ::chmod(at->path().c_str(), 0700);
  }
  PAWL_ASSERT(!failure, "what was unpacked can be looked through", failure.message());
  fs::remove_all(root, failure);
  PAWL_ASSERT(!failure, "what was unpacked can be removed", failure.message());
}

ArchiveOptions options_of(std::uint8_t bits) {
  ArchiveOptions options{
      .limits = {.entries = 200, .file_bytes = 1 << 20, .total_bytes = 4 << 20, .archive_bytes = 16 << 20}};
  if ((bits & 1U) != 0) options.policy.set_id = SetIdPolicy::allow;
  if ((bits & 2U) != 0) options.policy.absolute_links = AbsoluteLinkPolicy::in_root;
  if ((bits & 4U) != 0) options.policy.case_collisions = CasePolicy::allow;
  if ((bits & 8U) != 0) options.policy.devices = DevicePolicy::below_dev;
  return options;
}

/// What gzip makes of these bytes, fast rather than small.
std::string gzipped(const std::uint8_t* data, std::size_t size) {
  z_stream stream{};
  constexpr int kGzip = 16;
  PAWL_ASSERT(::deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK,
              "zlib has memory");
  std::string packed(::deflateBound(&stream, size), '\0');
  stream.next_in = const_cast<Bytef*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  PAWL_ASSERT(::deflate(&stream, Z_FINISH) == Z_STREAM_END, "it fits");
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  return packed;
}

Descriptor in_memory(const void* bytes, std::size_t size) {
  Descriptor file(::memfd_create("archive", MFD_CLOEXEC));
  PAWL_ASSERT(::write(file.get(), bytes, size) == static_cast<ssize_t>(size), "memory can be written");
  return file;
}

std::string path_of(const Descriptor& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

/// A compressed archive is what it unpacks to.
void check_compressed(const std::uint8_t* data, std::size_t size, const ArchiveOptions& options,
                      const pawl::Result<ArchiveStats>& plain) {
  const auto packed = gzipped(data, size);
  const auto file = in_memory(packed.data(), packed.size());
  const auto scanned = scan(path_of(file), options);
  PAWL_ASSERT(scanned.has_value() == plain.has_value(), "compression changes no verdict",
              (scanned ? plain : scanned).error().to_string());
  if (scanned) PAWL_ASSERT(scanned->bytes == plain->bytes, "both hold the same");
  if (!scanned)
    PAWL_ASSERT(scanned.error().code() == plain.error().code(), "both are refused alike",
                scanned.error().to_string(), plain.error().to_string());
}

/// Whether the place itself, rather than the archive, is in the way.
bool is_of_the_place(pawl::Code code) {
  return code == pawl::Code::volume_failed || code == pawl::Code::disk_full;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Place place;
  const auto archive = in_memory(data, size);
  const auto path = path_of(archive);
  const auto options = options_of(size == 0 ? 0 : data[size - 1]);

  const auto scanned = scan(path, options);
  // What is compressed already would be so twice, which is refused.
  const bool plain = size < 2 || (data[0] != 0x1f && data[0] != 0x28 && data[0] != 0xfd);
  if (plain && size > 0) check_compressed(data, size, options, scanned);
  const auto root = place.top / "root";
  fs::create_directory(root);
  const Descriptor opened(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto unpacked = extract(path, opened.get(), options);
  if (unpacked) {
    PAWL_ASSERT(scanned.has_value(), "what is unpacked passes the scan", scanned.error().to_string());
    PAWL_ASSERT(scanned->bytes == unpacked->bytes, "both count the same");
    (void)verify_layout(opened.get(), {.direct = true});
  } else if (!scanned) {
    PAWL_ASSERT(unpacked.error() == scanned.error() || is_of_the_place(unpacked.error().code()),
                "both refuse for the same reason", scanned.error().to_string(), unpacked.error().to_string());
  } else {
    PAWL_ASSERT(is_of_the_place(unpacked.error().code()),
                "what passes the scan is refused for the place only", unpacked.error().to_string());
  }
  PAWL_ASSERT(fs::is_empty(place.top / "canary"), "nothing is written beside the root");
  remove_tree(root);
  const auto beside = std::distance(fs::directory_iterator(place.top), fs::directory_iterator());
  PAWL_ASSERT(beside == 1, "nothing is written above the root", beside);
  return 0;
}

/// Makes the checksums right again, because next to no mutation would come past them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t capacity,
                                               unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, capacity);
  if (seed % 8 == 0) return size;
  for (std::size_t at = 0; at + kBlock <= size; at += kBlock) {
    auto* block = data + at;
    if (std::all_of(block, block + kBlock, [](std::uint8_t byte) { return byte == 0; })) continue;
    std::memset(block + 148, ' ', 8);
    unsigned int sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) sum += block[i];
    for (int digit = 5; digit >= 0; --digit, sum /= 8)
      block[148 + digit] = static_cast<std::uint8_t>('0' + sum % 8);
    block[154] = 0;
    const auto octal = std::string(reinterpret_cast<const char*>(block + 124), 11);
    const auto content = std::strtoull(octal.c_str(), nullptr, 8);
    if (content < size) at += (content + kBlock - 1) / kBlock * kBlock;
  }
  return size;
}
