// SPDX-License-Identifier: Apache-2.0
#include "workers/types/restart_record.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "pawl/codec.hpp"
#include "workers/process/names.hpp"
#include "workers/process/os.hpp"

namespace pawl::workers {

RestartRecordFile::RestartRecordFile(std::string directory, std::string_view id)
    : directory_(std::move(directory)) {
  // An id without a valid name has no process: the manager refuses it.
  path_ = directory_ + "/" + directory_name(id).value_or("+") + ".json";
}

Result<RestartRecord> RestartRecordFile::read() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return RestartRecord{};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto record = decode<RestartRecord>(text);
  if (!record) return RestartRecord{};  // damaged: continue with what the manager knows
  return *std::move(record);
}

Result<void> RestartRecordFile::write(const RestartRecord& record) const {
  PAWL_TRY(const auto text, encode(record));
  std::error_code failure;
  if (std::filesystem::create_directories(directory_, failure)) {
    const auto above = std::filesystem::path(directory_).parent_path().string();
    const Descriptor parent(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) return fail(process_error("make durable", directory_));
  }
  const Descriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail(process_error("open the directory", directory_));
  const auto part = path_ + ".new";
  const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(process_error("write", part));
  errno = ENOSPC;  // for a partial write
  // Durable before it replaces the previous file: after a power loss an empty record would
  // restart processes that have ended.
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0) {
    return fail(process_error("write", part));
  }
  if (::rename(part.c_str(), path_.c_str()) != 0 || ::fsync(directory.get()) != 0)
    return fail(process_error("write", path_));
  return {};
}

Result<std::uint64_t> RestartRecordFile::record_start(std::uint64_t order, std::uint64_t before,
                                                      std::string specification) const {
  PAWL_TRY(auto record, read());
  // Repeated: it may have been started already, with the recorded specification.
  if (record.order == order) return record.started;
  record.started = std::max({order, before + 1, record.started + 1, record.ended + 1});
  record.order = order;
  record.specification = std::move(specification);
  PAWL_CHECK(write(record));
  return record.started;
}

Result<void> RestartRecordFile::record_exit(std::uint64_t generation, bool brief) const {
  PAWL_TRY(auto record, read());
  if (record.ended >= generation) return {};
  record.ended = generation;
  ++record.restarts;
  record.brief = brief ? record.brief + 1 : 0;
  return write(record);
}

Result<void> RestartRecordFile::record_stop(std::uint64_t generation) const {
  PAWL_TRY(auto record, read());
  if (record.ended >= generation && record.brief == 0) return {};
  record.ended = std::max(record.ended, generation);
  record.brief = 0;
  return write(record);
}

void RestartRecordFile::remove() const { std::remove(path_.c_str()); }

}  // namespace pawl::workers
