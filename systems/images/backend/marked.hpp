// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "images/backend/directory_backend.hpp"
#include "images/backend/os.hpp"

namespace pawl::images::pools {

/// Volumes that are directories named "tree": nothing in the kernel says whether one is in use, so
/// volume.json does.
class MarkedContent : public Content {
 public:
  explicit MarkedContent(Step step) : step_(std::move(step)) {}

  Result<State> state(const std::string& place, const VolumeRecord& record) override {
    State state{.active = record.active, .mounted = record.mounted};
    if (state.active) state.path = place + "/tree";
    return state;
  }
  Result<std::string> activate(const std::string& place, const VolumeRecord& record) override {
    return mark(place, record, true, record.mounted);
  }
  Result<void> deactivate(const std::string& place, const VolumeRecord& record) override {
    PAWL_CHECK(mark(place, record, false, false));
    return {};
  }
  Result<std::string> mount(const std::string& place, const VolumeRecord& record) override {
    return mark(place, record, true, true);
  }
  Result<void> flush(const std::string& place, const VolumeRecord& record) override {
    if (!record.mounted) return {};
    return sync_file_system(place + "/tree");
  }
  Result<void> unmount(const std::string& place, const VolumeRecord& record) override {
    PAWL_CHECK(mark(place, record, record.active, false));
    return {};
  }
  /// The marks go with the volume. Writing them needs room, and it may be removed because there is none.
  Result<void> release(const std::string& /*place*/, const VolumeRecord& /*record*/) override { return {}; }

 protected:
  void step(std::string_view name) const { step_(name); }

 private:
  Result<std::string> mark(const std::string& place, VolumeRecord record, bool active, bool mounted) const {
    if (record.active != active || record.mounted != mounted) {
      record.active = active;
      record.mounted = mounted;
      PAWL_CHECK(write_record(place, record));
      step_("mark");
    }
    return place + "/tree";
  }

  Step step_;
};

}  // namespace pawl::images::pools
