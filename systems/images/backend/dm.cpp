// SPDX-License-Identifier: Apache-2.0
#include "images/backend/dm.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/dm-ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace pawl::images::pools {
namespace {

constexpr const char* kControl = "/dev/mapper/control";
constexpr unsigned kMiscMajor = 10;
constexpr std::size_t kFirstBuffer = 16384;
constexpr std::size_t kLargestBuffer = std::size_t{64} << 20U;

Error mapper_error(std::string_view doing, std::string_view what, int number) {
  const auto plain = system_error(doing, what, number);
  switch (number) {
    case EEXIST:
      return {Code::volume_exists, plain.message(), plain.fields()};
    case ENODATA:
    case ENXIO:
      return {Code::volume_missing, plain.message(), plain.fields()};
    case EOPNOTSUPP:
      return {Code::backend_unavailable,
              plain.message() + "; the pool takes no changes, probably it needs a check", plain.fields()};
    default:
      return plain;
  }
}

/// The buffer of one call: the kernel's header and what follows it.
class MapperCall {
 public:
  explicit MapperCall(const std::string& name, std::string payload = {})
      : name_(name), payload_(std::move(payload)) {}

  dm_ioctl& header() { return *reinterpret_cast<dm_ioctl*>(words_.data()); }
  /// What the kernel answered, from where it begins.
  const char* answer() { return bytes() + header().data_start; }
  std::size_t answer_size() { return header().data_size - std::min(header().data_size, header().data_start); }

  void set_uuid(std::string_view uuid) { uuid_ = uuid; }

  /// 0 or an errno. A buffer that is too small is made larger.
  int run(int control, unsigned long command, std::uint32_t flags = 0, std::uint32_t targets = 0) {
    for (std::size_t size = kFirstBuffer;; size *= 4) {
      words_.assign((std::max(size, payload_.size() + kFirstBuffer)) / sizeof(std::uint64_t), 0);
      auto& head = header();
      head.version[0] = DM_VERSION_MAJOR;
      head.data_size = static_cast<std::uint32_t>(words_.size() * sizeof(std::uint64_t));
      head.data_start = kDataStart;
      head.flags = flags;
      head.target_count = targets;
      std::copy_n(name_.begin(), std::min<std::size_t>(name_.size(), DM_NAME_LEN - 1), std::begin(head.name));
      std::copy_n(uuid_.begin(), std::min<std::size_t>(uuid_.size(), DM_UUID_LEN - 1), std::begin(head.uuid));
      std::ranges::copy(payload_, bytes() + kDataStart);
      if (::ioctl(control, command, words_.data()) != 0) return errno;
      if ((header().flags & DM_BUFFER_FULL_FLAG) == 0) return 0;
      if (size >= kLargestBuffer) return ENOMEM;
    }
  }

 private:
  /// Aligned as the kernel's structures after the header want it.
  static constexpr std::uint32_t kDataStart = (sizeof(dm_ioctl) + 7) / 8 * 8;

  char* bytes() { return reinterpret_cast<char*>(words_.data()); }

  std::string name_;
  std::string uuid_;
  std::string payload_;
  std::vector<std::uint64_t> words_;
};

template <class T>
T read_at(const char* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// The control node; made if udev does not.
Result<void> ensure_control() {
  if (exists(kControl)) return {};
  PAWL_TRY(const auto text, read_file("/proc/misc"));
  std::istringstream words(text.value_or(""));
  unsigned number = 0;
  for (std::string name; words >> number >> name;) {
    if (name != "device-mapper") continue;
    PAWL_CHECK(make_directories("/dev/mapper"));
    if (::mknod(kControl, S_IFCHR | 0600U, makedev(kMiscMajor, number)) == 0 || errno == EEXIST) return {};
    return fail(system_error("make the node", kControl));
  }
  return fail(Code::backend_unavailable, "the kernel has no device mapper (no /dev/mapper/control)");
}

}  // namespace

Result<DeviceMapper> DeviceMapper::open() {
  PAWL_CHECK(ensure_control());
  Descriptor control(::open(kControl, O_RDWR | O_CLOEXEC));
  if (!control) {
    return fail(Code::backend_unavailable, system_error("open", kControl).message());
  }
  MapperCall call("");
  if (const int error = call.run(control.get(), DM_VERSION); error != 0) {
    return fail(Code::backend_unavailable, system_error("talk to", "the device mapper", error).message());
  }
  return DeviceMapper(std::move(control));
}

Result<void> DeviceMapper::check_target(const std::string& type) const {
  MapperCall call(type);
  const int error = call.run(control_.get(), DM_GET_TARGET_VERSION);
  if (error == 0) return {};
  return fail(Code::backend_unavailable,
              fmt::format("the device mapper has no target \"{}\"; load its module", type));
}

Result<std::vector<std::string>> DeviceMapper::names() const {
  MapperCall call("");
  if (const int error = call.run(control_.get(), DM_LIST_DEVICES); error != 0) {
    return fail(mapper_error("list", "the devices", error));
  }
  std::vector<std::string> found;
  const char* at = call.answer();
  if (call.answer_size() < sizeof(dm_name_list)) return found;
  while (true) {
    if (read_at<std::uint64_t>(at) == 0) return found;  // there is none
    found.emplace_back(at + offsetof(dm_name_list, name));
    const auto next = read_at<std::uint32_t>(at + offsetof(dm_name_list, next));
    if (next == 0) return found;
    at += next;
  }
}

Result<std::optional<DeviceMapper::Info>> DeviceMapper::info(const std::string& name) const {
  MapperCall call(name);
  const int error = call.run(control_.get(), DM_DEV_STATUS);
  if (error == ENXIO) return std::nullopt;
  if (error != 0) return fail(mapper_error("ask about", name, error));
  const auto& head = call.header();
  return Info{.name = name,
              .uuid = std::string(static_cast<const char*>(head.uuid)),
              .device = head.dev,
              .live = (head.flags & DM_ACTIVE_PRESENT_FLAG) != 0,
              .suspended = (head.flags & DM_SUSPEND_FLAG) != 0};
}

Result<void> DeviceMapper::create(const std::string& name, const std::string& uuid) const {
  MapperCall call(name);
  call.set_uuid(uuid);
  const int error = call.run(control_.get(), DM_DEV_CREATE);
  if (error == 0) return {};
  return fail(mapper_error("create the device", name, error));
}

Result<void> DeviceMapper::load(const std::string& name, const Target& target) const {
  dm_target_spec spec{};
  spec.length = target.sectors;
  std::copy_n(target.type.begin(), std::min<std::size_t>(target.type.size(), DM_MAX_TYPE_NAME - 1),
              std::begin(spec.target_type));
  const auto size = (sizeof spec + target.parameters.size() + 1 + 7) / 8 * 8;
  spec.next = static_cast<std::uint32_t>(size);
  std::string payload(size, '\0');
  std::memcpy(payload.data(), &spec, sizeof spec);
  std::ranges::copy(target.parameters, payload.data() + sizeof spec);
  MapperCall call(name, std::move(payload));
  const int error = call.run(control_.get(), DM_TABLE_LOAD, target.read_only ? DM_READONLY_FLAG : 0U, 1);
  if (error == 0) return {};
  return fail(mapper_error("load the table of",
                           fmt::format("{} ({} {})", name, target.type, target.parameters), error));
}

Result<void> DeviceMapper::resume(const std::string& name) const {
  MapperCall call(name);
  const int error = call.run(control_.get(), DM_DEV_SUSPEND);
  if (error == 0) return {};
  return fail(mapper_error("resume", name, error));
}

Result<void> DeviceMapper::suspend(const std::string& name) const {
  MapperCall call(name);
  const int error = call.run(control_.get(), DM_DEV_SUSPEND, DM_SUSPEND_FLAG);
  if (error == 0) return {};
  return fail(mapper_error("suspend", name, error));
}

Result<void> DeviceMapper::remove(const std::string& name, Duration busy_timeout) const {
  const int error = while_busy(busy_timeout, [&] {
    MapperCall call(name);
    return call.run(control_.get(), DM_DEV_REMOVE);
  });
  if (error != 0 && error != ENXIO) return fail(mapper_error("remove the device", name, error));
  const auto link = "/dev/mapper/" + name;
  if (::unlink(link.c_str()) != 0 && errno != ENOENT) return fail(system_error("remove the link", link));
  return {};
}

Result<std::string> DeviceMapper::status(const std::string& name) const {
  MapperCall call(name);
  if (const int error = call.run(control_.get(), DM_TABLE_STATUS); error != 0) {
    return fail(mapper_error("ask for the status of", name, error));
  }
  if (call.header().target_count == 0) {
    return fail(Code::backend_unavailable, fmt::format("the device {} has no table", name));
  }
  return std::string(call.answer() + sizeof(dm_target_spec));
}

Result<void> DeviceMapper::message(const std::string& name, const std::string& text) const {
  std::string payload(sizeof(dm_target_msg), '\0');
  payload += text;
  payload += '\0';
  MapperCall call(name, std::move(payload));
  const int error = call.run(control_.get(), DM_TARGET_MSG);
  if (error == 0) return {};
  return fail(mapper_error("send", fmt::format("\"{}\" to {}", text, name), error));
}

Result<std::string> device_node(const DeviceMapper::Info& info) {
  auto path = fmt::format("/dev/dm-{}", minor(info.device));
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISBLK(status.st_mode) && status.st_rdev == info.device) return path;
    return fail(Code::volume_failed, fmt::format("{} is not the device {}", path, info.name));
  }
  if (::mknod(path.c_str(), S_IFBLK | 0600U, info.device) == 0 || errno == EEXIST) return path;
  return fail(system_error("make the node", path));
}

Result<std::string> named_node(const DeviceMapper::Info& info) {
  PAWL_TRY(const auto node, device_node(info));
  auto link = "/dev/mapper/" + info.name;
  struct stat status{};
  if (::stat(link.c_str(), &status) == 0 && S_ISBLK(status.st_mode) && status.st_rdev == info.device)
    return link;
  const auto fresh = link + ".new";
  ::unlink(fresh.c_str());
  if (::symlink(node.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), link.c_str()) != 0) {
    return fail(system_error("make the link", link));
  }
  return link;
}

}  // namespace pawl::images::pools
