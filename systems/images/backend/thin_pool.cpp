// SPDX-License-Identifier: Apache-2.0
#include "images/backend/thin_pool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "images/backend/loop.hpp"
#include "images/backend/os.hpp"
#include "images/backend/pool_file.hpp"
#include "pawl/codec.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::size_t kSuperblock = 4096;
constexpr std::size_t kDataHead = 65536;

/// <root>/pool.json. Once `made`, the pool is never formatted again, whatever its metadata looks like.
struct PoolRecord {
  std::string pool;
  bool made = false;
};

Result<bool> begins_with_zeros(const std::string& device, std::size_t size) {
  PAWL_TRY(const auto file, open_file(device, O_RDONLY));
  std::string bytes(size, '\1');
  const auto count = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  if (count < 0) return fail(system_error("read", device));
  if (static_cast<std::size_t>(count) < size) {
    return fail(Code::backend_unavailable, fmt::format("{} is too small for a pool", device));
  }
  return std::ranges::all_of(bytes, [](char c) { return c == 0; });
}

Result<std::uint64_t> device_bytes(const std::string& device) {
  PAWL_TRY(const auto file, open_file(device, O_RDONLY));
  std::uint64_t bytes = 0;
  if (::ioctl(file.get(), BLKGETSIZE64, &bytes) != 0) return fail(system_error("measure", device));
  return bytes;
}

Result<std::string> device_number(const std::string& device) {
  struct stat status{};
  if (::stat(device.c_str(), &status) != 0) return fail(system_error("look at", device));
  return fmt::format("{}:{}", major(status.st_rdev), minor(status.st_rdev));
}

Result<void> grow_file(const std::string& path, std::uint64_t bytes) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return fail(system_error("look at", path));
  if (static_cast<std::uint64_t>(status.st_size) < bytes &&
      ::truncate(path.c_str(), static_cast<off_t>(bytes)) != 0) {
    return fail(system_error("extend", path));
  }
  return resize_loop(path);
}

}  // namespace

std::uint64_t thin_metadata_bytes(std::uint64_t data_bytes) {
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 20U;
  return std::max(kLeast, data_bytes / 500 / kSuperblock * kSuperblock);
}

ThinPool::ThinPool(const BackendOptions& options, Step step)
    : root_(options.root),
      name_(options.pool),
      given_data_(options.data_device),
      given_metadata_(options.metadata_device),
      bytes_(options.pool_bytes / kThinBlockBytes * kThinBlockBytes),
      busy_timeout_(options.busy_timeout),
      step_(std::move(step)),
      data_(options.data_device),
      metadata_(options.metadata_device) {}

/// Files for the two devices where none are given, attached.
Result<void> ThinPool::open_files() {
  for (const auto& [file, bytes] :
       {std::pair(data_file(), bytes_), std::pair(metadata_file(), thin_metadata_bytes(bytes_))}) {
    if (!exists(file)) {
      PAWL_CHECK(make_sparse(file, bytes));
      PAWL_CHECK(sync_directory(root_));
      step_("make a file of the pool");
    }
  }
  PAWL_TRY(data_, attach_loop(data_file()));
  step_("attach the data");
  PAWL_TRY(metadata_, attach_loop(metadata_file()));
  step_("attach the metadata");
  return {};
}

Result<void> ThinPool::check_metadata() const {
  auto checked = run_program({"thin_check", "-q", metadata_});
  if (checked || checked.error().code() == Code::backend_unavailable) {
    if (!checked) return fail(std::move(checked).error());
    return {};
  }
  return fail(
      Code::backend_unavailable,
      fmt::format("the metadata of the pool does not pass thin_check ({}); look at it with thin_dump, "
                  "or copy it with thin_repair",
                  checked.error().message()));
}

/// Decides whether the devices hold this pool, or may become it. True: the pool was made before.
Result<bool> ThinPool::prepare() {
  const auto path = root_ + "/pool.json";
  PAWL_TRY(const auto text, read_file(path));
  PoolRecord record;
  if (text) {
    PAWL_TRY(record, decode<PoolRecord>(*text));
    if (record.pool != name_) {
      return fail(Code::backend_unavailable,
                  fmt::format("{} belongs to the pool \"{}\", not to \"{}\"", root_, record.pool, name_));
    }
  }
  if (owns_files() && record.made && (!exists(data_file()) || !exists(metadata_file()))) {
    return fail(
        Code::backend_unavailable,
        fmt::format("a file of the pool is gone from {}; bring it back, or begin with another root", root_));
  }
  if (owns_files()) PAWL_CHECK(open_files());
  PAWL_TRY(const bool blank, begins_with_zeros(metadata_, kSuperblock));
  if (!blank && !text) {
    return fail(Code::backend_unavailable,
                fmt::format("{} holds something, and {} does not say that it is this pool: give it an empty "
                            "device (wipefs), or the root that the pool was made with",
                            metadata_, path));
  }
  if (!blank) return true;
  if (record.made) {
    return fail(
        Code::backend_unavailable,
        fmt::format("the metadata on {} is empty, but the pool was made before; it is not made again over "
                    "data that may be there",
                    metadata_));
  }
  if (!text) {
    PAWL_TRY(const bool unused, begins_with_zeros(data_, kDataHead));
    if (!unused) {
      return fail(
          Code::backend_unavailable,
          fmt::format("{} holds something already; a new pool takes an empty device (wipefs)", data_));
    }
    record.pool = name_;
    PAWL_TRY(const auto fresh, encode(record));
    PAWL_CHECK(write_file(path, fresh));
    step_("record the pool");
  }
  return false;
}

Result<DeviceMapper::Target> ThinPool::table() const {
  PAWL_TRY(const auto bytes, device_bytes(data_));
  PAWL_TRY(const auto metadata, device_number(metadata_));
  PAWL_TRY(const auto data, device_number(data_));
  const auto blocks = bytes / kThinBlockBytes;
  // The low water mark counts blocks of the pool. A full pool answers with an error, it does not make its
  // writers hang; new blocks are zeroed, because a volume must not show what another one has deleted.
  return DeviceMapper::Target{.sectors = blocks * kThinBlockBytes / kSectorBytes,
                              .type = "thin-pool",
                              .parameters = fmt::format("{} {} {} {} 1 error_if_no_space", metadata, data,
                                                        kThinBlockBytes / kSectorBytes, blocks / 20)};
}

Result<void> ThinPool::attach(const DeviceMapper& mapper) {
  PAWL_TRY(const auto there, mapper.info(name_));
  if (there && there->uuid != uuid()) {
    return fail(Code::backend_unavailable,
                fmt::format("the name {} is taken by another device (UUID {})", name_, there->uuid));
  }
  if (there && there->live) {
    if (owns_files()) PAWL_CHECK(open_files());
    // Only an interrupted extension leaves it suspended.
    if (there->suspended) PAWL_CHECK(mapper.resume(name_));
    return {};
  }
  // An interrupted call has left it without a live table; it may hold the metadata open already.
  if (there) PAWL_CHECK(mapper.remove(name_, busy_timeout_));
  PAWL_TRY(const bool made, prepare());
  if (made) PAWL_CHECK(check_metadata());
  PAWL_CHECK(mapper.create(name_, uuid()));
  step_("create the pool");
  PAWL_TRY(const auto target, table());
  PAWL_CHECK(mapper.load(name_, target));
  step_("load the pool");
  PAWL_CHECK(mapper.resume(name_));
  step_("resume the pool");
  PAWL_TRY(const auto text, encode(PoolRecord{.pool = name_, .made = true}));
  PAWL_CHECK(write_file(root_ + "/pool.json", text));
  step_("record that the pool is made");
  return {};
}

Result<void> ThinPool::detach(const DeviceMapper& mapper) {
  PAWL_TRY(const auto there, mapper.info(name_));
  if (there && there->uuid == uuid()) PAWL_CHECK(mapper.remove(name_, busy_timeout_));
  step_("remove the pool");
  if (!owns_files()) return {};
  PAWL_CHECK(detach_loop(data_file(), busy_timeout_));
  step_("detach the data");
  return detach_loop(metadata_file(), busy_timeout_);
}

Result<void> ThinPool::extend(const DeviceMapper& mapper, std::uint64_t bytes) {
  PAWL_TRY(const auto now, status(mapper));
  if (now.data_blocks * kThinBlockBytes > bytes) {
    return fail(Code::invalid_argument, fmt::format("the pool has {} bytes and cannot shrink to {}",
                                                    now.data_blocks * kThinBlockBytes, bytes));
  }
  if (owns_files()) {
    PAWL_CHECK(grow_file(data_file(), bytes / kThinBlockBytes * kThinBlockBytes));
    PAWL_CHECK(grow_file(metadata_file(), thin_metadata_bytes(bytes)));
    step_("grow the files");
  }
  PAWL_TRY(const auto available, device_bytes(data_));
  if (available < bytes / kThinBlockBytes * kThinBlockBytes) {
    return fail(Code::invalid_argument,
                fmt::format("{} has {} bytes; make it larger before the pool", data_, available));
  }
  PAWL_TRY(const auto target, table());
  PAWL_CHECK(mapper.load(name_, target));
  step_("load the larger pool");
  PAWL_CHECK(mapper.suspend(name_));
  step_("suspend the pool");
  PAWL_CHECK(mapper.resume(name_));
  step_("resume the larger pool");
  return {};
}

Result<DeviceMapper::Target> ThinPool::thin(const DeviceMapper& mapper, std::uint32_t id, std::uint64_t bytes,
                                            bool read_only) const {
  PAWL_TRY(const auto pool, mapper.info(name_));
  if (!pool)
    return fail(Code::backend_unavailable, fmt::format("there is no pool {}; attach makes it", name_));
  return DeviceMapper::Target{
      .sectors = bytes / kSectorBytes,
      .type = "thin",
      .parameters = fmt::format("{}:{} {}", major(pool->device), minor(pool->device), id),
      .read_only = read_only};
}

}  // namespace pawl::images::pools
