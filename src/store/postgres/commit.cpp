// SPDX-License-Identifier: Apache-2.0
// The third part of the writer: sending a batch until it is durable, resolving a batch whose answer was lost,
// and how a batch ends.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "store/postgres/backoff.hpp"
#include "store/postgres/writer.hpp"

namespace pawl::postgres {
namespace {

/// A key that was removed with its entry is lost; the id replaces it.
constexpr const char* kRebuildHead =
    "INSERT INTO {s}.heads(id, machine, key, partition, generation, version, seq, state, created_at, at, "
    "finished_seq, has_extra) SELECT l.id, l.machine, CASE WHEN b.seq IS NULL THEN replace(l.id::text, '-', "
    "'') ELSE coalesce(b.key, '') END, b.partition, l.generation, l.version, l.seq, l.state, coalesce(b.at, "
    "l.at), l.at, CASE WHEN l.finished THEN l.seq END, l.extra IS NOT NULL FROM {s}.log l LEFT JOIN {s}.log "
    "b "
    "ON b.seq = $2 AND b.id = l.id WHERE l.seq = $1";

}  // namespace

Result<void> Writer::commit() {
  PAWL_CHECK(status_.writable());
  if (!in_batch_) return {};
  if (auto done = commit_until_known(); !done) return fail(drop_batch(std::move(done).error()));
  finish_batch();
  return {};
}

/// Sends the batch until it is durable, or certainly is not and cannot become durable.
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
    // Rows that application SQL has read may have changed; only the caller can decide to run it again.
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

/// After a lost answer: raises this owner's epoch, which waits for the transaction of the old connection or
/// ends it, then checks whether the batch is durable and returns that.
Result<bool> Writer::resolve() {
  Backoff backoff(options_.patience);
  while (true) {
    auto done = db_.lost() ? reconnect() : Result<void>{};
    if (done) done = ownership_.reclaim(db_, facts_);
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
  mixed_ = copy_left_ || !only_entries();
  heads_.advance(slice_);
  heads_.take_batch();
  new_machines_.clear();
  partitions_end_ = std::max(partitions_end_, new_partitions_end_);
  if (batch_last_ != 0) {
    status_.committed(batch_last_, batch_at_);
    listener_.committed(batch_last_);
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
  copy_left_ = false;
  transaction_open_ = false;
  in_batch_ = false;
  batch_thread_ = std::thread::id{};
}

void Writer::discard() {
  if (!in_batch_) return;
  db_.roll_back();
  forget_batch();
}

/// Drops the open batch after an error; poisons the store if the error requires it.
Error Writer::drop_batch(Error error) {
  db_.roll_back();
  forget_batch();
  const bool goes_on = error.code() == Code::disk_full || error.code() == Code::rolled_back;
  if (!goes_on || db_.lost()) status_.poison(error);
  return error;
}

/// Drops the open batch if COMMIT was not sent: after a lost connection the batch is certainly not durable,
/// and a new connection suffices.
Error Writer::lost(Error error) {
  if (db_.lost()) {
    if (auto found = resolve(); found) {
      error = Error(Code::rolled_back, "nothing of the batch was applied: " + error.message());
    } else {
      error = std::move(found).error();
    }
  }
  return drop_batch(std::move(error));
}

Result<void> Writer::begin_between() {
  begin();
  queue_begin();
  queue_batch_number();
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
  if (!done && !db_.lost()) return fail(drop_batch(std::move(done).error()));
  auto found = resolve();
  if (!found) return fail(drop_batch(std::move(found).error()));
  if (!*found) {
    return fail(
        drop_batch(Error(Code::rolled_back, "the connection was lost before the transaction was committed")));
  }
  finish_batch();
  return {};
}

Result<void> Writer::rebuild_heads(std::span<const MissingHead> missing) {
  PAWL_CHECK(status_.writable());
  if (in_batch_) return fail(Code::invalid_argument, "a batch is open; commit or discard it first");
  // Not `between_batches`, which would fail on the missing heads.
  begin();
  queue_begin();
  queue_batch_number();
  const auto first = db_.queued_results();
  for (const auto& head : missing)
    db_.queue_kept(names_(kRebuildHead), Params().int8(head.newest).int8(head.begins));
  auto results = db_.sync();
  if (!results) return fail(lost(std::move(results).error()));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if ((*results)[first + i].affected() == 1) continue;
    return fail(lost(Error(
        Code::store_corrupt,
        fmt::format("entry {}, from which a head is to be rebuilt, is not in the log", missing[i].newest))));
  }
  return end_between();
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
