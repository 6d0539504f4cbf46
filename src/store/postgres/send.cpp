// SPDX-License-Identifier: Apache-2.0
// The second part of the writer: how a batch gets into its transaction and is committed once.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "pawl/assert.hpp"
#include "store/postgres/writer.hpp"

namespace pawl::postgres {
namespace {

/// Minimum number of head rows written with one batch.
constexpr std::size_t kSlice = 512;
constexpr const char* kBeginBatch = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// The columns of the log.
constexpr auto kLogTypes =
    std::to_array<std::uint32_t>({kInt8, kInt8, kUuid, kInt4, kInt2, kInt8, kInt8, kInt8, kInt8, kText, kInt8,
                                  kBool, kText, kText, kText, kText, kText, kText, kUuid, kInt8, kInt4});

constexpr const char* kInsertHeads =
    "INSERT INTO {s}.heads(id, machine, key, partition, generation, version, seq, state, created_at, at, "
    "finished_seq, has_extra) SELECT u.id, u.machine, coalesce(l.key, ''), l.partition, u.generation, "
    "u.version, u.seq, "
    "u.state, u.created_at, u.at, CASE WHEN u.finished THEN u.seq END, u.has_extra FROM unnest($1) u JOIN "
    "{s}.log l ON "
    "l.seq = u.begins ON CONFLICT (id) DO UPDATE SET machine = excluded.machine, key = excluded.key, "
    "partition = "
    "excluded.partition, generation = excluded.generation, version = excluded.version, seq = excluded.seq, "
    "state = "
    "excluded.state, created_at = excluded.created_at, at = excluded.at, finished_seq = "
    "excluded.finished_seq, has_extra = excluded.has_extra, "
    "kind = NULL, "
    "prev = NULL, schema = NULL, event = NULL, payload = NULL, data = NULL, extra = NULL";
constexpr const char* kUpdateHeads =
    "UPDATE {s}.heads h SET machine = u.machine, generation = u.generation, version = u.version, seq = "
    "u.seq, state = "
    "u.state, at = u.at, finished_seq = CASE WHEN u.finished THEN u.seq END, has_extra = u.has_extra, kind = "
    "NULL, prev = "
    "NULL, schema = NULL, event = NULL, payload = NULL, data = NULL, extra = NULL FROM unnest($1) u WHERE "
    "h.id = u.id";

}  // namespace

/// Resets the state for a new, empty transaction.
void Writer::begin_sending() {
  transaction_open_ = true;
  queued_parts_ = 0;
  queued_machines_ = 0;
  new_partitions_end_ = partitions_end_;
}

void Writer::queue_begin() {
  begin_sending();
  db_.queue_kept(kBeginBatch);
  db_.queue_kept(names_("SELECT {s}.pawl_fence($1)"), Params().int8(ownership_.epoch()));
}

void Writer::queue_machines() {
  for (; queued_machines_ < new_machines_.size(); ++queued_machines_) {
    const auto& name = new_machines_[queued_machines_];
    db_.queue(names_("INSERT INTO {s}.machines(number, name) VALUES($1, $2)"),
              Params().int4(machines_.at(name)).text(name));
  }
}

/// Statements that create the partitions that the batch needs.
std::vector<std::string> Writer::new_partitions() {
  std::vector<std::string> statements;
  while (lacks_partition()) {
    const Seq from = std::max(new_partitions_end_, batch_first_);
    const Seq to = from + std::max<Seq>(options_.partition_entries, 1);
    const auto table = names_(fmt::format("{{s}}.log_p{}_{}", from, to));
    // Attaching an existing table does not block readers; PARTITION OF would.
    statements.push_back(names_(fmt::format("CREATE TABLE {} (LIKE {{s}}.log INCLUDING ALL)", table)));
    statements.push_back(names_(fmt::format(
        "ALTER TABLE {{s}}.log ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})", table, from, to)));
    new_partitions_end_ = to;
  }
  return statements;
}

void Writer::queue_log() {
  for (const auto& statement : new_partitions()) db_.queue(statement);
  if (queued_parts_ == full_.size()) return;
  RowArray rows(log_type_);
  for (; queued_parts_ < full_.size(); ++queued_parts_) rows.add(full_[queued_parts_], kLogTypes);
  inserted_ = static_cast<std::int64_t>(rows.size());
  inserted_at_ = db_.queued_results();
  db_.queue_kept(names_("INSERT INTO {s}.log SELECT * FROM unnest($1)"),
                 Params().borrow(log_array_, rows.finish()));
}

void Writer::stream() {
  full_.push_back(std::exchange(log_, {}));
  // Statements that wait for an answer go first, and partitions are created between COPYs; `commit` does
  // both.
  if (ran_sql_ || db_.queued() != 0) return;
  if (db_.copying() && lacks_partition()) return;
  if (!db_.copying()) start_copy(!mixed_ && !copy_left_);
  // A failure is reported when the COPY ends.
  if (db_.takes_rows()) static_cast<void>(copy_rows());
}

void Writer::start_copy(bool may_commit) {
  std::string script;
  copy_commits_ = may_commit && !transaction_open_ && only_entries();
  if (!transaction_open_) {
    begin_sending();
    script = names_(fmt::format("{}; SELECT {{s}}.pawl_fence({});", kBeginBatch, ownership_.epoch()));
  }
  for (const auto& statement : new_partitions()) script += statement + ";";
  script += names_("COPY {s}.log FROM STDIN (FORMAT binary)");
  // The first entry of the batch is enough to wake waiting readers.
  if (copy_commits_)
    script += "; " + names_.announcement(fmt::format("'entries {}'", batch_first_)) + "; COMMIT";
  copy_headed_ = false;
  copied_ = 0;
  db_.start_copy_in(script);
}

bool Writer::only_entries() const {
  return !ran_sql_ && new_machines_.empty() && ephemerals_.empty() && heads_.slice(1).empty();
}

/// Ends the COPY, so that the connection can send other statements of the batch.
Result<void> Writer::leave_copy() {
  if (!db_.copying()) return {};
  if (!copy_commits_) return end_copy();
  db_.roll_back();
  transaction_open_ = false;
  copy_left_ = true;
  return {};
}

/// Sends all collected entries if the server is ready for rows.
Result<void> Writer::copy_rows() {
  if (!std::exchange(copy_headed_, true)) PAWL_CHECK(db_.copy_in(kCopyHeader));
  if (lacks_partition()) return {};
  for (; queued_parts_ < full_.size(); ++queued_parts_) {
    PAWL_CHECK(db_.copy_in(full_[queued_parts_].bytes()));
    copied_ += static_cast<std::int64_t>(full_[queued_parts_].size());
  }
  return {};
}

/// The server reports another number of stored entries than were sent. The batch may be committed already,
/// but is never acknowledged.
Result<void> Writer::check_stored(std::int64_t sent, std::int64_t stored) {
  if (sent == stored) return {};
  return fail(
      Code::store_corrupt,
      fmt::format("PostgreSQL says it has stored {} entries of the log, but {} were sent; a trigger or "
                  "rule on the table 'log' must not exist",
                  stored, sent),
      {{"sent", std::to_string(sent)}, {"stored", std::to_string(stored)}});
}

Result<void> Writer::end_copy() {
  auto done = db_.wait_until_it_takes_rows();
  if (done) done = copy_rows();
  if (done) static_cast<void>(db_.copy_in(kCopyTrailer));
  PAWL_TRY(const auto stored, db_.end_copy_in());
  return check_stored(copied_, stored);
}

/// Sends everything that is not in the open transaction yet.
Result<void> Writer::copy_log() {
  if (lacks_partition() || (copy_commits_ && !only_entries())) PAWL_CHECK(leave_copy());
  if (!db_.copying()) {
    if (db_.queued() != 0) PAWL_CHECK(db_.sync());
    start_copy(true);
  }
  if (db_.wait_until_it_takes_rows() && copy_rows()) {
    PAWL_ASSERT(queued_parts_ == full_.size(), "the last COPY of a batch has all its entries", queued_parts_,
                full_.size());
  }
  return end_copy();
}

bool Writer::worth_a_copy() const {
  std::size_t rows = 0;
  std::size_t bytes = 0;
  for (const auto& part : std::span(full_).subspan(transaction_open_ ? queued_parts_ : 0)) {
    rows += part.size();
    bytes += part.bytes().size();
  }
  return rows >= kCopied || bytes >= kPartBytes;
}

void Writer::queue_slice(std::size_t most) {
  const auto rows = heads_.slice(most);
  slice_ = rows.size();
  slice_inserts_ = 0;
  slice_updates_ = 0;
  if (rows.empty()) return;
  RowArray inserts(head_type_);
  RowArray updates(head_type_);
  for (const auto& head : rows) {
    auto& array = head.begins != 0 ? inserts : updates;
    array.begin(11)
        .uuid(head.id.bytes)
        .int4(head.machine)
        .int8(head.generation)
        .int8(head.version)
        .int8(head.seq);
    array.text(heads_.state_name(head.state)).int8(head.at.time_since_epoch().count()).boolean(head.finished);
    array.boolean(head.has_extra).int8(head.begins).int8(head.created_at.time_since_epoch().count()).end();
  }
  slice_inserts_ = static_cast<std::int64_t>(inserts.size());
  slice_updates_ = static_cast<std::int64_t>(updates.size());
  if (!inserts.empty()) {
    slice_inserts_at_ = db_.queued_results();
    db_.queue_kept(names_(kInsertHeads), Params().borrow(head_array_, inserts.finish()));
  }
  if (!updates.empty()) {
    slice_updates_at_ = db_.queued_results();
    db_.queue_kept(names_(kUpdateHeads), Params().borrow(head_array_, updates.finish()));
  }
  if (heads_.ends_round(most)) queue_meta(db_, names_, "flushed", heads_.round_mark());
}

/// A head to be updated does not exist.
Result<void> Writer::check_slice(const std::vector<Rows>& results) const {
  const bool inserted = slice_inserts_ == 0 || results[slice_inserts_at_].affected() == slice_inserts_;
  const bool updated = slice_updates_ == 0 || results[slice_updates_at_].affected() == slice_updates_;
  if (inserted && updated) return {};
  return fail(Code::store_corrupt, "an entry of the log continues an instance which has no head");
}

void Writer::queue_ephemerals() {
  RowArray puts(ephemeral_type_);
  RowArray erased(ephemeral_type_);
  for (const auto& [name, value] : ephemerals_) {
    auto& array = value.value.empty() ? erased : puts;
    array.begin(4).uuid(value.id.bytes).text(value.name).text(value.value);
    array.int8(value.at.time_since_epoch().count()).end();
  }
  if (!puts.empty()) {
    db_.queue_kept(
        names_("INSERT INTO {s}.ephemeral SELECT * FROM unnest($1) ON CONFLICT (id, name) DO UPDATE SET "
               "value = excluded.value, at = excluded.at"),
        Params().borrow(ephemeral_array_, puts.finish()));
  }
  if (!erased.empty()) {
    db_.queue_kept(
        names_("DELETE FROM {s}.ephemeral e USING unnest($1) u WHERE e.id = u.id AND e.name = u.name"),
        Params().borrow(ephemeral_array_, erased.finish()));
  }
}

/// Stores a mark of a batch without entries, by which `find_batch` recognizes it. Only the newest mark is
/// needed.
void Writer::queue_batch_number() {
  db_.queue_kept(names_("DELETE FROM {s}.batches WHERE (epoch, batch) < ($1, $2)"),
                 Params().int8(batch_epoch_).int8(batch_));
  db_.queue_kept(names_("INSERT INTO {s}.batches VALUES($1, $2)"), Params().int8(batch_epoch_).int8(batch_));
}

Result<void> Writer::send_batch() {
  if (!log_.empty()) full_.push_back(std::exchange(log_, {}));
  if (db_.copying() || worth_a_copy()) {
    PAWL_CHECK(copy_log());
    if (copy_commits_) return {};
  }
  if (!transaction_open_) queue_begin();
  queue_machines();
  inserted_ = 0;
  queue_log();
  queue_slice(std::max(kSlice, heads_.batch_size()));
  queue_ephemerals();
  if (batch_last_ == 0) {
    queue_batch_number();
  } else {
    db_.queue_kept(names_.announcement("$1"), Params().text(fmt::format("entries {}", batch_last_)));
  }
  // The application's functions may have changed it.
  if (ran_sql_) db_.queue(fmt::format("SET LOCAL synchronous_commit = '{}'", facts_.synchronous_commit));
  // Without a slice no result has to be checked before COMMIT, so it is sent in the same round trip.
  const bool together = slice_ == 0;
  if (together) db_.queue_kept("COMMIT");
  PAWL_TRY(const auto results, db_.sync());
  transaction_open_ = !together;
  if (inserted_ != 0) PAWL_CHECK(check_stored(inserted_, results[inserted_at_].affected()));
  if (together) return {};
  PAWL_CHECK(check_slice(results));
  db_.queue_kept("COMMIT");
  PAWL_CHECK(db_.sync());
  return {};
}

}  // namespace pawl::postgres
