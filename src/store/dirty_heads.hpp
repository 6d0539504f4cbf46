// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The heads that the table `heads` does not contain yet: changes of the open batch, changes of durable
/// batches, and the sorted round that is being written in slices.
///
///     heads.note(entry, seq, machine);              // an entry joined the open batch
///     heads.take_batch();                           // the batch became durable
///     heads.start_round(flush_every, newest);       // if enough changes have accumulated
///     for (const auto& head : heads.slice(512)) …   // written with this batch

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace pawl {

/// The fields of an instance's newest entry that its head row contains. Small, because there is one for each
/// instance that changed since the last round.
struct DirtyHead {
  InstanceId id;
  Seq seq = 0;
  Seq begins = 0;  ///< entry that began a generation since the last round and has its key; 0: the row exists
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Time at{};
  Time created_at{};  ///< when that generation began; valid if `begins` is set
  std::int32_t machine = 0;
  std::uint32_t state = 0;  ///< see `state_name`
  bool finished = false;
  bool has_extra = false;
};

/// Used by the owner's thread only.
class DirtyHeads {
 public:
  void note(const EntryView& entry, Seq seq, std::int64_t machine);
  /// Adds a durable entry whose head the last owner did not write.
  void note_found(DirtyHead head, std::string_view state);
  /// Removes the newest `count` entries: their transaction was refused.
  void take_back(std::size_t count) { batch_.resize(batch_.size() - count); }
  void drop_batch() { batch_.clear(); }
  /// The batch is durable: adds its changes to the next round.
  void take_batch();
  std::size_t batch_size() const { return batch_.size(); }

  /// Starts a round if none is in progress and `every` entries have come since the last one started. `newest`
  /// is the last durable entry: once the round is written, the table is up to date up to there.
  void start_round(std::int64_t every, Seq newest);
  /// Puts everything into one round, including the rest of the current one.
  void start_full_round(Seq newest);

  // The round. It may be read by another thread while entries are noted.

  /// The next rows of the round in order of ids, after the `skip` rows that are not durable yet; empty if no
  /// round is in progress.
  std::span<const DirtyHead> slice(std::size_t most, std::size_t skip = 0) const;
  /// Whether the round has no more than `count` rows left.
  bool ends_round(std::size_t count) const { return round_.size() - position_ <= count; }
  std::size_t round_size() const { return round_.size(); }
  Seq round_mark() const { return round_mark_; }
  const std::string& state_name(std::uint32_t state) const { return round_states_[state]; }

  /// The first `count` rows have become durable.
  void advance(std::size_t count);

 private:
  std::uint32_t state_number(std::string_view name);
  std::size_t probe(const InstanceId& id) const;
  void gather(const DirtyHead& head);
  void grow_index();
  void build_round(Seq newest);

  std::vector<DirtyHead> batch_;
  std::vector<DirtyHead> waiting_;  ///< one for each instance
  std::vector<std::uint32_t>
      index_;                  ///< of `waiting_` by id, with open addressing; 0: free, else position + 1
  std::int64_t gathered_ = 0;  ///< entries that these heads combine
  std::vector<DirtyHead> round_;
  std::size_t position_ = 0;
  Seq round_mark_ = 0;

  std::vector<std::string> states_;        ///< names of states, each stored once
  std::vector<std::string> round_states_;  ///< those of the round
  std::map<std::string, std::uint32_t, std::less<>> state_numbers_;
};

}  // namespace pawl
