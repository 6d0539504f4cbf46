// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::sqlite {
namespace {

/// Minimum number of head rows written with one batch, so that small batches do not rewrite the same pages.
constexpr std::size_t kSlice = 4;

/// Parameters of the append, in the order of the table's columns.
enum Column : int {
  kSeq = 1,
  kId,
  kMachine,
  kKind,
  kVersion,
  kGeneration,
  kPrev,
  kAt,
  kState,
  kSchema,
  kFinished,
  kEvent,
  kPayload,
  kData,
  kExtra,
  kKey,
  kPartition,
  kRequest,
  kContent,
  kMembers,
};

}  // namespace

Result<void> Writer::open(Database db, Seq next, Seq flushed) {
  db_ = std::move(db);
  next_ = next;
  application_.attach(db_);
  PAWL_CHECK(appender_.open(db_, [this](std::size_t entries) { return write_slice(share_of(entries)); }));
  sqlite3_wal_hook(
      db_.get(),
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Writer*>(self)->wal_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  PAWL_CHECK(prepare());
  PAWL_CHECK(find_machines());
  return find_dirty_heads(flushed);
}

Result<void> Writer::find_machines() {
  PAWL_TRY(auto rows, db_.prepare("SELECT number, name FROM machines"));
  while (true) {
    PAWL_TRY(const bool more, rows.row());
    if (!more) return {};
    machines_.emplace(rows.text(1), rows.integer(0));
  }
}

Result<void> Writer::prepare() {
  const auto all = std::to_array<std::pair<Statement*, const char*>>({
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&rollback_, "ROLLBACK"},
      {&savepoint_, "SAVEPOINT application"},
      {&release_, "RELEASE application"},
      {&rollback_to_, "ROLLBACK TO application"},
      {&insert_,
       "INSERT INTO log VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20)"},
      {&insert_head_,
       "INSERT OR REPLACE INTO heads(id, machine, generation, version, seq, state, at, finished, has_extra, "
       "key, partition, created_at) SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9, coalesce(key, ''), partition, ?11 "
       "FROM log WHERE seq = ?10"},
      {&update_head_,
       "UPDATE heads SET machine=?2, generation=?3, version=?4, seq=?5, state=?6, at=?7, finished=?8, "
       "has_extra=?9, "
       "kind=NULL, prev=NULL, schema=NULL, event=NULL, payload=NULL, data=NULL, extra=NULL WHERE id=?1"},
      {&insert_machine_, "INSERT INTO machines(name) VALUES(?1)"},
      {&update_meta_, "UPDATE pawl_meta SET value=?2 WHERE name=?1"},
      {&put_, "INSERT OR REPLACE INTO ephemeral(id, name, value, at) VALUES(?1,?2,?3,?4)"},
      {&erase_, "DELETE FROM ephemeral WHERE id=?1 AND name=?2"},
  });
  for (const auto& [statement, sql] : all) {
    PAWL_TRY(*statement, db_.prepare(sql));
  }
  return {};
}

Result<void> Writer::begin() {
  if (in_batch_) return {};
  if (auto begun = begin_.run(); !begun) {
    // Another program that writes will finish; any other error is a failing disk.
    if (begun.error().code() != Code::rolled_back) return fail(lost(std::move(begun).error()));
    return fail(
        Code::rolled_back,
        fmt::format("another program has been writing '{}' for longer than {}; nothing was written. End "
                    "its transaction, or stop it",
                    options_.path, to_string(options_.lock_wait)),
        {{"path", options_.path}, {"waited", to_string(options_.lock_wait)}});
  }
  in_batch_ = true;
  batch_thread_ = std::this_thread::get_id();
  return {};
}

Result<void> Writer::check_limits(const Write& write) const {
  return check_write(write, options_.entry_bytes);
}

Result<Seq> Writer::apply(const Write& write) {
  PAWL_CHECK(status_.writable());
  PAWL_CHECK(check_limits(write));
  PAWL_CHECK(begin());
  // Numbers for machines come first: they remain if the rest is refused, which is harmless.
  for (const auto& entry : write.entries) {
    if (auto number = machine_number(entry.machine); !number) return fail(lost(std::move(number).error()));
  }
  if (write.sql.empty()) return append(write);

  // The application's statements may read the log.
  if (auto done = appender_.finish(); !done) return fail(lost(std::move(done).error()));
  if (auto done = savepoint_.run(); !done) return fail(lost(std::move(done).error()));
  Result<Seq> result = Seq{0};
  for (const auto& sql : write.sql) {
    if (auto done = application_.run(sql, Allow::write); !done) {
      result = fail(std::move(done).error());
      break;
    }
  }
  const bool ran = result.has_value();
  if (ran) result = append(write);
  if (!in_batch_) return result;  // the batch is lost already
  if (!result) {
    const auto code = result.error().code();
    const bool refusal =
        !ran ? code == Code::sql_refused || code == Code::sql_failed || code == Code::row_expectation_failed
             : true;
    if (!refusal || !db_.in_transaction()) return fail(lost(std::move(result).error()));
    if (auto done = rollback_to_.run(); !done) return fail(lost(std::move(done).error()));
  }
  if (auto done = release_.run(); !done) return fail(lost(std::move(done).error()));
  return result;
}

/// Assigns numbers to the entries. They are written later, in bulk; only a request id has to be compared with
/// the others now.
Result<Seq> Writer::append(const Write& write) {
  if (write.request) return append_tagged(write);
  const Seq first = next_;
  for (const auto& entry : write.entries) {
    PAWL_TRY(const auto machine, machine_number(entry.machine));
    appender_.add(entry, next_, machine);
    if (entry.version == 1) ++rows_;
    heads_.note(entry, next_, machine);
    batch_at_ = std::max(batch_at_, entry.at);
    ++next_;
  }
  if (next_ == first) return Seq{0};
  batch_last_ = next_ - 1;
  if (appender_.full()) {
    if (auto done = appender_.finish(); !done) return fail(lost(std::move(done).error()));
  }
  return first;
}

Result<Seq> Writer::append_tagged(const Write& write) {
  if (auto done = appender_.finish(); !done) return fail(lost(std::move(done).error()));
  const Seq first = next_;
  std::size_t count = 0;
  for (const auto& entry : write.entries) {
    PAWL_TRY(const auto machine, machine_number(entry.machine));
    const Seq seq = first + static_cast<Seq>(count);
    bind_entry(entry, seq, machine);
    bind_request(write, count == 0);
    const int code = insert_.step();
    if (code != SQLITE_DONE) {
      auto error = db_.error(code, "appending to the log");
      insert_.reset();
      heads_.take_back(count);
      // Only the request id can conflict. It is part of the first entry, so nothing was appended yet.
      if (code == SQLITE_CONSTRAINT_UNIQUE && count == 0) {
        return fail(Code::request_id_reused, "a transaction with this request id was applied before");
      }
      return fail(lost(std::move(error)));
    }
    insert_.reset();
    heads_.note(entry, seq, machine);
    batch_at_ = std::max(batch_at_, entry.at);
    ++count;
  }
  if (count == 0) return Seq{0};
  next_ = first + static_cast<Seq>(count);
  batch_last_ = next_ - 1;
  return first;
}

void Writer::bind_sparse(int index, std::string_view text) {
  // Parameters keep their values across a reset; most of these are usually NULL.
  auto& bound = bound_.at(static_cast<std::size_t>(index));
  if (!text.empty()) {
    insert_.bind_text(index, text);
  } else if (bound) {
    insert_.bind_null(index);
  }
  bound = !text.empty();
}

void Writer::bind_entry(const EntryView& entry, Seq seq, std::int64_t machine) {
  insert_.bind(kSeq, seq);
  insert_.bind_blob(kId, entry.id.bytes);
  insert_.bind(kMachine, machine);
  insert_.bind(kKind, std::int64_t{std::to_underlying(entry.kind)});
  insert_.bind(kVersion, entry.version);
  insert_.bind(kGeneration, entry.generation);
  insert_.bind(kPrev, entry.prev);
  insert_.bind(kAt, entry.at);
  insert_.bind_text(kState, entry.state);
  insert_.bind(kSchema, entry.schema);
  insert_.bind(kFinished, std::int64_t{entry.finished});
  bind_sparse(kEvent, entry.event);
  bind_sparse(kPayload, entry.payload);
  bind_sparse(kData, entry.data);
  bind_sparse(kExtra, entry.extra);
  bind_sparse(kKey, entry.key);
  bind_sparse(kPartition, entry.partition);
}

void Writer::bind_request(const Write& write, bool first) {
  auto& bound = bound_.at(kRequest);
  const bool wanted = first && write.request.has_value();
  if (wanted) {
    insert_.bind_blob(kRequest, write.request->id);
    insert_.bind(kContent, write.request->content);
    insert_.bind(kMembers, static_cast<std::int64_t>(write.entries.size()));
  } else if (bound) {
    for (const int index : {kRequest, kContent, kMembers}) insert_.bind_null(index);
  }
  bound = wanted;
}

Result<std::int64_t> Writer::machine_number(std::string_view name) {
  if (name == last_machine_ && last_number_ != 0) return last_number_;
  auto found = machines_.find(name);
  if (found == machines_.end()) {
    PAWL_CHECK(appender_.finish());
    insert_machine_.bind_text(1, name);
    PAWL_CHECK(insert_machine_.run());
    found = machines_.emplace(name, sqlite3_last_insert_rowid(db_.get())).first;
    new_machines_.emplace_back(name);
  }
  last_machine_ = name;
  last_number_ = found->second;
  return last_number_;
}

Result<void> Writer::put(std::span<const Ephemeral> values) {
  PAWL_CHECK(status_.writable());
  if (values.empty()) return {};
  PAWL_CHECK(begin());
  if (auto done = appender_.finish(); !done) return fail(lost(std::move(done).error()));
  for (const auto& value : values) {
    auto& statement = value.value.empty() ? erase_ : put_;
    statement.bind_blob(1, value.id.bytes);
    statement.bind_text(2, value.name);
    if (!value.value.empty()) {
      statement.bind_text(3, value.value);
      statement.bind(4, value.at);
    }
    if (auto done = statement.run(); !done) return fail(lost(std::move(done).error()));
  }
  return {};
}

Result<void> Writer::commit() {
  PAWL_CHECK(status_.writable());
  if (!in_batch_) return {};
  if (auto done = appender_.finish(); !done) return fail(lost(std::move(done).error()));
  heads_.start_round(flush_every(), status_.last());
  const auto share = std::max(kSlice, share_of(heads_.batch_size()));
  if (auto done = write_slice(share - std::min(share, slice_)); !done) {
    return fail(lost(std::move(done).error()));
  }
  return end_transaction();
}

/// In a large table the changed rows are far apart; the more of them are written together, the fewer pages
/// each of them costs.
std::int64_t Writer::flush_every() const {
  constexpr std::int64_t kManyRows = 4 * 65536;
  const auto rows = rows_.load();
  return rows > kManyRows ? std::max(options_.flush_every, rows / 4) : options_.flush_every;
}

Result<void> Writer::execute(std::span<const Sql> statements) {
  PAWL_CHECK(status_.writable());
  if (in_batch_) return fail(Code::invalid_argument, "a batch is open; commit or discard it first");
  PAWL_CHECK(begin());
  for (const auto& sql : statements) {
    auto done = application_.run(sql, Allow::define);
    if (done) continue;
    const auto code = done.error().code();
    if (code == Code::store_io || code == Code::store_corrupt) return fail(lost(std::move(done).error()));
    discard();
    return done;
  }
  application_.clear();
  return end_transaction();
}

}  // namespace pawl::sqlite
