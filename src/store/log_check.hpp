// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The integrity check that every store shares: the log by itself, then the heads against the log.
///
///     LogCheck check(horizon, flushed);
///     for (entries, in order) check.entry(…);
///     for (rows of the table of heads) check.head(…);
///     return check.finish();

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "store/store.hpp"

namespace pawl {

/// The fields of an entry that the check uses.
struct CheckedEntry {
  Seq seq = 0;
  InstanceId id;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Seq prev = 0;
  std::string_view state;
  bool finished = false;
  bool created = false;
  bool has_extra = false;
  std::int64_t members = 0;  ///< number of entries of its request; 0 without a request
  bool machine_known = true;
  Time at{};
};

/// The fields of a head that the check uses.
struct CheckedHead {
  InstanceId id;
  Seq seq = 0;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  std::string_view state;
  bool finished = false;
  bool carries = false;  ///< the head contains its entry
  bool machine_known = true;
};

/// The sentence in `StoreRepair::repaired` for a rebuilt head.
std::string repaired_sentence(const MissingHead& head);

/// Used by one thread.
class LogCheck {
 public:
  LogCheck(Seq horizon, Seq flushed) : horizon_(horizon), flushed_(flushed), before_(horizon) {}

  template <class... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (result_.problems.size() < kProblems) {
      result_.problems.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }
  }
  bool sound() const { return result_.problems.empty(); }

  void entry(const CheckedEntry& entry);
  void head(const CheckedHead& head);
  StoreCheck finish();

 private:
  /// The check reports at most so many problems.
  static constexpr std::size_t kProblems = 100;

  /// The newest entry of an instance in the log.
  struct Newest {
    Seq seq = 0;
    std::int64_t version = 0;
    std::int64_t generation = 0;
    std::string state;
    Seq begins = 0;  ///< where the newest generation began; 0: below the horizon
    bool finished = false;
    bool has_extra = false;
    bool has_head = false;
  };

  void link(const CheckedEntry& entry);
  void missing_head(const InstanceId& id, const Newest& newest);

  Seq horizon_;
  Seq flushed_;
  Seq before_;
  Seq request_ends_ = 0;
  Time at_{};
  StoreCheck result_;
  std::unordered_map<InstanceId, Newest> newest_;
};

}  // namespace pawl
