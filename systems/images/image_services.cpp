// SPDX-License-Identifier: Apache-2.0
#include "images/image_services.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <system_error>
#include <utility>

#include "images/descriptor.hpp"
#include "images/directories.hpp"
#include "images/names.hpp"
#include "pawl/assert.hpp"

namespace pawl::images {
namespace {

constexpr std::string_view kFileScheme = "file://";
constexpr std::size_t kMostCountedRuns = 10'000;

}  // namespace

Result<void> check_volume_size(std::int64_t bytes) {
  constexpr std::int64_t kLeast = std::int64_t{16} << 20;
  constexpr std::int64_t kBlock = 4096;
  if (bytes < kLeast || bytes > static_cast<std::int64_t>(kMostVolumeBytes)) {
    return fail(Code::invalid_argument,
                fmt::format("a volume cannot have {} bytes; its size is from 16 MiB to 100 GiB", bytes));
  }
  if (bytes % kBlock == 0) return {};
  return fail(Code::invalid_argument,
              fmt::format("a volume cannot have {} bytes; its size is a multiple of {}", bytes, kBlock));
}

bool is_file(std::string_view key) { return key.starts_with(kFileScheme); }

ImageServices::ImageServices(ImagesOptions options) : options_(std::move(options)) {
  if (options_.backend.root.empty()) options_.backend.root = options_.directory + "/pool";
  options_.backend.log = options_.log;
  pools_[""].options = options_.backend;
  for (const auto& further : options_.pools) {
    auto& pool = pools_[further.name].options;
    pool.kind = further.kind;
    pool.root = further.root;
    pool.pool = further.name;
    pool.pool_bytes = options_.backend.pool_bytes;
    pool.busy_timeout = options_.backend.busy_timeout;
    pool.log = options_.log;
  }
}

ImageServices::ImageServices(ImagesOptions options, std::unique_ptr<Source> objects,
                             std::unique_ptr<Backend> backend)
    : ImageServices(std::move(options)) {
  objects_ = std::move(objects);
  pools_[""].backend = std::move(backend);
}

Result<void> ImageServices::open() {
  // Before anything is made of what lies there.
  PAWL_CHECK(make_safe_directory(options_.directory));
  if (!objects_) {
    PAWL_TRY(objects_, open_s3(options_.s3));
  }
  PAWL_TRY(files_, open_files(options_.file_directories));
  for (auto& [name, pool] : pools_) {
    if (pool.backend) continue;
    PAWL_TRY(pool.backend, open_backend(pool.options));
  }
  PAWL_CHECK(make_safe_directory(archives()));
  return make_safe_directory(options_.backend.root);
}

Result<ObjectName> ImageServices::object(std::string_view bucket, std::string_view key) const {
  if (is_file(key)) {
    if (!bucket.empty()) {
      return fail(Code::invalid_argument, fmt::format("\"{}\" is a file; a file has no bucket", key));
    }
    return ObjectName{"", std::string(key.substr(kFileScheme.size()))};
  }
  PAWL_CHECK(check_key(key));
  auto used = std::string(bucket.empty() ? std::string_view(options_.bucket) : bucket);
  if (used.empty()) {
    return fail(Code::invalid_argument,
                "there is no bucket: give one with the request, or set images.bucket in the configuration");
  }
  return ObjectName{std::move(used), std::string(key)};
}

namespace {

std::unexpected<Error> refuse_pool(PoolState state, const std::string& name) {
  const auto option = name.empty() ? std::string() : " --pool-name " + name;
  if (state == PoolState::detaching) return fail(Code::backend_unavailable, "the pool is being detached");
  if (state == PoolState::detached) {
    return fail(Code::backend_unavailable,
                fmt::format("the pool was detached; `pawl images setup-pool{}` attaches it again", option));
  }
  return fail(Code::backend_unavailable,
              fmt::format("the pool is not attached yet; the first image or `pawl images setup-pool{}` "
                          "attaches it",
                          option));
}

std::unexpected<Error> refuse_unconfigured(const std::string& name) {
  return fail(Code::backend_unavailable,
              fmt::format("the pool \"{}\" is not configured any more; add it to images.pools", name));
}

/// Others must not be able to change what lies in a further pool. The default one is looked at when the
/// server starts; one of these hurts only those who need it.
Result<void> make_further_directory(const std::string& root) {
  const auto made = make_safe_directory(root, "images.pools");
  if (made) return {};
  return fail(Code::backend_unavailable, made.error().message());
}

}  // namespace

Result<const ImageServices::Pool*> ImageServices::known_pool(const std::string& name) const {
  const auto found = pools_.find(name);
  if (found == pools_.end()) return refuse_unconfigured(name);
  return &found->second;
}

Result<ImageServices::Pool*> ImageServices::known_pool(const std::string& name) {
  const auto found = pools_.find(name);
  if (found == pools_.end()) return refuse_unconfigured(name);
  return &found->second;
}

std::vector<std::string> ImageServices::pools() const {
  std::vector<std::string> names;
  names.reserve(pools_.size());
  for (const auto& [name, pool] : pools_) names.push_back(name);
  return names;
}

std::string ImageServices::pool_title(const std::string& pool) const {
  return pool.empty() ? options_.backend.pool : pool;
}

const BackendOptions& ImageServices::pool_options(const std::string& pool) const {
  return pools_.at(pool).options;
}

Result<Backend*> ImageServices::pool(const std::string& name) {
  PAWL_TRY(auto* pool, known_pool(name));
  {
    const std::lock_guard lock(mutex_);
    if (pool->state == PoolState::attached) return pool->backend.get();
    if (pool->state == PoolState::detaching || pool->state == PoolState::detached)
      return refuse_pool(pool->state, name);
  }
  return attach_pool(name);
}

Result<Backend*> ImageServices::attached_pool(const std::string& name) const {
  PAWL_TRY(const auto* pool, known_pool(name));
  const std::lock_guard lock(mutex_);
  if (pool->state == PoolState::attached) return pool->backend.get();
  if (pool->state == PoolState::attach_failed && pool->attach_error) return fail(*pool->attach_error);
  return refuse_pool(pool->state, name);
}

PoolState ImageServices::pool_state(const std::string& name) const {
  const auto pool = known_pool(name);
  const std::lock_guard lock(mutex_);
  return pool ? (*pool)->state : PoolState::not_attached;
}

Result<Backend*> ImageServices::attach_pool(const std::string& name) {
  PAWL_TRY(auto* pool, known_pool(name));
  const std::lock_guard changing(pool->changing);
  auto attached = name.empty() ? Result<void>() : make_further_directory(pool->options.root);
  if (attached) attached = pool->backend->attach();
  const std::lock_guard lock(mutex_);
  if (attached) {
    pool->state = PoolState::attached;
    return pool->backend.get();
  }
  // A pool that is in use stays so.
  if (pool->state == PoolState::not_attached) pool->state = PoolState::attach_failed;
  pool->attach_error = attached.error();
  return fail(attached.error());
}

Result<void> ImageServices::detach_pool(const std::string& name,
                                        const std::function<Result<void>()>& check_unused) {
  PAWL_TRY(auto* pool, known_pool(name));
  const std::lock_guard changing(pool->changing);
  const auto set_state = [&](PoolState state) {
    const std::lock_guard lock(mutex_);
    return std::exchange(pool->state, state);
  };
  if (pool_state(name) == PoolState::detached) return {};
  const auto before = set_state(PoolState::detaching);
  auto detached = check_unused();
  if (detached) detached = pool->backend->detach();
  set_state(detached ? PoolState::detached : before);
  return detached;
}

Result<std::string> ImageServices::named_pool(std::string_view pool_name) const {
  if (pool_name.empty() || pool_name == options_.backend.pool) return std::string();
  if (const auto found = pools_.find(std::string(pool_name)); found != pools_.end()) return found->first;
  std::vector<std::string> titles;
  for (const auto& name : pools()) titles.push_back(pool_title(name));
  return fail(Code::invalid_argument,
              fmt::format("there is no pool \"{}\"; known: {}", pool_name, fmt::join(titles, ", ")));
}

Result<std::string> ImageServices::pool_for(const Query& query, std::string_view image_id,
                                            std::string_view pool_name) const {
  PAWL_TRY(auto wanted, named_pool(pool_name));
  PAWL_TRY(auto place, find_pool_of(query, image_id));
  if (!place) return wanted;
  if (pool_name.empty() || *place == wanted) return *std::move(place);
  return fail(
      Code::volume_exists,
      fmt::format("image \"{}\" is in the pool \"{}\"; `pawl images rm {}` removes it, then it can go "
                  "into another one",
                  image_id, pool_title(*place), image_id));
}

std::string ImageServices::archives() const { return options_.directory + "/archives"; }

std::string ImageServices::archive_of(std::string_view image_id) const {
  return fmt::format("{}/{}.tar", archives(), image_id);
}

ArchiveOptions ImageServices::archive_options(std::stop_token stop) const {
  return {.limits = options_.limits, .policy = options_.policy, .stop = std::move(stop)};
}

Result<std::uint32_t> ImageServices::allocate_volume_id(const Query& query) {
  const std::lock_guard lock(mutex_);
  PAWL_TRY(const auto highest, highest_volume(query));
  last_id_ = std::max(last_id_, highest);
  if (last_id_ < kLastVolumeId) return ++last_id_;
  // All numbers have been given out once: the lowest one that is free now.
  PAWL_TRY(const auto rows, list_volumes(query));
  PAWL_TRY(const auto unpacked, list_unpacked(query));
  PAWL_TRY(const auto snapshots, list_snapshots(query));
  std::set<std::uint32_t> taken;
  for (const auto& row : rows) taken.insert(row.volume.id);
  for (const auto& row : unpacked) taken.insert(row.volume.id);
  for (const auto& row : snapshots) taken.insert(row.volume.id);
  std::uint32_t free = 1;
  while (taken.contains(free)) ++free;
  if (free > kLastVolumeId) return fail(Code::pool_full, "every number that a volume can have is in use");
  return free;
}

void ImageServices::mark_overdue(const std::string& run) {
  const std::lock_guard lock(mutex_);
  overdue_.insert(run);
}

bool ImageServices::is_overdue(const std::string& run) const {
  const std::lock_guard lock(mutex_);
  return overdue_.contains(run);
}

void ImageServices::forget_overdue(const std::string& run) {
  const std::lock_guard lock(mutex_);
  overdue_.erase(run);
}

std::uint32_t ImageServices::count_error(const std::string& run, ErrorClass error_class) {
  const std::lock_guard lock(mutex_);
  // Runs that were cancelled between two attempts; their ULIDs are in the order of their begin.
  while (errors_.size() >= kMostCountedRuns && !errors_.contains(run)) errors_.erase(errors_.begin());
  return ++errors_[run][error_class];
}

void ImageServices::forget_errors(const std::string& run) {
  const std::lock_guard lock(mutex_);
  errors_.erase(run);
}

void ImageServices::report_violation(std::string_view image_id, std::string_view key,
                                     const Error& error) const {
  const auto named = error.field("violation");
  const std::string violation(named.empty() ? name(error.code()) : named);
  log().error("security violation", {{"image_id", image_id},
                                     {"s3_key", key},
                                     {"violation", violation},
                                     {"path", error.field("path")},
                                     {"error", error.message()}});
}

namespace {

constexpr std::size_t kMaxCachedChecksums = 1000;

/// What changes whenever the file does; empty where it is not there.
std::string stamp_of(const std::string& path) {
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return {};
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
}

/// Gives the file a time that no write can give it: those of the file system come in steps of milliseconds.
bool mark(const std::string& path) {
  std::array<timespec, 2> times{{{0, UTIME_OMIT}, {}}};
  return ::clock_gettime(CLOCK_REALTIME, &times[1]) == 0 &&
         ::utimensat(AT_FDCWD, path.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) == 0;
}

}  // namespace

Result<std::string> ImageServices::checksum_of(const std::string& path, const std::stop_token& stop) {
  const bool marked = mark(path);
  const auto before = stamp_of(path);
  PAWL_TRY(auto sha256, sha256_of_file(path, stop));
  const std::lock_guard lock(mutex_);
  if (!marked || stamp_of(path) != before) return sha256;
  if (checksums_.size() >= kMaxCachedChecksums) checksums_.clear();
  checksums_.insert_or_assign(path, CachedChecksum{before, sha256});
  return sha256;
}

bool ImageServices::has_checksum(const std::string& path, std::string_view sha256) const {
  const std::lock_guard lock(mutex_);
  const auto found = checksums_.find(path);
  return found != checksums_.end() && found->second.sha256 == sha256 && found->second.stamp == stamp_of(path);
}

Result<std::string> sha256_of_file(const std::string& path, const std::stop_token& stop) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) {
    return fail(errno == ENOENT ? Code::source_missing : Code::store_io,
                fmt::format("{} cannot be opened: {}", path, std::generic_category().message(errno)));
  }
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  std::vector<char> buffer(std::size_t{1} << 20);
  while (true) {
    if (stop.stop_requested()) return fail(Code::cancelled, fmt::format("stopped while {} was read", path));
    const auto got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(Code::store_io,
                  fmt::format("{} cannot be read: {}", path, std::generic_category().message(errno)));
    if (got == 0) break;
    EVP_DigestUpdate(hash.get(), buffer.data(), static_cast<std::size_t>(got));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_DigestFinal_ex(hash.get(), digest.data(), &size);
  return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + size, ""));
}

std::string make_marker() {
  std::array<unsigned char, 16> bytes{};
  PAWL_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "OpenSSL has random bytes");
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0fU) | 0x40U);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3fU) | 0x80U);
  auto text = fmt::format("{:02x}", fmt::join(bytes, ""));
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, "-");
  return text;
}

}  // namespace pawl::images
