// SPDX-License-Identifier: Apache-2.0
// Thin volumes of the device mapper: what the kernel offers for exactly this purpose.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "images/backend/ext4.hpp"
#include "images/backend/mounts.hpp"
#include "images/backend/os.hpp"
#include "images/backend/steps.hpp"
#include "images/backend/thin_volumes.hpp"
#include "images/backend/volume.hpp"
#include "pawl/codec.hpp"

namespace pawl::images::pools {
namespace {

/// What a call finds about one volume before it does anything.
struct ThinFound {
  enum class What : std::uint8_t { nothing, ours, unfinished, other };
  What what = What::nothing;
  std::string marker{};  ///< of `other`, where it is known
  std::string name{};
  std::optional<ThinDevice> device{};
  WriteFailure write_failure = WriteFailure::none;
};

/// <root>/writing/<id>: it was mounted and has not been unmounted well since. Its mode says what went wrong.
struct WritingRecord {
  std::string marker;
};

class DmThin final : public Backend {
 public:
  DmThin(const BackendOptions& options, const Step& step)
      : root_(options.root),
        busy_timeout_(options.busy_timeout),
        log_(options.log),
        step_(step),
        volumes_(options, step) {}

  std::string_view name() const override { return "dmthin"; }

  Result<void> attach() override;
  Result<void> detach() override;
  Result<PoolUsage> pool() override;
  Result<void> extend(std::uint64_t bytes) override;
  Result<void> create(const Volume& volume) override;
  Result<std::string> mount(const Volume& volume) override;
  Result<void> unmount(const Volume& volume) override;
  Result<void> snapshot(const Volume& origin, const Volume& copy) override;
  Result<std::string> activate(const Volume& volume) override;
  Result<void> deactivate(const Volume& volume) override;
  Result<void> remove(std::uint32_t id) override;
  Result<std::optional<FoundVolume>> find(const Volume& volume) override;
  Result<std::vector<FoundVolume>> list() override;
  Result<std::vector<VolumeUsage>> usage() override;

 private:
  std::string point(std::uint32_t id) const { return fmt::format("{}/mnt/{}", root_, id); }
  std::string writing_file(std::uint32_t id) const { return fmt::format("{}/writing/{}", root_, id); }

  Result<void> ready();
  Result<void> open_pool();
  Result<WriteFailure> write_failure(std::uint32_t id, std::string_view marker) const;
  Result<ThinFound> inspect(const Volume& volume);
  Result<ThinFound> whole(const Volume& volume);
  Result<bool> claim(const Volume& volume, const std::function<Result<void>()>& make);
  Result<void> erase(std::uint32_t id);
  Result<ThinFound> origin_of_snapshot(const Volume& origin);
  Result<void> fill(const Volume& volume);
  Result<void> take_snapshot(const Volume& copy, const Volume& origin, const ThinFound& found);
  Result<bool> is_used(const ThinFound& found) const;
  Result<FoundVolume> describe(std::uint32_t id, const std::optional<ThinDevice>& device);
  Result<void> flush(std::uint32_t id);
  Result<void> forget_writing(std::uint32_t id) const;
  Result<bool> is_noted(const Volume& volume) const;

  const std::string root_;
  const Duration busy_timeout_;
  Logger log_;
  Step step_;
  std::mutex turn_;  ///< control operations take turns; writing and flushing data do not
  std::optional<DeviceMapper> mapper_;
  bool ready_ = false;
  ThinVolumes volumes_;
  VolumeLocks locks_;
};

Result<void> DmThin::open_pool() {
  if (!mapper_) {
    PAWL_TRY(mapper_, DeviceMapper::open());
  }
  PAWL_CHECK(make_directories(root_ + "/mnt"));
  PAWL_CHECK(make_directories(root_ + "/writing"));
  PAWL_CHECK(volumes_.pool().attach(*mapper_));
  PAWL_CHECK(volumes_.tidy(*mapper_));
  ready_ = true;
  return {};
}

/// That the pool is there; a process that has not attached it takes it as another one has left it.
Result<void> DmThin::ready() {
  if (!mapper_) {
    PAWL_TRY(mapper_, DeviceMapper::open());
  }
  PAWL_CHECK(volumes_.pool().status(*mapper_));
  if (ready_) return {};
  return open_pool();
}

Result<void> DmThin::attach() {
  const std::lock_guard lock(turn_);
  return open_pool();
}

Result<void> DmThin::detach() {
  const std::lock_guard lock(turn_);
  if (!mapper_) {
    PAWL_TRY(mapper_, DeviceMapper::open());
  }
  PAWL_TRY(const auto devices, volumes_.devices(*mapper_));
  for (const auto& device : devices) {
    if (!device.info.live) continue;
    PAWL_TRY(const auto node, device_node(device.info));
    PAWL_TRY(const bool mounted, is_mounted_anywhere(node));
    if (mounted)
      return fail(Code::volume_busy, fmt::format("volume {} is mounted; unmount it first", device.id));
  }
  for (const auto& device : devices) PAWL_CHECK(mapper_->remove(device.info.name, busy_timeout_));
  step_("deactivate all");
  ready_ = false;
  return volumes_.pool().detach(*mapper_);
}

Result<PoolUsage> DmThin::pool() {
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  return volumes_.pool().usage(*mapper_);
}

Result<void> DmThin::extend(std::uint64_t bytes) {
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  return volumes_.pool().extend(*mapper_, bytes);
}

Result<WriteFailure> DmThin::write_failure(std::uint32_t id, std::string_view marker) const {
  PAWL_TRY(const auto text, read_file(writing_file(id)));
  if (!text) return WriteFailure::none;
  PAWL_TRY(const auto record, decode<WritingRecord>(*text));
  return record.marker == marker ? recorded_write_failure(writing_file(id)) : WriteFailure::none;
}

Result<ThinFound> DmThin::inspect(const Volume& volume) {
  using enum ThinFound::What;
  ThinFound found;
  PAWL_TRY(found.write_failure, write_failure(volume.id, volume.marker));
  PAWL_TRY(auto device, volumes_.device(*mapper_, volume.id));
  if (device && device->info.live) {
    found.what = device->marker == volume.marker ? ours : other;
    found.marker = device->marker;
    found.name = device->info.name;
    found.device = std::move(device);
    return found;
  }
  PAWL_TRY(const auto face, volumes_.look(*mapper_, volume.id));
  if (!face) return found;
  if (face->label && face->label->id == volume.id) {
    found.what = face->label->marker == volume.marker ? ours : other;
    found.marker = face->label->marker;
    found.name = face->label->name;
  } else if (face->label || face->blank || face->ext4_marker == volume.marker) {
    found.what = unfinished;  // a snapshot with its origin's label, or nothing yet, or no label yet
  } else {
    found.what = other;
    found.marker = face->ext4_marker.empty() ? "something without a label" : face->ext4_marker;
  }
  return found;
}

Result<ThinFound> DmThin::whole(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  PAWL_CHECK(ready());
  PAWL_TRY(auto found, inspect(volume));
  switch (found.what) {
    case ThinFound::What::ours:
      return found;
    case ThinFound::What::nothing:
      return fail(missing_volume(volume, "is not in the pool"));
    case ThinFound::What::unfinished:
      return fail(missing_volume(volume, "is incomplete: its making was interrupted"));
    case ThinFound::What::other:
      return fail(missing_volume(volume, fmt::format("is another one: its marker is {}", found.marker)));
  }
  return found;
}

/// Makes the id with `make`, a message to the pool. False: the volume is there already. The kernel is asked
/// to make it before anything is looked at: looking for an id that is not there leaves an error in its log.
Result<bool> DmThin::claim(const Volume& volume, const std::function<Result<void>()>& make) {
  auto room = volumes_.pool().check_room(*mapper_);
  if (room) {
    auto made = make();
    if (made) return true;
    if (made.error().code() != Code::volume_exists) return fail(std::move(made).error());
  }
  PAWL_TRY(const auto found, inspect(volume));
  if (found.what == ThinFound::What::other) return fail(taken_volume(volume, found.marker));
  if (found.what == ThinFound::What::ours && found.write_failure == WriteFailure::none) return false;
  if (!room && room.error().code() != Code::pool_full) return fail(std::move(room).error());
  log_.info("removing what an interrupted call left", {{"volume", volume.id}});
  PAWL_CHECK(erase(volume.id));
  // Asked again: what was cleared may be what has filled the pool.
  PAWL_CHECK(volumes_.pool().check_room(*mapper_));
  PAWL_CHECK(make());
  return true;
}

/// Unmounts, deactivates and deletes it; no-op if absent.
Result<void> DmThin::erase(std::uint32_t id) {
  PAWL_CHECK(unmount_device(point(id), busy_timeout_));
  step_("unmount");
  PAWL_CHECK(volumes_.deactivate(*mapper_, id));
  PAWL_CHECK(volumes_.erase(*mapper_, id));
  return forget_writing(id);
}

Result<void> DmThin::forget_writing(std::uint32_t id) const {
  if (::unlink(writing_file(id).c_str()) == 0 || errno == ENOENT) return {};
  return fail(system_error("remove", writing_file(id)));
}

Result<bool> DmThin::is_noted(const Volume& volume) const {
  PAWL_TRY(const auto text, read_file(writing_file(volume.id)));
  if (!text) return false;
  const auto record = decode<WritingRecord>(*text);
  return record && record->marker == volume.marker;
}

Result<void> DmThin::fill(const Volume& volume) {
  return volumes_.with_device(*mapper_, volume.id, volume.bytes, false,
                              [&](const std::string& node) -> Result<void> {
                                PAWL_CHECK(make_ext4(node, volume));
                                step_("make the file system");
                                PAWL_CHECK(write_label(node, volume));
                                step_("write the label");
                                return {};
                              });
}

Result<void> DmThin::create(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  const VolumeLocks::Hold hold(locks_, {volume.id});
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  PAWL_TRY(const bool fresh, claim(volume, [&]() -> Result<void> {
             PAWL_CHECK(volumes_.pool().message(*mapper_, fmt::format("create_thin {}", volume.id)));
             step_("create_thin");
             return {};
           }));
  if (!fresh) return {};
  auto filled = fill(volume);
  if (filled) return {};
  // What was begun goes at once; if that fails, too, the next call does it.
  if (!volumes_.erase(*mapper_, volume.id)) filled.error().with("left_behind", std::to_string(volume.id));
  return filled;
}

Result<bool> DmThin::is_used(const ThinFound& found) const {
  if (!found.device) return false;
  PAWL_TRY(const auto node, device_node(found.device->info));
  return is_mounted_anywhere(node);
}

/// An active origin is suspended meanwhile: without that, what was written last would be missing in the copy.
Result<void> DmThin::take_snapshot(const Volume& copy, const Volume& origin, const ThinFound& found) {
  if (found.device) {
    PAWL_CHECK(mapper_->suspend(found.device->info.name));
    step_("suspend the origin");
  }
  const auto taken = volumes_.pool().message(*mapper_, fmt::format("create_snap {} {}", copy.id, origin.id));
  step_("create_snap");
  if (found.device) {
    PAWL_CHECK(mapper_->resume(found.device->info.name));
    step_("resume the origin");
  }
  return taken;
}

/// The origin, if a snapshot of it can be taken.
Result<ThinFound> DmThin::origin_of_snapshot(const Volume& origin) {
  PAWL_TRY(auto found, whole(origin));
  if (found.write_failure != WriteFailure::none)
    return fail(missing_volume(origin, "is incomplete: a write to it failed"));
  PAWL_TRY(const bool used, is_used(found));
  if (!used) return found;
  return fail(Code::volume_busy,
              fmt::format("volume {} ({}) is mounted; unmount it before a snapshot", origin.id, origin.name));
}

Result<void> DmThin::snapshot(const Volume& origin, const Volume& copy) {
  PAWL_CHECK(check_copy(origin, copy));
  const VolumeLocks::Hold hold(locks_, {origin.id, copy.id});
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  const auto found = origin_of_snapshot(origin);
  if (!found) {
    // A repeat of what was done before the origin went away or was mounted.
    PAWL_TRY(const auto there, inspect(copy));
    if (there.what == ThinFound::What::ours && there.write_failure == WriteFailure::none) return {};
    return fail(found.error());
  }
  PAWL_TRY(const bool fresh, claim(copy, [&] { return take_snapshot(copy, origin, *found); }));
  if (!fresh) return {};
  auto labelled = volumes_.with_device(*mapper_, copy.id, kLabelRead, false,
                                       [&](const std::string& node) { return write_label(node, copy); });
  if (labelled) return {};
  if (!volumes_.erase(*mapper_, copy.id)) labelled.error().with("left_behind", std::to_string(copy.id));
  return labelled;
}

Result<std::string> DmThin::activate(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  const std::lock_guard lock(turn_);
  PAWL_TRY(const auto found, whole(volume));
  if (found.write_failure != WriteFailure::none)
    return fail(missing_volume(volume, "is incomplete: a write to it failed"));
  return volumes_.activate(*mapper_, volume);
}

Result<void> DmThin::deactivate(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  const std::lock_guard lock(turn_);
  const auto found = whole(volume);
  if (!found && found.error().code() == Code::volume_missing) return {};
  if (!found) return fail(found.error());
  PAWL_TRY(const bool used, is_used(*found));
  if (!used) return volumes_.deactivate(*mapper_, volume.id);
  return fail(Code::volume_busy,
              fmt::format("volume {} ({}) is mounted; unmount it first", volume.id, volume.name));
}

Result<std::string> DmThin::mount(const Volume& volume) {
  PAWL_TRY(const auto device, activate(volume));
  const VolumeLocks::Hold hold(locks_, {volume.id});
  // There before the first write, so that noting a failure needs no space.
  PAWL_TRY(const auto text, encode(WritingRecord{.marker = volume.marker}));
  PAWL_CHECK(write_file(writing_file(volume.id), text));
  step_("note that it is written to");
  PAWL_CHECK(mount_device(device, point(volume.id), "ext4", kExt4Settings));
  step_("mount");
  return point(volume.id);
}

/// Makes durable what was written. A pool that is full answers with EIO.
Result<void> DmThin::flush(std::uint32_t id) {
  PAWL_TRY(const auto all, mounts());
  if (std::ranges::find(all, point(id), &Mounted::point) == all.end()) return {};
  auto flushed = sync_file_system(point(id));
  if (flushed) return {};
  const std::lock_guard lock(turn_);
  PAWL_TRY(const auto status, volumes_.pool().status(*mapper_));
  if (status.mode != "out_of_data_space") return flushed;
  return fail(Code::pool_full, flushed.error().message() + "; the pool is out of data space");
}

Result<void> DmThin::unmount(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  ThinFound found;
  {
    const std::lock_guard lock(turn_);
    PAWL_TRY(found, whole(volume));
  }
  if (const auto flushed = flush(volume.id); !flushed) {
    // Written down before it is unmounted: a repeat must not find it unmounted and call it good.
    found.write_failure =
        flushed.error().code() == Code::pool_full ? WriteFailure::pool_full : WriteFailure::volume_failed;
    log_.error("not everything could be written into a volume",
               {{"volume", volume.id}, {"error", flushed.error().to_string()}});
    PAWL_CHECK(record_write_failure(writing_file(volume.id), found.write_failure));
    step_("record write failure");
  }
  step_("flush");
  PAWL_CHECK(unmount_device(point(volume.id), busy_timeout_));
  step_("unmount");
  const std::lock_guard lock(turn_);
  PAWL_CHECK(volumes_.deactivate(*mapper_, volume.id));
  if (found.write_failure != WriteFailure::none) return fail(incomplete_volume(volume, found.write_failure));
  return forget_writing(volume.id);
}

Result<void> DmThin::remove(std::uint32_t id) {
  PAWL_CHECK(check_volume_id(id));
  const VolumeLocks::Hold hold(locks_, {id});
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  PAWL_CHECK(volumes_.tidy(*mapper_));
  return erase(id);
}

Result<FoundVolume> DmThin::describe(std::uint32_t id, const std::optional<ThinDevice>& device) {
  FoundVolume volume{.id = id, .complete = false};
  if (device && device->info.live) {
    PAWL_TRY(volume.path, named_node(device->info));
    PAWL_TRY(volume.mounted, is_mounted_anywhere(volume.path));
    volume.name = device->info.name;
    volume.marker = device->marker;
    volume.active = true;
    PAWL_TRY(const auto state, write_failure(id, volume.marker));
    volume.complete = state == WriteFailure::none;
    return volume;
  }
  PAWL_TRY(const auto face, volumes_.look(*mapper_, id));
  if (!face) return volume;
  if (face->label && face->label->id == id) {
    volume.name = face->label->name;
    volume.marker = face->label->marker;
    PAWL_TRY(const auto state, write_failure(id, volume.marker));
    volume.complete = state == WriteFailure::none;
  } else if (!face->label) {
    volume.marker = face->ext4_marker;
  }
  return volume;
}

Result<std::optional<FoundVolume>> DmThin::find(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  const VolumeLocks::Hold hold(locks_, {volume.id});
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  PAWL_TRY(const auto found, inspect(volume));
  if (found.what == ThinFound::What::other) return std::nullopt;
  if (found.what == ThinFound::What::nothing) {
    // An interrupted removal may have left its note; the next removal deletes that, too.
    PAWL_TRY(const bool noted, is_noted(volume));
    if (!noted) return std::nullopt;
    return FoundVolume{.id = volume.id, .marker = volume.marker, .complete = false};
  }
  PAWL_TRY(auto described, describe(volume.id, found.device));
  return described;
}

Result<std::vector<FoundVolume>> DmThin::list() {
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  PAWL_CHECK(volumes_.tidy(*mapper_));
  PAWL_TRY(const auto ids, volumes_.pool().volumes(*mapper_, false));
  PAWL_TRY(const auto devices, volumes_.devices(*mapper_));
  std::vector<FoundVolume> found;
  for (const auto& volume : ids) {
    const auto device = std::ranges::find(devices, volume.id, &ThinDevice::id);
    PAWL_TRY(auto described,
             describe(volume.id, device == devices.end() ? std::nullopt : std::optional(*device)));
    found.push_back(std::move(described));
  }
  return found;
}

Result<std::vector<VolumeUsage>> DmThin::usage() {
  const std::lock_guard lock(turn_);
  PAWL_CHECK(ready());
  return volumes_.pool().volumes(*mapper_, true);
}

}  // namespace

std::unique_ptr<Backend> make_dmthin_backend(const BackendOptions& options, const Step& step) {
  return std::make_unique<DmThin>(options, step);
}

}  // namespace pawl::images::pools
