// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The heads that the table `heads` does not show yet: changes of the open batch, changes of durable batches, and
/// the sorted round that is being written a slice at a time.
///
///     heads.note(entry, seq, machine);          // an entry joined the open batch
///     heads.take_batch();                       // the batch became durable
///     if (heads.due(flush_every)) …             // time to write them behind

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/store.hpp"

namespace pawl::sqlite {

/// One instance's newest entry, as far as its head row shows it.
struct DirtyHead {
  Seq seq = 0;
  std::int64_t machine = 0;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Time at{};
  Time created_at{};
  std::string state;
  std::string key;        ///< set where a generation began since the last round
  std::string partition;  ///< likewise
  bool begins = false;    ///< the whole row is written, key included
  bool finished = false;
  bool has_extra = false;
};

/// Used by the owner's thread only.
class DirtyHeads {
 public:
  using Row = std::pair<InstanceId, DirtyHead>;

  void note(const EntryView& entry, Seq seq, std::int64_t machine);
  /// Forgets the newest `count` notes: their transaction was refused.
  void take_back(std::size_t count) { batch_.resize(batch_.size() - count); }
  void drop_batch() { batch_.clear(); }
  /// The batch is durable: its changes join those waiting for the next round.
  void take_batch();

  std::size_t batch_size() const { return batch_.size(); }

  /// Starts a round where none is under way and `every` entries have come since the last one began. `newest` is
  /// the last durable entry: when the round has been written, the table is true up to there.
  void start_round(std::int64_t every, Seq newest);
  /// Puts everything into one round, also what is left of the present one.
  void start_full_round(Seq newest);
  /// The next rows of the round, in the order of ids; empty where no round is under way.
  std::span<const Row> slice(std::size_t most) const;
  /// Whether `slice(most)` is the last of its round.
  bool ends_round(std::size_t most) const { return position_ + most >= round_.size(); }
  Seq round_mark() const { return round_mark_; }
  /// The slice has become durable.
  void advance(std::size_t count);

 private:
  void wait(const InstanceId& id, DirtyHead head);
  void build_round(Seq newest);

  std::vector<Row> batch_;
  std::unordered_map<InstanceId, DirtyHead> waiting_;
  std::int64_t since_round_ = 0;
  std::vector<Row> round_;
  std::size_t position_ = 0;
  Seq round_mark_ = 0;
};

}  // namespace pawl::sqlite
