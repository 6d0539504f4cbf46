// SPDX-License-Identifier: Apache-2.0
#include "images/backend/directory_backend.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "images/backend/os.hpp"
#include "pawl/codec.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::string_view kMaking = ".making";
constexpr std::string_view kRemoving = ".removing";

struct DirectoryName {
  std::uint32_t id = 0;
  std::string_view suffix;
};

std::optional<DirectoryName> parse_directory_name(std::string_view name) {
  DirectoryName parsed;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.id);
  if (error != std::errc() || !check_volume_id(parsed.id)) return std::nullopt;
  parsed.suffix = name.substr(static_cast<std::size_t>(end - name.data()));
  if (!parsed.suffix.empty() && parsed.suffix != kMaking && parsed.suffix != kRemoving) return std::nullopt;
  return parsed;
}

VolumeRecord record_of(const Volume& volume) {
  return {.id = volume.id, .name = volume.name, .bytes = volume.bytes, .marker = volume.marker};
}

}  // namespace

Result<void> write_record(const std::string& place, const VolumeRecord& record) {
  PAWL_TRY(const auto text, encode(record));
  return write_file(place + "/volume.json", text + "\n");
}

Result<std::optional<VolumeRecord>> read_record(const std::string& place) {
  const auto file = place + "/volume.json";
  PAWL_TRY(const auto text, read_file(file));
  if (!text) return std::nullopt;
  auto record = decode<VolumeRecord>(*text);
  if (!record) return std::nullopt;
  if (record->write_failure == WriteFailure::none) record->write_failure = recorded_write_failure(file);
  return *std::move(record);
}

std::string DirectoryBackend::place(std::uint32_t id, std::string_view suffix) const {
  return fmt::format("{}/{}{}", content_->volumes(), id, suffix);
}

/// The record of a volume that is there, whole and the one that is meant.
Result<VolumeRecord> DirectoryBackend::whole(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  PAWL_CHECK(content_->check_attached());
  const auto at = place(volume.id);
  PAWL_TRY(auto record, read_record(at));
  if (!exists(at)) return fail(missing_volume(volume, "is not in the pool, or its making was interrupted"));
  if (!record) return fail(missing_volume(volume, "has no readable volume.json"));
  if (record->marker != volume.marker) {
    return fail(missing_volume(volume, fmt::format("is another one: its marker is {}", record->marker)));
  }
  return *std::move(record);
}

Result<void> DirectoryBackend::attach() {
  const std::lock_guard lock(pool_);
  PAWL_CHECK(content_->attach());
  return make_directories(content_->volumes());
}

Result<void> DirectoryBackend::detach() {
  const std::lock_guard lock(pool_);
  if (!content_->check_attached()) return content_->detach();  // half attached, perhaps
  PAWL_TRY(const auto volumes, list());
  for (const auto& volume : volumes) {
    if (!volume.mounted) continue;
    return fail(Code::volume_busy, fmt::format("volume {} is mounted; unmount it first", volume.id));
  }
  for (const auto& volume : volumes) {
    if (!volume.active) continue;
    const VolumeLocks::Hold hold(locks_, {volume.id});
    PAWL_TRY(const auto record, read_record(place(volume.id)));
    if (record) PAWL_CHECK(content_->deactivate(place(volume.id), *record));
  }
  step_("deactivate all");
  return content_->detach();
}

Result<PoolUsage> DirectoryBackend::pool() {
  PAWL_CHECK(content_->check_attached());
  return content_->pool();
}

Result<void> DirectoryBackend::extend(std::uint64_t bytes) {
  const std::lock_guard lock(pool_);
  PAWL_CHECK(content_->check_attached());
  return content_->extend(bytes);
}

/// Clears what an interrupted call has left under this id. `taken`: the volume is there already.
Result<DirectoryBackend::Room> DirectoryBackend::make_room(const Volume& volume) {
  PAWL_CHECK(content_->check_attached());
  if (exists(place(volume.id))) {
    PAWL_TRY(const auto record, read_record(place(volume.id)));
    if (record && record->marker != volume.marker) return fail(taken_volume(volume, record->marker));
    if (record && record->write_failure == WriteFailure::none) return Room::taken;
    PAWL_CHECK(take_apart(volume.id));
  }
  if (exists(place(volume.id, kRemoving))) PAWL_CHECK(content_->erase(place(volume.id, kRemoving)));
  const auto making = place(volume.id, kMaking);
  if (!exists(making)) return Room::clear;
  PAWL_TRY(const auto begun, read_record(making));
  if (begun && begun->marker != volume.marker) return fail(taken_volume(volume, begun->marker));
  log_.info("removing what an interrupted call left", {{"volume", volume.id}, {"path", making}});
  PAWL_CHECK(content_->erase(making));
  step_("clear what was interrupted");
  return Room::clear;
}

/// Makes it under its temporary name with `fill`, and gives it its name when all of it is durable.
template <class Fill>
Result<void> DirectoryBackend::make(const Volume& volume, Fill fill) {
  const auto making = place(volume.id, kMaking);
  if (::mkdir(making.c_str(), 0700) != 0) return fail(system_error("make the directory", making));
  step_("mkdir");
  PAWL_CHECK(write_record(making, record_of(volume)));
  step_("record");
  auto filled = fill(making);
  if (filled) filled = sync_file_system(making);
  if (!filled) {
    // What was begun goes at once: it may be what fills the pool. If that fails, too, the next call does it.
    if (auto erased = content_->erase(making); !erased) {
      filled.error().with("left_behind", making);
    }
    return filled;
  }
  step_("sync");
  PAWL_CHECK(rename_file(making, place(volume.id)));
  step_("rename");
  return {};
}

Result<void> DirectoryBackend::create(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  const VolumeLocks::Hold hold(locks_, {volume.id});
  PAWL_TRY(const auto room, make_room(volume));
  if (room == Room::taken) return {};
  return make(volume, [&](const std::string& making) { return content_->make(making, volume); });
}

Result<void> DirectoryBackend::snapshot(const Volume& origin, const Volume& copy) {
  PAWL_CHECK(check_copy(origin, copy));
  const VolumeLocks::Hold hold(locks_, {origin.id, copy.id});
  PAWL_TRY(const auto room, make_room(copy));
  if (room == Room::taken) return {};
  PAWL_TRY(const auto record, whole(origin));
  if (record.write_failure != WriteFailure::none)
    return fail(missing_volume(origin, "is incomplete: a write to it failed"));
  PAWL_TRY(const auto state, content_->state(place(origin.id), record));
  if (state.mounted) {
    return fail(Code::volume_busy, fmt::format("volume {} ({}) is mounted; unmount it before a snapshot",
                                               origin.id, origin.name));
  }
  return make(copy,
              [&](const std::string& making) { return content_->copy(place(origin.id), making, copy); });
}

Result<std::string> DirectoryBackend::mount(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  PAWL_TRY(const auto record, whole(volume));
  if (record.write_failure != WriteFailure::none)
    return fail(missing_volume(volume, "is incomplete: a write to it failed"));
  return content_->mount(place(volume.id), record);
}

Result<void> DirectoryBackend::unmount(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  PAWL_TRY(auto record, whole(volume));
  const auto at = place(volume.id);
  if (auto flushed = content_->flush(at, record); !flushed) {
    // Written down before it is unmounted: a repeat must not find it unmounted and call it good.
    record.write_failure =
        flushed.error().code() == Code::pool_full ? WriteFailure::pool_full : WriteFailure::volume_failed;
    log_.error("not everything could be written into a volume",
               {{"volume", volume.id}, {"error", flushed.error().to_string()}});
    PAWL_CHECK(record_write_failure(at + "/volume.json", record.write_failure));
    step_("record write failure");
  }
  step_("flush");
  PAWL_CHECK(content_->unmount(at, record));
  PAWL_CHECK(content_->deactivate(at, record));
  if (record.write_failure != WriteFailure::none)
    return fail(incomplete_volume(volume, record.write_failure));
  return {};
}

Result<std::string> DirectoryBackend::activate(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  PAWL_TRY(const auto record, whole(volume));
  if (record.write_failure != WriteFailure::none)
    return fail(missing_volume(volume, "is incomplete: a write to it failed"));
  return content_->activate(place(volume.id), record);
}

Result<void> DirectoryBackend::deactivate(const Volume& volume) {
  const VolumeLocks::Hold hold(locks_, {volume.id});
  auto record = whole(volume);
  if (!record && record.error().code() == Code::volume_missing) return {};
  if (!record) return fail(std::move(record).error());
  PAWL_TRY(const auto state, content_->state(place(volume.id), *record));
  if (!state.mounted) return content_->deactivate(place(volume.id), *record);
  return fail(Code::volume_busy,
              fmt::format("volume {} ({}) is mounted; unmount it first", volume.id, volume.name));
}

/// Unmounts, deactivates and erases what is called <id>.
Result<void> DirectoryBackend::take_apart(std::uint32_t id) {
  const auto at = place(id);
  PAWL_TRY(auto record, read_record(at));
  if (!record) record = VolumeRecord{.id = id};
  PAWL_CHECK(content_->release(at, *record));
  step_("deactivate");
  // A crash may have left an older one half removed.
  if (exists(place(id, kRemoving))) PAWL_CHECK(content_->erase(place(id, kRemoving)));
  PAWL_CHECK(rename_file(at, place(id, kRemoving)));
  step_("rename away");
  return content_->erase(place(id, kRemoving));
}

Result<void> DirectoryBackend::remove(std::uint32_t id) {
  PAWL_CHECK(check_volume_id(id));
  const VolumeLocks::Hold hold(locks_, {id});
  PAWL_CHECK(content_->check_attached());
  if (exists(place(id))) PAWL_CHECK(take_apart(id));
  for (const auto suffix : {kMaking, kRemoving}) {
    if (exists(place(id, suffix))) PAWL_CHECK(content_->erase(place(id, suffix)));
  }
  return {};
}

Result<FoundVolume> DirectoryBackend::found(const std::string& name, std::uint32_t id) {
  const auto at = content_->volumes() + "/" + name;
  PAWL_TRY(const auto record, read_record(at));
  FoundVolume volume{.id = id, .complete = false};
  if (!record) return volume;
  volume.name = record->name;
  volume.marker = record->marker;
  if (name.contains('.')) return volume;
  volume.complete = record->write_failure == WriteFailure::none;
  PAWL_TRY(const auto state, content_->state(at, *record));
  volume.active = state.active;
  volume.mounted = state.mounted;
  volume.path = state.path;
  return volume;
}

Result<std::optional<FoundVolume>> DirectoryBackend::find(const Volume& volume) {
  PAWL_CHECK(check_volume(volume));
  const VolumeLocks::Hold hold(locks_, {volume.id});
  PAWL_CHECK(content_->check_attached());
  for (const auto suffix : {std::string_view(), kMaking, kRemoving}) {
    if (!exists(place(volume.id, suffix))) continue;
    PAWL_TRY(auto there, found(fmt::format("{}{}", volume.id, suffix), volume.id));
    if (there.marker != volume.marker && !there.marker.empty()) return std::nullopt;
    return there;
  }
  return std::nullopt;
}

Result<std::vector<FoundVolume>> DirectoryBackend::list() {
  PAWL_CHECK(content_->check_attached());
  PAWL_TRY(const auto names, names_in(content_->volumes()));
  std::vector<FoundVolume> volumes;
  for (const auto& name : names) {
    const auto parsed = parse_directory_name(name);
    if (!parsed) continue;
    PAWL_TRY(auto volume, found(name, parsed->id));
    // Removed while it was looked at, or reported already by another name.
    if (!exists(content_->volumes() + "/" + name)) continue;
    const auto same = std::ranges::find(volumes, volume.id, &FoundVolume::id);
    if (same == volumes.end())
      volumes.push_back(std::move(volume));
    else if (volume.complete)
      *same = std::move(volume);
  }
  std::ranges::sort(volumes, {}, &FoundVolume::id);
  return volumes;
}

Result<std::vector<VolumeUsage>> DirectoryBackend::usage() {
  PAWL_CHECK(content_->check_attached());
  PAWL_TRY(const auto names, names_in(content_->volumes()));
  std::vector<VolumeUsage> used;
  for (const auto& name : names) {
    const auto parsed = parse_directory_name(name);
    if (!parsed || !parsed->suffix.empty()) continue;
    const VolumeLocks::Hold hold(locks_, {parsed->id});
    PAWL_TRY(const auto record, read_record(place(parsed->id)));
    if (!record) continue;
    PAWL_TRY(const auto usage, content_->usage(place(parsed->id), *record));
    used.push_back(usage);
  }
  std::ranges::sort(used, {}, &VolumeUsage::id);
  return used;
}

}  // namespace pawl::images::pools
