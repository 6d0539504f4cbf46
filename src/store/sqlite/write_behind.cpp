// SPDX-License-Identifier: Apache-2.0
// The other half of the writer: writing heads later, and how a batch ends.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "store/sqlite/writer.hpp"

namespace pawl::sqlite {

Result<void> Writer::find_dirty_heads(Seq flushed) {
  PAWL_TRY(auto rows, db_.prepare("SELECT seq, id, kind, version, generation, at, machine, state, finished, "
                                  "extra IS NOT NULL FROM log WHERE seq > ?1 ORDER BY seq"));
  rows.bind(1, flushed);
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    DirtyHead head{.seq = rows.integer(0),
                   .begins = rows.integer(2) == std::to_underlying(EntryKind::created) ? rows.integer(0) : 0,
                   .version = rows.integer(3),
                   .generation = rows.integer(4),
                   .at = rows.time(5),
                   .created_at = rows.time(5),
                   .machine = static_cast<std::int32_t>(rows.integer(6)),
                   .finished = rows.integer(8) != 0,
                   .has_extra = rows.integer(9) != 0};
    PAWL_TRY(head.id, rows.id(1));
    heads_.note_found(head, rows.text(7));
  }
}

Result<void> Writer::write_head(const DirtyHead& head) {
  auto& statement = head.begins != 0 ? insert_head_ : update_head_;
  statement.bind_blob(1, head.id.bytes);
  statement.bind(2, std::int64_t{head.machine});
  statement.bind(3, head.generation);
  statement.bind(4, head.version);
  statement.bind(5, head.seq);
  statement.bind_text(6, heads_.state_name(head.state));
  statement.bind(7, head.at);
  statement.bind(8, std::int64_t{head.finished});
  statement.bind(9, std::int64_t{head.has_extra});
  if (head.begins != 0) {
    statement.bind(10, head.begins);
    statement.bind(11, head.created_at);
  }
  PAWL_CHECK(statement.run());
  if (sqlite3_changes64(db_.get()) != 1) {
    const auto id = head.id.to_string();
    return fail(Code::store_corrupt,
                fmt::format("entry {} continues instance {}, which has no head", head.seq, id),
                {{"id", id}, {"seq", std::to_string(head.seq)}});
  }
  return {};
}

/// Continues the round; also called in the middle of a batch and on a helper thread.
Result<void> Writer::write_slice(std::size_t most) {
  const auto rows = heads_.slice(most, slice_);
  if (rows.empty()) return {};
  for (const auto& head : rows) PAWL_CHECK(write_head(head));
  slice_ += rows.size();
  if (heads_.ends_round(slice_)) PAWL_CHECK(mark("flushed", heads_.round_mark()));
  return {};
}

/// Number of heads to write with so many entries. A round is spread evenly and ends shortly before the next.
std::size_t Writer::share_of(std::size_t entries) const {
  return heads_.round_size() * entries * 9 / (8 * static_cast<std::size_t>(flush_every()));
}

Result<void> Writer::write_all_heads() {
  heads_.start_full_round(status_.last());
  PAWL_CHECK(write_slice(std::numeric_limits<std::size_t>::max()));
  return mark("flushed", status_.last());
}

Result<void> Writer::rebuild_heads(std::span<const MissingHead> missing) {
  PAWL_CHECK(status_.writable());
  if (in_batch_) return fail(Code::invalid_argument, "a batch is open; commit or discard it first");
  // Not `between_batches`, which would fail on the missing heads.
  PAWL_CHECK(begin());
  const auto rebuild = [&]() -> Result<void> {
    PAWL_TRY(
        auto insert,
        db_.prepare("INSERT INTO heads(id, machine, key, partition, generation, version, seq, state, "
                    "created_at, at, finished, has_extra) SELECT l.id, l.machine, CASE WHEN b.seq IS NULL "
                    "THEN lower(hex(l.id)) ELSE coalesce(b.key, '') END, b.partition, l.generation, "
                    "l.version, l.seq, l.state, coalesce(b.at, l.at), l.at, l.finished, l.extra IS NOT "
                    "NULL FROM log l LEFT JOIN log b ON b.seq = ?2 AND b.id = l.id WHERE l.seq = ?1"));
    for (const auto& head : missing) {
      insert.bind(1, head.newest);
      insert.bind(2, head.begins);
      PAWL_CHECK(insert.run());
      if (sqlite3_changes64(db_.get()) == 1) continue;
      return fail(Code::store_corrupt, fmt::format("entry {}, from which a head is to be rebuilt, is not in "
                                                   "the log",
                                                   head.newest));
    }
    return {};
  };
  if (auto done = rebuild(); !done) return fail(lost(std::move(done).error()));
  return end_transaction();
}

Result<void> Writer::mark(std::string_view name, std::int64_t value) {
  update_meta_.bind_text(1, name);
  update_meta_.bind(2, value);
  return update_meta_.run();
}

Result<void> Writer::mark_numbers() {
  PAWL_CHECK(mark("high", next_ - 1));
  return mark("last_at", status_.info().last_at.time_since_epoch().count());
}

Result<void> Writer::end_transaction() {
  if (auto done = commit_.run(); !done) return fail(lost(std::move(done).error()));
  if (batch_last_ != 0) status_.committed(batch_last_, batch_at_);
  heads_.advance(slice_);
  heads_.take_batch();
  new_machines_.clear();
  forget_batch();
  // The batch is durable in any case; the next call finds a failure in the status.
  static_cast<void>(checkpointer_.bound(wal_pages_));
  return {};
}

void Writer::forget_batch() {
  for (const auto& name : new_machines_) machines_.erase(name);
  new_machines_.clear();
  last_number_ = 0;
  heads_.drop_batch();
  slice_ = 0;
  batch_last_ = 0;
  batch_at_ = {};
  in_batch_ = false;
  batch_thread_ = std::thread::id{};
}

void Writer::roll_back() {
  appender_.drop();
  // SQLite may have rolled back already. If this fails, nothing of the batch is durable either.
  if (db_.in_transaction()) sqlite3_step(rollback_.get());
  rollback_.reset();
  forget_batch();
}

void Writer::discard() {
  if (in_batch_) roll_back();
}

Error Writer::lost(Error error) {
  roll_back();
  const bool goes_on = error.code() == Code::disk_full && !db_.in_transaction();
  if (!goes_on) status_.poison(error);
  return error;
}

Result<void> Writer::close() {
  if (!db_) return {};
  discard();
  if (status_.poisoned()) {
    db_.leave_wal(true);
    return {};
  }
  return between_batches([&] { return mark_numbers(); });
}

}  // namespace pawl::sqlite
