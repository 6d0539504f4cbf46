// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Loads heads: combines the stored heads with the log after their mark. Every store reads both in its own
/// way; the rules for combining them are here.
///
///     for (entries after the mark, in order) replay.add(entry);
///     for (rows of the table of heads) { replay.update(head, machine); visit(head); }
///     PAWL_CHECK(replay.rest([&](StoredHead head, std::int64_t machine) { … visit(head); }));

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "store/store.hpp"

namespace pawl {

/// The fields of an entry that a head needs. Views are borrowed for the duration of the call.
struct ReplayEntry {
  Seq seq = 0;
  InstanceId id;
  std::int64_t machine = 0;  ///< its number
  EntryKind kind = EntryKind::fired;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Time at{};
  std::string_view state;
  std::string_view extra;
  std::string_view key;
  std::string_view partition;
  bool finished = false;
};

/// Used by one thread.
class Replay {
 public:
  /// Adds the next entry after the mark, in log order.
  void add(const ReplayEntry& entry);

  /// Updates a row of the table of heads. Returns whether the log has a newer entry; then `extra` is set,
  /// too. Otherwise `extra` is that of the row. Views stay valid until `done_with`.
  bool update(StoredHead& head, std::int64_t& machine);
  /// The head with this id has been visited.
  void done_with(const InstanceId& id) { newest_.erase(id); }

  /// Visits instances without a row. Error: `store_corrupt` for an entry that continues an instance without a
  /// head.
  Result<void> rest(const std::function<Result<void>(StoredHead head, std::int64_t machine)>& visit) const;

 private:
  struct Newest {
    Seq seq = 0;
    std::int64_t machine = 0;
    std::int64_t version = 0;
    std::int64_t generation = 0;
    Time at{};
    Time created_at{};
    std::string state;
    std::string extra;
    std::string key;
    std::string partition;
    bool finished = false;
    bool begins = false;
  };
  std::unordered_map<InstanceId, Newest> newest_;
};

}  // namespace pawl
