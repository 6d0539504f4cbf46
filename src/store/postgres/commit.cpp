// SPDX-License-Identifier: Apache-2.0
// The writer's other half: sending a batch, finding out what became of one whose answer was lost, and how a
// batch ends, well or badly.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "store/postgres/writer.hpp"

namespace pawl::postgres {
namespace {

/// Rows of heads written with one batch at least.
constexpr std::size_t kSlice = 512;

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
    "excluded.state, at = excluded.at, finished_seq = excluded.finished_seq, has_extra = excluded.has_extra, "
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

void Writer::queue_begin() {
  streaming_ = false;
  queued_rows_ = 0;
  queued_machines_ = 0;
  new_partitions_end_ = partitions_end_;
  db_.queue_kept("BEGIN ISOLATION LEVEL READ COMMITTED");
  db_.queue_kept(names_("SELECT {s}.pawl_fence($1)"), Params().int8(ownership_.epoch()));
}

void Writer::queue_machines() {
  for (; queued_machines_ < new_machines_.size(); ++queued_machines_) {
    const auto& name = new_machines_[queued_machines_];
    db_.queue(names_("INSERT INTO {s}.machines(number, name) VALUES($1, $2)"),
              Params().int4(machines_.at(name)).text(name));
  }
}

void Writer::queue_partitions() {
  while (new_partitions_end_ <= batch_last_) {
    const Seq from = std::max(new_partitions_end_, batch_first_);
    const Seq to = from + std::max<Seq>(options_.partition_entries, 1);
    const auto table = names_(fmt::format("{{s}}.log_p{}_{}", from, to));
    // Attaching a table that is there already keeps readers going; PARTITION OF would lock them out.
    db_.queue(names_(fmt::format("CREATE TABLE {} (LIKE {{s}}.log INCLUDING ALL)", table)));
    db_.queue(names_(fmt::format("ALTER TABLE {{s}}.log ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})",
                                 table, from, to)));
    new_partitions_end_ = to;
  }
}

void Writer::queue_log() {
  const auto insert = names_("INSERT INTO {s}.log SELECT * FROM unnest($1)");
  for (; queued_rows_ < full_.size(); ++queued_rows_)
    db_.queue_kept(insert, Params().borrow(log_array_, full_[queued_rows_].finish()));
}

void Writer::stream() {
  full_.push_back(std::exchange(log_, RowArray(log_type_)));
  // What application SQL says is attributed by its place in the queue, so nothing goes before it.
  if (ran_sql_) return;
  if (!std::exchange(transaction_open_, true)) queue_begin();
  queue_machines();
  queue_partitions();
  queue_log();
  db_.flush();
  streaming_ = true;
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

/// A head that was to be updated and is not there.
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

Result<void> Writer::send_batch() {
  if (!transaction_open_) queue_begin();
  queue_machines();
  queue_partitions();
  if (!log_.empty()) full_.push_back(std::exchange(log_, RowArray(log_type_)));
  queue_log();
  queue_slice(std::max(kSlice, heads_.batch_size()));
  queue_ephemerals();
  if (batch_last_ == 0) {
    db_.queue_kept(names_("INSERT INTO {s}.batches VALUES($1, $2)"),
                   Params().int8(batch_epoch_).int8(batch_));
  } else {
    db_.queue_kept("SELECT pg_notify($1, $2)",
                   Params().text(names_.channel()).text(fmt::format("entries {}", batch_last_)));
  }
  // Whatever the application's functions have set.
  if (ran_sql_) db_.queue(fmt::format("SET LOCAL synchronous_commit = '{}'", facts_.synchronous_commit));
  // Without a slice nothing is left to look at, so the commit travels along.
  const bool together = slice_ == 0;
  if (together) db_.queue_kept("COMMIT");
  PAWL_TRY(const auto results, db_.sync());
  transaction_open_ = !together;
  if (together) return {};
  PAWL_CHECK(check_slice(results));
  db_.queue_kept("COMMIT");
  PAWL_CHECK(db_.sync());
  return {};
}

Result<void> Writer::commit() {
  PAWL_CHECK(status_.writable());
  if (!in_batch_) return {};
  heads_.start_round(options_.flush_every, status_.last());
  if (auto done = commit_until_known(); !done) return fail(gave_up(std::move(done).error()));
  finish_batch();
  return {};
}

/// Sends the batch until it is durable, or certainly is not and cannot be.
Result<void> Writer::commit_until_known() {
  Backoff backoff(options_.patience);
  while (true) {
    auto done = send_batch();
    transaction_open_ = false;
    if (done && !db_.take_unreplicated()) return {};
    std::optional<Error> cause;
    if (!done) cause = done.error();
    if (done || db_.lost()) {
      PAWL_TRY(const bool durable, resolve());
      if (durable) return {};
      cause = Error(Code::rolled_back, "the connection was lost before the batch was committed");
    } else {
      db_.roll_back();
      if (cause->code() != Code::rolled_back && !db_.lost()) return fail(*std::move(cause));
    }
    // What application SQL has read may have changed; only its caller can decide to run it again.
    if (ran_sql_ || !backoff.again()) return fail(*std::move(cause));
  }
}

Result<void> Writer::reconnect() {
  Backoff backoff(options_.patience);
  while (true) {
    auto made = Connection::open(address_, {.patience = options_.patience});
    if (made) {
      PAWL_TRY(auto facts, server_facts(*made));
      if (facts.system != facts_.system || facts.timeline < facts_.timeline) {
        return fail(
            Code::store_diverged,
            fmt::format(
                "the server is on timeline {} of cluster {}, but timeline {} of cluster {} was seen before",
                facts.timeline, facts.system, facts_.timeline, facts_.system));
      }
      db_ = *std::move(made);
      facts_ = std::move(facts);
      return prepare_connection();
    }
    if (!backoff.again()) return fail(std::move(made).error());
  }
}

/// After a lost answer: raises the own epoch, which waits for or ends whatever the old connection had begun,
/// and then looks whether the batch is there. Returns whether it is.
Result<bool> Writer::resolve() {
  Backoff backoff(options_.patience);
  while (true) {
    auto done = db_.lost() ? reconnect() : Result<void>{};
    if (done) done = ownership_.claim_again(db_, facts_);
    const bool fenced = !done && done.error().code() == Code::store_fenced;
    if (done || fenced) {
      status_.set_epoch(ownership_.epoch());
      auto found = find_batch();
      if (found && fenced) {
        status_.poison(done.error());
        if (!*found) return fail(std::move(done).error());
      }
      if (found || !db_.lost()) return found;
      done = fail(std::move(found).error());
    }
    const auto code = done.error().code();
    const bool may_pass = code == Code::rolled_back || (db_.lost() && code == Code::store_io);
    if (!may_pass || !backoff.again()) return fail(std::move(done).error());
  }
}

Result<bool> Writer::find_batch() {
  const auto known = status_.info();
  if (batch_last_ != 0) {
    db_.queue(names_("SELECT 1 FROM {s}.log WHERE seq = $1 AND epoch = $2"),
              Params().int8(batch_first_).int8(batch_epoch_));
  } else {
    db_.queue(names_("SELECT 1 FROM {s}.batches WHERE batch = $1 AND epoch = $2"),
              Params().int8(batch_).int8(batch_epoch_));
  }
  db_.queue(names_("SELECT 1 FROM {s}.log WHERE seq = $1"), Params().int8(known.last));
  PAWL_TRY(const auto results, db_.sync());
  const bool kept = known.last <= known.horizon || results[1].count() == 1;
  if (kept) return results[0].count() == 1;
  return fail(Code::store_diverged,
              fmt::format("entry {} was acknowledged but the server does not have it: a failover has lost it",
                          known.last),
              {{"seq", std::to_string(known.last)}});
}

void Writer::finish_batch() {
  for (const auto& [id, request] : batch_requests_) requests_.add(id, request.entries.front().seq);
  heads_.advance(slice_);
  heads_.take_batch();
  new_machines_.clear();
  partitions_end_ = std::max(partitions_end_, new_partitions_end_);
  if (batch_last_ != 0) {
    status_.committed(batch_last_, batch_at_);
    keeper_.committed(batch_last_);
  }
  forget_batch();
}

void Writer::forget_batch() {
  for (const auto& name : new_machines_) machines_.erase(name);
  new_machines_.clear();
  heads_.drop_batch();
  log_.clear();
  full_.clear();
  batch_requests_.clear();
  ephemerals_.clear();
  slice_ = 0;
  new_partitions_end_ = 0;
  batch_first_ = 0;
  batch_last_ = 0;
  batch_at_ = {};
  ran_sql_ = false;
  transaction_open_ = false;
  in_batch_ = false;
  batch_thread_ = std::thread::id{};
}

void Writer::discard() {
  if (!in_batch_) return;
  db_.roll_back();
  forget_batch();
}

/// The open batch is gone; says what that means for the store.
Error Writer::gave_up(Error error) {
  db_.roll_back();
  forget_batch();
  const bool goes_on = error.code() == Code::disk_full || error.code() == Code::rolled_back;
  if (!goes_on || db_.lost()) status_.poison(error);
  return error;
}

/// The same where COMMIT had not been sent: a lost connection has taken the batch with it for certain, and a
/// new one is all that is needed.
Error Writer::lost(Error error) {
  if (db_.lost()) {
    if (auto found = resolve(); found) {
      error = Error(Code::rolled_back, "nothing of the batch was applied: " + error.message());
    } else {
      error = std::move(found).error();
    }
  }
  return gave_up(std::move(error));
}

Result<void> Writer::begin_between() {
  begin();
  transaction_open_ = true;
  queue_begin();
  db_.queue_kept(names_("INSERT INTO {s}.batches VALUES($1, $2)"), Params().int8(batch_epoch_).int8(batch_));
  heads_.start_full_round(status_.last());
  queue_slice(std::numeric_limits<std::size_t>::max());
  queue_meta(db_, names_, "flushed", status_.last());
  PAWL_TRY(const auto results, db_.sync());
  return check_slice(results);
}

Result<void> Writer::end_between() {
  if (ran_sql_) db_.queue(fmt::format("SET LOCAL synchronous_commit = '{}'", facts_.synchronous_commit));
  db_.queue_kept("COMMIT");
  auto done = db_.sync();
  if (done && !db_.take_unreplicated()) {
    finish_batch();
    return {};
  }
  if (!done && !db_.lost()) return fail(gave_up(std::move(done).error()));
  auto found = resolve();
  if (!found) return fail(gave_up(std::move(found).error()));
  if (!*found) {
    return fail(
        gave_up(Error(Code::rolled_back, "the connection was lost before the transaction was committed")));
  }
  finish_batch();
  return {};
}

void Writer::queue_numbers() {
  queue_meta(db_, names_, "high", next_ - 1);
  queue_meta(db_, names_, "last_at", status_.info().last_at.time_since_epoch().count());
}

Result<void> Writer::close() {
  if (!db_) return {};
  if (status_.poisoned()) return {};
  discard();
  auto done = between_batches([&]() -> Result<void> {
    queue_numbers();
    return {};
  });
  if (done && !db_.lost()) ownership_.release(db_);
  return done;
}

}  // namespace pawl::postgres
