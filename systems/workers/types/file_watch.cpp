// SPDX-License-Identifier: Apache-2.0
#include "workers/types/file_watch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "pawl/assert.hpp"
#include "support/descriptor.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostSummed = std::uint64_t{1} << 20U;
/// A file that changed this recently may change again without a new modification time: file systems have
/// coarse clocks.
constexpr Duration kSettled = 2s;

struct FreeDigest {
  void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
};

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileTools::Stamp stamp_of(const struct stat& file) {
  return {.inode = file.st_ino,
          .bytes = static_cast<std::uint64_t>(file.st_size),
          .modified_ns = nanoseconds(file.st_mtim),
          .changed_ns = nanoseconds(file.st_ctim)};
}

Time time_of(const timespec& time) {
  return Time(std::chrono::floor<Duration>(std::chrono::nanoseconds(nanoseconds(time))));
}

/// The SHA-256 of a file, or of its first MiB if it grows meanwhile; then it is computed again next time.
Result<std::string> sum_of(int file, const std::stop_token& stop) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> digest(EVP_MD_CTX_new());
  PAWL_ASSERT(digest && EVP_DigestInit_ex(digest.get(), EVP_sha256(), nullptr) == 1, "memory for a sum");
  std::array<char, 65536> part{};
  for (std::uint64_t read = 0; read < kMostSummed;) {
    if (stop.stop_requested()) return fail(Code::cancelled, "stopped while a file was read");
    const auto got = ::read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Code::store_io, std::generic_category().message(errno));
    if (got == 0) break;
    read += static_cast<std::uint64_t>(got);
    EVP_DigestUpdate(digest.get(), part.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(digest.get(), bytes.data(), &size);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes.at(i));
  return text;
}

/// The cached SHA-256 if the file is unchanged; otherwise computes it.
Result<std::string> sum_once(FileTools& tools, int file, const struct stat& now_is,
                             const FileDesired& desired, const CollectContext& context) {
  const auto stamp = stamp_of(now_is);
  {
    const std::lock_guard lock(tools.mutex);
    if (tools.last && tools.last->path == *desired.path && tools.last->stamp == stamp)
      return tools.last->sha256;
  }
  PAWL_TRY(auto made, sum_of(file, context.stop));
  const std::lock_guard lock(tools.mutex);
  ++tools.sums_made;
  tools.last.reset();
  if (time_of(now_is.st_ctim) + kSettled < context.now)
    tools.last = {.path = *desired.path, .stamp = stamp, .sha256 = made};
  return made;
}

FileVerdict judge(const struct stat& file, const FileDesired& desired, Time now) {
  const auto bytes = static_cast<std::uint64_t>(file.st_size);
  if (desired.max_age && time_of(file.st_mtim) + *desired.max_age < now) return FileVerdict::too_old;
  if (desired.min_bytes && bytes < *desired.min_bytes) return FileVerdict::too_small;
  if (desired.max_bytes && bytes > *desired.max_bytes) return FileVerdict::too_large;
  return FileVerdict::fine;
}

FileObserved unreadable(int problem) {
  return {
      .verdict = FileVerdict::unreadable, .exists = true, .error = std::generic_category().message(problem)};
}

std::string_view sentence(FileVerdict verdict) {
  switch (verdict) {
    case FileVerdict::fine:
      return "is as it should be";
    case FileVerdict::missing:
      return "is missing";
    case FileVerdict::too_old:
      return "is older than max_age";
    case FileVerdict::too_small:
      return "is smaller than min_bytes";
    case FileVerdict::too_large:
      return "is larger than max_bytes";
    case FileVerdict::not_a_file:
      return "is not a regular file";
    case FileVerdict::unreadable:
      return "cannot be read: ";
  }
  std::unreachable();
}

std::string words(const FileWatch::Snapshot& now) {
  return fmt::format("{} {}{}", *now.desired.path, sentence(now.observed.verdict), now.observed.error);
}

bool is_fine(const FileWatch::Snapshot& now) { return now.observed.verdict == FileVerdict::fine; }

Go<FileWatch::Stopped> rest() { return {"nothing is held open"}; }

}  // namespace

Next<Go<FileWatch::Checking>> FileWatch::next(Stopped, const Snapshot&) {
  return Go<Checking>{"it should run"};
}

Next<Go<FileWatch::Healthy>, Go<FileWatch::Degraded>> FileWatch::next(Checking, const Snapshot& now) {
  if (is_fine(now)) return Go<Healthy>{words(now)};
  return Go<Degraded>{words(now)};
}

Next<Go<FileWatch::Degraded>, Stay> FileWatch::next(Healthy, const Snapshot& now) {
  if (!is_fine(now)) return Go<Degraded>{words(now)};
  return Stay{words(now)};
}

Next<Go<FileWatch::Healthy>, Stay> FileWatch::next(Degraded, const Snapshot& now) {
  if (is_fine(now)) return Go<Healthy>{words(now)};
  return Stay{words(now)};
}

Next<Go<FileWatch::Stopped>> FileWatch::stop(Checking, const Snapshot&) { return rest(); }
Next<Go<FileWatch::Stopped>> FileWatch::stop(Healthy, const Snapshot&) { return rest(); }
Next<Go<FileWatch::Stopped>> FileWatch::stop(Degraded, const Snapshot&) { return rest(); }

Result<FileDesired> FileWatch::derive(FileDesired read) {
  if (!read.path->starts_with('/') || read.path->find('\0') != std::string::npos) {
    return fail(Code::spec_invalid, fmt::format("path is '{}'; write an absolute path", *read.path),
                {{"field", "path"}});
  }
  if (read.max_age && *read.max_age <= Duration::zero()) {
    return fail(Code::spec_invalid, "max_age is not above zero: every file is older", {{"field", "max_age"}});
  }
  if (read.min_bytes && read.max_bytes && *read.min_bytes > *read.max_bytes) {
    return fail(Code::spec_invalid,
                fmt::format("min_bytes is {} and max_bytes is {}: no file has such a size", *read.min_bytes,
                            *read.max_bytes),
                {{"field", "min_bytes"}});
  }
  return read;
}

Result<FileObserved> FileWatch::collect(FileTools& tools, const FileDesired& desired,
                                        const CollectContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before the file was looked at");
  // Open first, then stat the descriptor, so that it is the same file. O_NONBLOCK: a pipe would block.
  const systems::Descriptor file(open(desired.path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && (errno == ENOENT || errno == ENOTDIR))
    return FileObserved{.verdict = desired.must_exist ? FileVerdict::missing : FileVerdict::fine};
  if (!file) return unreadable(errno);
  struct stat now_is{};
  if (fstat(file.get(), &now_is) != 0) return unreadable(errno);
  if (!S_ISREG(now_is.st_mode)) return FileObserved{.verdict = FileVerdict::not_a_file, .exists = true};

  FileObserved seen{.verdict = judge(now_is, desired, context.now), .exists = true};
  if (!desired.observe_content) return seen;
  seen.bytes = static_cast<std::uint64_t>(now_is.st_size);
  seen.modified = time_of(now_is.st_mtim);
  if (*seen.bytes > kMostSummed) return seen;
  auto sum = sum_once(tools, file.get(), now_is, desired, context);
  if (!sum && context.stop.stop_requested()) return fail(std::move(sum).error());
  if (!sum) {
    seen.verdict = FileVerdict::unreadable;
    seen.error = sum.error().message();
  } else {
    seen.sha256 = *std::move(sum);
  }
  return seen;
}

void add_file_watch(WorkerTypes& types) { types.add<FileWatch>(); }

}  // namespace pawl::workers
