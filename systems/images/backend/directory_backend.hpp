// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The back ends whose volumes lie in directories: <volumes>/<id>/ with volume.json and what the volume is.
///
/// A volume is made in <id>.making and renamed when it is complete and durable, and it is renamed to
/// <id>.removing before it is deleted. So <id> is always complete, and what has another name is what
/// an interrupted call has left: `list` reports it, the next call on this id clears it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "images/backend/backend.hpp"
#include "images/backend/steps.hpp"
#include "images/backend/volume.hpp"

namespace pawl::images::pools {

/// The content of volume.json.
struct VolumeRecord {
  std::uint32_t id = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::string marker;
  bool active = false;  ///< of kinds where the kernel does not know it
  bool mounted = false;
  WriteFailure write_failure = WriteFailure::none;
};

Result<void> write_record(const std::string& place, const VolumeRecord& record);
/// Nullopt if it is absent or not readable as a record.
Result<std::optional<VolumeRecord>> read_record(const std::string& place);

/// How the volumes of one kind are stored. `place` is the directory of one volume.
class Content {
 public:
  struct State {
    bool active = false;
    bool mounted = false;
    std::string path{};
  };

  Content() = default;
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
  virtual ~Content() = default;

  virtual std::string_view name() const = 0;
  virtual Result<void> attach() = 0;
  virtual Result<void> detach() = 0;
  /// Checks that the pool is attached. Error: `backend_unavailable`.
  virtual Result<void> check_attached() = 0;
  virtual Result<PoolUsage> pool() = 0;
  virtual Result<void> extend(std::uint64_t bytes) = 0;
  virtual std::string volumes() const = 0;

  virtual Result<void> make(const std::string& place, const Volume& volume) = 0;
  virtual Result<void> copy(const std::string& from, const std::string& place, const Volume& copy) = 0;
  /// Unmounts and deactivates it before it is erased.
  virtual Result<void> release(const std::string& place, const VolumeRecord& record) {
    PAWL_CHECK(unmount(place, record));
    return deactivate(place, record);
  }
  /// Removes the directory `place` and everything in it.
  virtual Result<void> erase(const std::string& place) = 0;

  virtual Result<State> state(const std::string& place, const VolumeRecord& record) = 0;
  virtual Result<std::string> activate(const std::string& place, const VolumeRecord& record) = 0;
  virtual Result<void> deactivate(const std::string& place, const VolumeRecord& record) = 0;
  virtual Result<std::string> mount(const std::string& place, const VolumeRecord& record) = 0;
  /// Makes durable what was written. Error: `pool_full` and others where that failed.
  virtual Result<void> flush(const std::string& place, const VolumeRecord& record) = 0;
  virtual Result<void> unmount(const std::string& place, const VolumeRecord& record) = 0;
  virtual Result<VolumeUsage> usage(const std::string& place, const VolumeRecord& record) = 0;
};

/// Thread-safe.
class DirectoryBackend final : public Backend {
 public:
  DirectoryBackend(std::unique_ptr<Content> content, Logger log, Step step)
      : content_(std::move(content)), log_(std::move(log)), step_(std::move(step)) {}

  std::string_view name() const override { return content_->name(); }
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
  enum class Room : std::uint8_t { taken, clear };

  std::string place(std::uint32_t id, std::string_view suffix = "") const;
  Result<VolumeRecord> whole(const Volume& volume);
  Result<Room> make_room(const Volume& volume);
  template <class Fill>
  Result<void> make(const Volume& volume, Fill fill);
  Result<void> take_apart(std::uint32_t id);
  Result<FoundVolume> found(const std::string& name, std::uint32_t id);

  std::unique_ptr<Content> content_;
  Logger log_;
  Step step_;
  std::mutex pool_;  ///< for attach, detach and extend
  VolumeLocks locks_;
};

}  // namespace pawl::images::pools
