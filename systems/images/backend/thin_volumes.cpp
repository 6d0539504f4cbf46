// SPDX-License-Identifier: Apache-2.0
#include "images/backend/thin_volumes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "images/backend/os.hpp"
#include "images/backend/volume.hpp"

namespace pawl::images::pools {
namespace {

constexpr std::string_view kPassing = "passing";

}  // namespace

Result<std::vector<ThinDevice>> ThinVolumes::devices(const DeviceMapper& mapper) const {
  const auto prefix = fmt::format("PAWL-{}-", name_);
  PAWL_TRY(const auto names, mapper.names());
  std::vector<ThinDevice> found;
  for (const auto& name : names) {
    PAWL_TRY(auto info, mapper.info(name));
    if (!info || !info->uuid.starts_with(prefix)) continue;
    const auto rest = std::string_view(info->uuid).substr(prefix.size());
    ThinDevice device;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), device.id);
    if (error != std::errc() || end == rest.data() + rest.size() || *end != '-') continue;
    const auto marker = rest.substr(static_cast<std::size_t>(end - rest.data()) + 1);
    if (marker != kPassing) device.marker = marker;
    device.info = *std::move(info);
    found.push_back(std::move(device));
  }
  return found;
}

Result<std::optional<ThinDevice>> ThinVolumes::device(const DeviceMapper& mapper, std::uint32_t id) const {
  PAWL_TRY(auto all, devices(mapper));
  for (auto& device : all) {
    if (device.id == id && !device.marker.empty()) return std::move(device);
  }
  return std::nullopt;
}

Result<void> ThinVolumes::tidy(const DeviceMapper& mapper) const {
  PAWL_TRY(const auto all, devices(mapper));
  for (const auto& device : all) {
    // Without a table, or only for the time of a call that has ended: it cannot be in use.
    if (device.marker.empty() || !device.info.live) {
      PAWL_CHECK(mapper.remove(device.info.name, busy_timeout_));
    } else if (device.info.suspended) {
      PAWL_CHECK(mapper.resume(device.info.name));
    }
  }
  return {};
}

Result<void> ThinVolumes::with_device(const DeviceMapper& mapper, std::uint32_t id, std::uint64_t bytes,
                                      bool read_only,
                                      const std::function<Result<void>(const std::string&)>& use) const {
  const auto name = fmt::format("{}-passing-{}", name_, id);
  PAWL_CHECK(mapper.remove(name, busy_timeout_));
  PAWL_TRY(const auto target, pool_.thin(mapper, id, bytes, read_only));
  PAWL_CHECK(mapper.create(name, fmt::format("PAWL-{}-{}-{}", name_, id, kPassing)));
  step_("create a temporary device");
  const auto used = [&]() -> Result<void> {
    PAWL_CHECK(mapper.load(name, target));
    step_("load a temporary device");
    PAWL_CHECK(mapper.resume(name));
    step_("resume a temporary device");
    PAWL_TRY(const auto info, mapper.info(name));
    if (!info) return fail(Code::volume_failed, fmt::format("the device {} has gone", name));
    PAWL_TRY(const auto node, device_node(*info));
    return use(node);
  }();
  const auto removed = mapper.remove(name, busy_timeout_);
  step_("remove a temporary device");
  return used ? removed : used;
}

Result<std::optional<ThinFace>> ThinVolumes::look(const DeviceMapper& mapper, std::uint32_t id) const {
  ThinFace face;
  auto looked = with_device(mapper, id, kLabelRead, true, [&](const std::string& node) -> Result<void> {
    PAWL_TRY(face, read_face(node));
    return {};
  });
  if (looked) return face;
  if (looked.error().code() == Code::volume_missing) return std::nullopt;
  return fail(std::move(looked).error());
}

Result<std::string> ThinVolumes::activate(const DeviceMapper& mapper, const Volume& volume) const {
  PAWL_TRY(auto there, device(mapper, volume.id));
  // A device whose table is missing is what an interrupted call has left.
  if (there && there->info.live && there->info.suspended) PAWL_CHECK(mapper.resume(there->info.name));
  if (there && there->info.live) return named_node(there->info);
  if (there) PAWL_CHECK(mapper.remove(there->info.name, busy_timeout_));
  PAWL_TRY(const auto target, pool_.thin(mapper, volume.id, volume.bytes, false));
  auto created = mapper.create(volume.name, fmt::format("PAWL-{}-{}-{}", name_, volume.id, volume.marker));
  if (!created && created.error().code() == Code::volume_busy) {
    return fail(Code::volume_busy, fmt::format("volume {}: another device is called {}; remove or rename it",
                                               volume.id, volume.name));
  }
  PAWL_CHECK(std::move(created));
  step_("create the device");
  auto loaded = mapper.load(volume.name, target);
  if (!loaded) {
    PAWL_CHECK(mapper.remove(volume.name, busy_timeout_));
    return fail(std::move(loaded).error());
  }
  step_("load the device");
  PAWL_CHECK(mapper.resume(volume.name));
  step_("resume the device");
  PAWL_TRY(const auto info, mapper.info(volume.name));
  if (!info) return fail(Code::volume_failed, fmt::format("the device {} has gone", volume.name));
  return named_node(*info);
}

Result<void> ThinVolumes::deactivate(const DeviceMapper& mapper, std::uint32_t id) const {
  PAWL_TRY(const auto there, device(mapper, id));
  if (there) PAWL_CHECK(mapper.remove(there->info.name, busy_timeout_));
  step_("remove the device");
  return {};
}

Result<void> ThinVolumes::erase(const DeviceMapper& mapper, std::uint32_t id) const {
  auto erased = pool_.message(mapper, fmt::format("delete {}", id));
  step_("delete");
  if (!erased && erased.error().code() == Code::volume_missing) return {};
  return erased;
}

}  // namespace pawl::images::pools
