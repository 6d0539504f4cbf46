// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The heads that the table `heads` does not show yet: changes of the open batch, changes of durable batches,
/// and the sorted round that is being written a slice at a time.
///
///     heads.note(entry, seq, machine);              // an entry joined the open batch
///     heads.take_batch();                           // the batch became durable
///     heads.start_round(flush_every, newest);       // enough has come together?
///     for (const auto& head : heads.slice(512)) …   // written with this batch

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace pawl {

/// One instance's newest entry, as far as its head row shows it. Small: there is one for each instance that
/// changed since the last round.
struct DirtyHead {
  InstanceId id;
  Seq seq = 0;
  Seq begins = 0;  ///< where a generation began since the last round: its key is there; 0: the row exists
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Time at{};
  Time created_at{};  ///< when that generation began; counts where `begins` is set
  std::int32_t machine = 0;
  std::uint32_t state = 0;  ///< see `state_name`
  bool finished = false;
  bool has_extra = false;
};

/// Used by the owner's thread only.
class DirtyHeads {
 public:
  void note(const EntryView& entry, Seq seq, std::int64_t machine);
  /// A durable entry that the last owner did not write behind.
  void note_found(DirtyHead head, std::string_view state);
  /// Forgets the newest `count` notes: their transaction was refused.
  void take_back(std::size_t count) { batch_.resize(batch_.size() - count); }
  void drop_batch() { batch_.clear(); }
  /// The batch is durable: its changes join those waiting for the next round.
  void take_batch();
  std::size_t batch_size() const { return batch_.size(); }

  /// Starts a round where none is under way and `every` entries have come since the last one began. `newest`
  /// is the last durable entry: when the round has been written, the table is true up to there.
  void start_round(std::int64_t every, Seq newest);
  /// Puts everything into one round, also what is left of the present one.
  void start_full_round(Seq newest);

  // The round. It may be read by another thread while entries are noted.

  /// The next rows of the round, in the order of ids, behind those `skip` that are not durable yet; empty
  /// where no round is under way.
  std::span<const DirtyHead> slice(std::size_t most, std::size_t skip = 0) const;
  /// Whether the first `count` are all that is left of the round.
  bool ends_round(std::size_t count) const { return round_.size() - position_ <= count; }
  std::size_t round_size() const { return round_.size(); }
  Seq round_mark() const { return round_mark_; }
  const std::string& state_name(std::uint32_t state) const { return round_states_[state]; }

  /// So many have become durable.
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
      index_;                  ///< of these by their ids, with open addressing; 0: free, else place + 1
  std::int64_t gathered_ = 0;  ///< entries that these stand for
  std::vector<DirtyHead> round_;
  std::size_t position_ = 0;
  Seq round_mark_ = 0;

  std::vector<std::string> states_;        ///< few, so they are kept once
  std::vector<std::string> round_states_;  ///< those that the round has
  std::map<std::string, std::uint32_t, std::less<>> state_numbers_;
};

}  // namespace pawl
