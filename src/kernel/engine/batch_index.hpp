// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Finds an instance's newest draft in a batch. Open addressing over the positions of the drafts: needs no
/// allocation per draft.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kernel/engine/decide.hpp"
#include "pawl/assert.hpp"
#include "pawl/instance_id.hpp"

namespace pawl {

/// Not thread-safe. The drafts are those of one batch, in the order they were added.
class BatchIndex {
 public:
  /// Clears the index and reserves room for `expected` drafts.
  void reset(std::size_t expected) {
    std::size_t size = 16;
    while (size < 2 * expected) size *= 2;
    places_.assign(size, 0);
    used_ = 0;
  }

  std::optional<std::size_t> find(const std::vector<Draft>& drafts, const InstanceId& id) const {
    const auto place = places_.empty() ? 0 : places_[probe(drafts, id)];
    PAWL_ASSERT(place <= drafts.size(), "the index is that of these drafts", place, drafts.size());
    return place == 0 ? std::nullopt : std::optional<std::size_t>(place - 1);
  }

  /// Adds `drafts[place]` as the newest draft of its instance.
  void add(const std::vector<Draft>& drafts, std::size_t place) {
    if (2 * (used_ + 1) > places_.size()) {
      reset(2 * (used_ + 1));
      for (std::size_t older = 0; older < place; ++older) put(drafts, older);
    }
    put(drafts, place);
    PAWL_ASSERT(2 * used_ <= places_.size(), "a search in the index ends", used_, places_.size());
  }

 private:
  void put(const std::vector<Draft>& drafts, std::size_t place) {
    auto& found = places_[probe(drafts, drafts[place].id)];
    if (found == 0) ++used_;
    found = static_cast<std::uint32_t>(place + 1);
  }
  std::size_t probe(const std::vector<Draft>& drafts, const InstanceId& id) const {
    const auto mask = places_.size() - 1;
    auto at = std::hash<InstanceId>{}(id)&mask;
    while (places_[at] != 0 && drafts[places_[at] - 1].id != id) at = (at + 1) & mask;
    return at;
  }

  std::vector<std::uint32_t> places_;  // 0: free, else the place + 1
  std::size_t used_ = 0;
};

}  // namespace pawl
