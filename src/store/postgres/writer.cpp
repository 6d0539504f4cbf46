// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace pawl::postgres {
namespace {

constexpr std::int16_t kLogColumns = 21;

Entry to_entry(const EntryView& entry, Seq seq) {
  return {.seq = seq,
          .id = entry.id,
          .kind = entry.kind,
          .machine = std::string(entry.machine),
          .key = std::string(entry.key),
          .partition = std::string(entry.partition),
          .version = entry.version,
          .generation = entry.generation,
          .prev = entry.prev,
          .state = std::string(entry.state),
          .schema = entry.schema,
          .at = entry.at,
          .event = std::string(entry.event),
          .payload = std::string(entry.payload),
          .data = std::string(entry.data),
          .extra = std::string(entry.extra),
          .finished = entry.finished};
}

}  // namespace

Writer::Writer(const PostgresOptions& options, const Address& address, const Names& names, Status& status,
               Ownership& ownership, Listener& listener)
    : options_(options),
      address_(address),
      names_(names),
      status_(status),
      ownership_(ownership),
      listener_(listener),
      application_(names.schema()) {}

Result<void> Writer::open(Connection db, ServerFacts facts, Seq next, Seq flushed) {
  db_ = std::move(db);
  facts_ = std::move(facts);
  next_ = next;
  PAWL_CHECK(prepare_connection());
  PAWL_CHECK(find_types());
  return find_state(flushed);
}

Result<void> Writer::prepare_connection() {
  // A process that is stopped in the middle of a transaction must not hold locks longer than its lease.
  const auto idle = std::chrono::ceil<std::chrono::milliseconds>(options_.lease).count();
  db_.queue(fmt::format("SET idle_in_transaction_session_timeout = {}", idle));
  // The same for a machine that vanishes during a COPY, which the server does not regard as idle.
  db_.queue("SET tcp_keepalives_idle = 10");
  db_.queue("SET tcp_keepalives_interval = 3");
  db_.queue("SET tcp_keepalives_count = 3");
  // `patience` limits every wait; other limits would interrupt batches.
  db_.queue("SET statement_timeout = 0");
  db_.queue("SET lock_timeout = 0");
  db_.queue(
      "SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), $1), "
      "false)",
      Params().text(names_.schema()));
  PAWL_CHECK(db_.sync());
  return {};
}

Result<void> Writer::find_types() {
  PAWL_TRY(const auto rows,
           db_.run("SELECT typname, t.oid::bigint, typarray::bigint FROM pg_type t JOIN "
                   "pg_namespace n ON n.oid = typnamespace WHERE nspname = $1 AND typname IN "
                   "('log_row', 'head_row', 'ephemeral_row')",
                   Params().text(names_.schema())));
  for (int i = 0; i < rows.count(); ++i) {
    const auto type = static_cast<std::uint32_t>(rows.integer(i, 1));
    const auto array = static_cast<std::uint32_t>(rows.integer(i, 2));
    if (rows.bytes(i, 0) == "log_row") {
      log_type_ = type;
      log_array_ = array;
    } else if (rows.bytes(i, 0) == "head_row") {
      head_type_ = type;
      head_array_ = array;
    } else {
      ephemeral_type_ = type;
      ephemeral_array_ = array;
    }
  }
  if (log_array_ != 0 && head_array_ != 0 && ephemeral_array_ != 0) return {};
  return fail(Code::store_corrupt,
              fmt::format("schema \"{}\" lacks the types of Pawl's rows", names_.schema()));
}

/// Loads what an owner keeps in memory besides the heads: machines, partitions, requests, and the heads that
/// the last owner did not write.
Result<void> Writer::find_state(Seq flushed) {
  db_.queue(names_("DELETE FROM {s}.batches WHERE epoch < $1"), Params().int8(ownership_.epoch()));
  db_.queue(names_("SELECT number, name FROM {s}.machines"));
  db_.queue(
      "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = "
      "to_regclass($1)",
      Params().text(names_("{s}.log")));
  PAWL_TRY(const auto results, db_.sync());
  for (int i = 0; i < results[1].count(); ++i) {
    machines_.emplace(results[1].text(i, 1), results[1].integer(i, 0));
    last_machine_ = std::max(last_machine_, results[1].integer(i, 0));
  }
  for (int i = 0; i < results[2].count(); ++i) {
    const auto name = results[2].bytes(i, 0);
    Seq end = 0;
    const auto last = name.rfind('_') + 1;
    std::from_chars(name.data() + last, name.data() + name.size(), end);
    partitions_end_ = std::max(partitions_end_, end);
  }
  PAWL_CHECK(
      db_.copy_out(names_("SELECT request, seq FROM {s}.log WHERE request IS NOT NULL AND seq > (SELECT "
                          "value::bigint FROM {s}.pawl_meta WHERE name = 'horizon') ORDER BY seq"),
                   [&](const CopiedRow& row) -> Result<void> {
                     PAWL_TRY(const auto id, row.id(0));
                     requests_.add(id.bytes, row.integer(1));
                     return {};
                   }));
  return db_.copy_out(
      names_(fmt::format(
          "SELECT seq, id, kind, version, generation, at, machine, state, finished, extra IS NOT NULL "
          "FROM {{s}}.log WHERE seq > {} ORDER BY seq",
          flushed)),
      [&](const CopiedRow& row) -> Result<void> {
        DirtyHead head{
            .seq = row.integer(0),
            .begins = row.integer(2) == std::to_underlying(EntryKind::created) ? row.integer(0) : 0,
            .version = row.integer(3),
            .generation = row.integer(4),
            .at = row.time(5),
            .created_at = row.time(5),
            .machine = static_cast<std::int32_t>(row.integer(6)),
            .finished = row.integer(8) != 0,
            .has_extra = row.integer(9) != 0};
        PAWL_TRY(head.id, row.id(1));
        heads_.note_found(head, row.text(7));
        return {};
      });
}

Result<void> Writer::check_limits(const Write& write) const {
  return check_write(write, options_.entry_bytes);
}

const StoredRequest* Writer::batch_request(const RequestId& id) const {
  const auto found = batch_requests_.find(id);
  return found == batch_requests_.end() ? nullptr : &found->second;
}

Result<void> Writer::check_request(const RequestId& id) {
  bool known = batch_requests_.contains(id);
  if (!known && requests_.may_know(id)) {
    if (auto left = leave_copy(); !left) return fail(lost(std::move(left).error()));
    auto rows =
        db_.run(names_("SELECT 1 FROM {s}.log WHERE request = $1 AND seq > (SELECT value::bigint FROM "
                       "{s}.pawl_meta WHERE name = 'horizon') LIMIT 1"),
                Params().uuid(id));
    if (!rows) return fail(lost(std::move(rows).error()));
    known = rows->count() != 0;
  }
  if (!known) return {};
  return fail(Code::request_id_reused, "a transaction with this request id was applied before");
}

void Writer::begin() {
  if (in_batch_) return;
  in_batch_ = true;
  batch_thread_ = std::this_thread::get_id();
  ++batch_;
  batch_epoch_ = ownership_.epoch();
  heads_.start_round(options_.flush_every, status_.last());
}

Result<Seq> Writer::apply(const Write& write) {
  PAWL_CHECK(status_.writable());
  PAWL_CHECK(check_limits(write));
  PAWL_CHECK(application_.check(write.sql, Allow::write));
  if (write.request) PAWL_CHECK(check_request(write.request->id));
  begin();
  if (!write.sql.empty()) PAWL_CHECK(run_sql(write.sql));
  if (write.entries.empty()) return Seq{0};
  const Seq first = next_;
  append(write);
  return first;
}

Result<void> Writer::run_sql(std::span<const Sql> statements) {
  if (auto left = leave_copy(); !left) return fail(lost(std::move(left).error()));
  if (!transaction_open_) queue_begin();
  auto done = application_.run(db_, statements, Allow::write);
  if (done) {
    ran_sql_ = true;
    return {};
  }
  const auto code = done.error().code();
  const bool refusal =
      code == Code::sql_refused || code == Code::sql_failed || code == Code::row_expectation_failed;
  if (refusal && !db_.lost()) return done;
  return fail(lost(std::move(done).error()));
}

void Writer::append(const Write& write) {
  if (batch_first_ == 0) batch_first_ = next_;
  StoredRequest stored;
  bool first = true;
  for (const auto& entry : write.entries) {
    const auto machine = machine_number(entry.machine);
    const Seq seq = next_++;
    log_.begin(kLogColumns).int8(seq).int8(batch_epoch_).uuid(entry.id.bytes).int4(machine);
    log_.int2(std::to_underlying(entry.kind)).int8(entry.version).int8(entry.generation).int8(entry.prev);
    log_.int8(entry.at.time_since_epoch().count())
        .text(entry.state)
        .int8(entry.schema)
        .boolean(entry.finished);
    log_.optional_text(entry.event).optional_text(entry.payload).optional_text(entry.data);
    log_.optional_text(entry.extra).optional_text(entry.key).optional_text(entry.partition);
    if (first && write.request) {
      log_.uuid(write.request->id)
          .int8(write.request->content)
          .int4(static_cast<std::int64_t>(write.entries.size()));
    } else {
      log_.null().null().null();
    }
    if (write.request) stored.entries.push_back(to_entry(entry, seq));
    heads_.note(entry, seq, machine);
    batch_at_ = std::max(batch_at_, entry.at);
    first = false;
  }
  batch_last_ = next_ - 1;
  if (log_.size() >= (db_.copying() ? kPart : kCopied) || log_.bytes().size() >= kPartBytes) stream();
  if (!write.request) return;
  stored.content = write.request->content;
  batch_requests_.emplace(write.request->id, std::move(stored));
}

std::int64_t Writer::machine_number(std::string_view name) {
  const auto found = machines_.find(name);
  if (found != machines_.end()) return found->second;
  new_machines_.emplace_back(name);
  return machines_.emplace(name, ++last_machine_).first->second;
}

Result<void> Writer::put(std::span<const Ephemeral> values) {
  PAWL_CHECK(status_.writable());
  if (values.empty()) return {};
  begin();
  for (const auto& value : values) ephemerals_[{value.id, value.name}] = value;
  return {};
}

Result<void> Writer::execute(std::span<const Sql> statements) {
  PAWL_CHECK(status_.writable());
  PAWL_CHECK(application_.check(statements, Allow::define));
  std::optional<Error> refused;
  auto done = between_batches([&]() -> Result<void> {
    ran_sql_ = true;
    auto ran = application_.run(db_, statements, Allow::define);
    if (ran) return ran;
    const auto code = ran.error().code();
    const bool refusal =
        code == Code::sql_refused || code == Code::sql_failed || code == Code::row_expectation_failed;
    if (!refusal) return ran;
    refused = std::move(ran).error();
    return {};
  });
  if (refused) return fail(*std::move(refused));
  return done;
}

}  // namespace pawl::postgres
