// SPDX-License-Identifier: Apache-2.0
#include "images/source/part.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"

namespace pawl::images::source {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;
constexpr std::uint64_t kWriteBehind = std::uint64_t{8} << 20;
constexpr std::string_view kTagForm = "pawl-part 1";
constexpr std::size_t kLongestTag = 8192;

std::string tag_path(const std::string& path) { return path + ".part.tag"; }
std::string new_tag_path(const std::string& path) { return path + ".part.tag.new"; }

/// Another one after each start of the machine.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

/// Without line ends, which would end the tag's line; other names stay as they are.
std::string one_line(std::string_view name) {
  std::string line;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || c == '%' || c == 0x7f)
      line += fmt::format("%{:02X}", byte);
    else
      line += c;
  }
  return line;
}

struct StoredTag {
  PartTag tag;
  std::string boot;
  std::uint64_t durable = 0;
};

std::string to_text(const StoredTag& stored) {
  return fmt::format("{}\nobject {}\netag {}\nbytes {}\nboot {}\ndurable {}\n", kTagForm, stored.tag.object,
                     stored.tag.etag, stored.tag.bytes, stored.boot, stored.durable);
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Nothing where the file is absent or was not written to its end: then nothing is known of the bytes.
std::optional<StoredTag> read_tag(const std::string& path) {
  std::ifstream file(tag_path(path), std::ios::binary);
  std::string text(kLongestTag, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  StoredTag stored;
  std::string_view rest = text;
  const auto next = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos || !rest.starts_with(name)) return std::nullopt;
    const auto value = rest.substr(name.size(), end - name.size());
    rest.remove_prefix(end + 1);
    return value;
  };
  if (!next(kTagForm)) return std::nullopt;
  const auto object = next("object ");
  const auto etag = next("etag ");
  const auto bytes = whole_number(next("bytes ").value_or(""));
  const auto boot = next("boot ");
  const auto durable = whole_number(next("durable ").value_or(""));
  if (!object || !etag || !bytes || !boot || !durable) return std::nullopt;
  return StoredTag{{std::string(*object), std::string(*etag), *bytes}, std::string(*boot), *durable};
}

/// Names become durable with their directory.
Result<void> sync_directory_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const Descriptor handle(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle || fsync(handle.get()) != 0)
    return fail(file_error("making its entry durable in the directory", path, errno));
  return {};
}

Result<void> write_all(int file, std::string_view bytes, std::uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const auto written = pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(file_error("writing", path, errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

}  // namespace

Error file_error(std::string_view doing, const std::string& path, int code) {
  const bool full = code == ENOSPC || code == EDQUOT;
  return {full ? Code::disk_full : Code::store_io,
          fmt::format("{} {}: {}", doing, shown(path), std::generic_category().message(code))};
}

Result<Part> Part::open(std::string path, std::string_view object) {
  Part part(std::move(path), one_line(object));
  PAWL_CHECK(part.lock());
  PAWL_CHECK(part.load());
  part.buffer_.reserve(kBuffer);
  return part;
}

/// The lock is on the file, not on its name: its former holder may have renamed or removed it meanwhile.
Result<void> Part::lock() {
  while (true) {
    file_ = Descriptor(::open(part_path().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file_) return fail(file_error("opening", part_path(), errno));
    if (flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return fail(file_error("locking", part_path(), errno));
      return fail(Code::source_failed, fmt::format("another fetch is writing {}", shown(part_path())));
    }
    struct stat mine{};
    struct stat named{};
    if (fstat(file_.get(), &mine) != 0) return fail(file_error("reading", part_path(), errno));
    if (lstat(part_path().c_str(), &named) == 0 && named.st_ino == mine.st_ino && named.st_dev == mine.st_dev)
      return {};
  }
}

Result<void> Part::load() {
  struct stat status{};
  if (fstat(file_.get(), &status) != 0) return fail(file_error("reading", part_path(), errno));
  const auto present = static_cast<std::uint64_t>(status.st_size);
  const auto stored = read_tag(path_);
  if (stored && stored->tag.object == tag_.object) {
    const bool same_boot = !stored->boot.empty() && stored->boot == boot_id();
    const auto trusted = same_boot ? present : std::min(present, stored->durable);
    if (trusted > 0 && trusted <= stored->tag.bytes) {
      tag_ = stored->tag;
      size_ = written_ = started_ = resumed_at_ = trusted;
      resumable_ = true;
    }
  }
  if (ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
    return fail(file_error("shortening", part_path(), errno));
  return {};
}

Result<void> Part::hash_kept(const std::stop_token& stop) {
  std::string bytes;
  for (std::uint64_t offset = 0; offset < size_;) {
    bytes.resize(kBuffer);
    if (stop.stop_requested()) return fail(Code::cancelled, "stopped while reading what was kept");
    const auto wanted = std::min<std::uint64_t>(bytes.size(), size_ - offset);
    const auto got = pread(file_.get(), bytes.data(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return fail(file_error("reading", part_path(), got < 0 ? errno : EIO));
    bytes.resize(static_cast<std::size_t>(got));
    hash_->take(bytes);
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> Part::begin_anew(std::string etag, std::optional<std::uint64_t> bytes) {
  if (ftruncate(file_.get(), 0) != 0) return fail(file_error("emptying", part_path(), errno));
  size_ = written_ = started_ = resumed_at_ = 0;
  buffer_.clear();
  hash_->restart();
  tag_.etag = std::move(etag);
  tag_.bytes = bytes.value_or(0);
  resumable_ = bytes.has_value() && !tag_.etag.empty();
  unlink(tag_path(path_).c_str());
  struct statvfs space{};
  // Said before a byte has come rather than after all but the last; what is free now may be gone later.
  if (bytes && fstatvfs(file_.get(), &space) == 0 &&
      *bytes / space.f_frsize > static_cast<std::uint64_t>(space.f_bfree)) {
    return fail(Code::disk_full, fmt::format("{} bytes for {}: only {} are free", *bytes, shown(path_),
                                             std::uint64_t{space.f_bfree} * space.f_frsize));
  }
  if (resumable_) return write_tag(0);
  return {};
}

Result<void> Part::append(std::string_view bytes) {
  size_ += bytes.size();
  while (!bytes.empty()) {
    const auto taken = bytes.substr(0, kBuffer - buffer_.size());
    buffer_.append(taken);
    bytes.remove_prefix(taken.size());
    if (buffer_.size() == kBuffer) PAWL_CHECK(flush());
  }
  return {};
}

Result<void> Part::flush() {
  const auto bytes = hash_->take(buffer_);
  buffer_.clear();
  buffer_.reserve(kBuffer);
  if (auto written = write_all(file_.get(), bytes, written_, part_path()); !written) {
    resumable_ = false;  // how much of it is there is unknown
    return written;
  }
  written_ += bytes.size();
  // The device works while more comes in; otherwise all the writing would be left to the sync at the end.
  if (written_ - started_ >= kWriteBehind) {
    sync_file_range(file_.get(), static_cast<off_t>(started_), static_cast<off_t>(written_ - started_),
                    SYNC_FILE_RANGE_WRITE);
    started_ = written_;
  }
  return {};
}

Result<void> Part::write_tag(std::uint64_t durable) const {
  const auto text = to_text({tag_, boot_id(), durable});
  const auto path = new_tag_path(path_);
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(file_error("opening", path, errno));
  PAWL_CHECK(write_all(file.get(), text, 0, path));
  // Only the tag that promises durable bytes has to be durable itself.
  if (durable > 0 && fsync(file.get()) != 0) return fail(file_error("making durable", path, errno));
  if (rename(path.c_str(), tag_path(path_).c_str()) != 0) return fail(file_error("renaming", path, errno));
  return {};
}

Result<Fetched> Part::finish() {
  PAWL_CHECK(flush());
  if (fsync(file_.get()) != 0) return fail(file_error("making durable", part_path(), errno));
  if (rename(part_path().c_str(), path_.c_str()) != 0)
    return fail(file_error("renaming", part_path(), errno));
  unlink(tag_path(path_).c_str());
  PAWL_CHECK(sync_directory_of(path_));
  return Fetched{.bytes = size_, .sha256 = hash_->hex(), .etag = tag_.etag, .resumed_at = resumed_at_};
}

Result<void> Part::keep() {
  PAWL_CHECK(flush());
  if (fdatasync(file_.get()) != 0) return fail(file_error("making durable", part_path(), errno));
  PAWL_CHECK(write_tag(size_));
  return sync_directory_of(path_);
}

std::unexpected<Error> Part::give_up(Error error) {
  const bool useless = error.code() == Code::too_large || error.code() == Code::disk_full ||
                       error.code() == Code::source_changed || error.code() == Code::source_missing;
  // What cannot be kept is fetched again; the reason why it was not all fetched is what the caller needs.
  if (useless || !resumable_ || size_ == 0 || !keep()) discard();
  return fail(std::move(error));
}

void Part::discard() {
  unlink(tag_path(path_).c_str());
  unlink(new_tag_path(path_).c_str());
  unlink(part_path().c_str());
  resumable_ = false;
}

}  // namespace pawl::images::source

namespace pawl::images {

Result<void> forget_part(const std::string& path) {
  for (const auto* ending : {".part.tag", ".part.tag.new", ".part"}) {
    if (unlink((path + ending).c_str()) != 0 && errno != ENOENT)
      return fail(source::file_error("removing", path + ending, errno));
  }
  return source::sync_directory_of(path);
}

}  // namespace pawl::images
