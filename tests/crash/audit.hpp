// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Compares, from outside and while no worker runs, what was acknowledged with what the store holds.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "pawl/error.hpp"
#include "store/store.hpp"
#include "tests/crash/load.hpp"

namespace pawl::crash {

struct Findings {
  std::int64_t lost = 0;     // acknowledged, but not there
  std::int64_t doubled = 0;  // there, or done, more than once
  std::vector<std::string> problems;
  bool sound() const { return problems.empty(); }
};

/// Reads the log once, part by part: each `check` goes on where the last one ended. A new audit reads it from
/// the beginning. Not thread-safe.
class Audit {
 public:
  /// `directory` has the file outside. `gaps`: numbers may be missing in the log, because the store has
  /// dropped batches or followed a failover.
  Audit(std::string directory, bool gaps) : directory_(std::move(directory)), gaps_(gaps) {}

  /// `where` is the store now, as the engine takes it. `complete`: nothing may be under way any more.
  Result<Findings> check(const std::string& where, const Load& load, bool complete);

 private:
  /// What the log says about one request.
  struct Traces {
    int increments = 0;
    int rung = 0;
    int noted = 0;
    int posted = 0;
    int withdrawn = 0;
    int deposited = 0;
    Also also = Also::nothing;
    Seq seq = 0;  // of the first entry
    std::int64_t version = 0;
  };
  struct Instance {
    std::string machine;
    std::string partition;
    Seq created = 0;
    std::int64_t version = 0;
    Seq seq = 0;
    std::int64_t sum = 0;  // counted by the audit
  };

  Result<void> read_log(Store& store);
  Result<void> take(const Entry& entry);
  Result<void> take_counter(const Entry& entry, Instance& instance);
  Result<void> take_account(const Entry& entry, Instance& instance);
  Result<void> read_notes();
  Result<void> compare_heads(Store& store);
  Result<void> compare_rows(Store& store, bool complete);
  void compare_answers(const Load& load);
  void compare_answer(const Load& load, const Answer& answer);
  void compare_banks();
  void compare_traces();
  void problem(std::string text);
  void lost(const std::string& text);
  void once(int count, Seq seq, const char* what, std::int64_t request);

  std::string directory_;
  bool gaps_;
  Seq last_ = 0;
  Time last_at_{};
  std::unordered_map<std::int64_t, Traces> traces_;
  std::map<InstanceId, Instance> instances_;
  std::map<std::string, InstanceId> keys_;
  std::int64_t increments_ = 0;
  std::int64_t increments_sum_ = 0;
  std::set<std::string> notes_;  // "request id attempt"
  std::size_t notes_read_ = 0;   // bytes
  std::size_t answers_read_ = 0;
  Findings findings_;
};

}  // namespace pawl::crash
