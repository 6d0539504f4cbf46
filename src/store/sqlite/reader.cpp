// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::sqlite {
namespace {

// The same order of columns for entries in the log and for those that a head contains.
#define PAWL_ENTRY_COLUMNS                                                                                 \
  "seq, id, kind, machine, key, partition, version, generation, prev, state, schema, at, event, payload, " \
  "data, extra, finished"

Error broken_chain(const InstanceId& id, Seq seq, std::string_view what) {
  return Error(Code::store_corrupt,
               fmt::format("the history of instance {} is broken: entry {} {}", id.to_string(), seq, what),
               {{"id", id.to_string()}, {"seq", std::to_string(seq)}});
}

}  // namespace

Result<void> EntryReader::attach(Database& db) {
  db_ = &db;
  const auto all = std::to_array<std::pair<Statement*, const char*>>({
      {&by_seq_, "SELECT " PAWL_ENTRY_COLUMNS " FROM log WHERE seq = ?1"},
      {&kept_, "SELECT " PAWL_ENTRY_COLUMNS " FROM heads WHERE id = ?1 AND seq = ?2 AND kind IS NOT NULL"},
      {&after_, "SELECT " PAWL_ENTRY_COLUMNS " FROM log WHERE seq > ?1 ORDER BY seq LIMIT ?2"},
      {&request_, "SELECT seq, members, content FROM log WHERE request = ?1"},
      {&ephemerals_, "SELECT name, value, at FROM ephemeral WHERE id = ?1 ORDER BY name"},
      {&horizon_, "SELECT value FROM pawl_meta WHERE name = 'horizon'"},
      {&at_or_before_, "SELECT seq, at FROM log WHERE seq <= ?1 ORDER BY seq DESC LIMIT 1"},
      {&extra_, "SELECT extra FROM log WHERE seq = ?1"},
  });
  for (const auto& [statement, sql] : all) {
    PAWL_TRY(*statement, db_->prepare(sql));
  }
  return {};
}

Result<std::string_view> EntryReader::machine_name(std::int64_t number) {
  const auto index = static_cast<std::size_t>(number);
  if (number <= 0 || index >= machines_.size() || machines_[index].empty()) {
    PAWL_TRY(auto find, db_->prepare("SELECT name FROM machines WHERE number = ?1"));
    find.bind(1, number);
    PAWL_TRY(const bool found, find.row());
    if (!found || number <= 0 || number > 1'000'000) {
      return fail(Code::store_corrupt, fmt::format("the table 'machines' has no number {}", number));
    }
    machines_.resize(std::max(machines_.size(), index + 1));
    machines_[index] = find.text(0);
  }
  return machines_[index];
}

Result<Entry> EntryReader::read_entry(Statement& row) {
  Entry entry;
  entry.seq = row.integer(0);
  PAWL_TRY(entry.id, row.id(1));
  entry.kind = static_cast<EntryKind>(row.integer(2));
  PAWL_TRY(entry.machine, machine_name(row.integer(3)));
  entry.key = row.text(4);
  entry.partition = row.text(5);
  entry.version = row.integer(6);
  entry.generation = row.integer(7);
  entry.prev = row.integer(8);
  entry.state = row.text(9);
  entry.schema = row.integer(10);
  entry.at = row.time(11);
  entry.event = row.text(12);
  entry.payload = row.text(13);
  entry.data = row.text(14);
  entry.extra = row.text(15);
  entry.finished = row.integer(16) != 0;
  return entry;
}

Result<std::optional<Entry>> EntryReader::log_entry(Seq seq) {
  const ResetGuard guard(by_seq_);
  by_seq_.bind(1, seq);
  PAWL_TRY(const bool found, by_seq_.row());
  if (!found) return std::nullopt;
  PAWL_TRY(auto entry, read_entry(by_seq_));
  return entry;
}

Result<std::optional<Entry>> EntryReader::kept_entry(const InstanceId& id, Seq seq) {
  const ResetGuard guard(kept_);
  kept_.bind_blob(1, id.bytes);
  kept_.bind(2, seq);
  PAWL_TRY(const bool found, kept_.row());
  if (!found) return std::nullopt;
  PAWL_TRY(auto entry, read_entry(kept_));
  if (entry.kind != EntryKind::created) {
    // The row always has them, the entry only if it began a generation.
    entry.key.clear();
    entry.partition.clear();
  }
  return entry;
}

Result<std::optional<Entry>> EntryReader::head_entry(const InstanceId& id, Seq seq) {
  PAWL_TRY(auto entry, log_entry(seq));
  if (entry) return entry->id == id ? std::move(entry) : std::nullopt;
  return kept_entry(id, seq);
}

Result<Seq> EntryReader::horizon() {
  const ResetGuard guard(horizon_);
  PAWL_CHECK(horizon_.row());
  return horizon_.integer(0);
}

Result<std::vector<Entry>> EntryReader::history(const InstanceId& id, Seq head, Seq before,
                                                std::size_t limit) {
  PAWL_TRY(const auto snapshot, Snapshot::begin(*db_));
  PAWL_TRY(const Seq cut, horizon());
  std::vector<Entry> entries;
  Seq next = head;
  if (before != 0) {
    PAWL_TRY(const auto after, log_entry(before));
    // Beyond the newest entry this instance has no entries, so none is missing.
    if (after ? after->id != id : before > head) {
      return fail(Code::invalid_argument,
                  fmt::format("entry {} is not one of instance {}", before, id.to_string()),
                  {{"id", id.to_string()}, {"seq", std::to_string(before)}});
    }
    if (!after && before > cut) return fail(broken_chain(id, before, "is missing"));
    next = after ? after->prev : 0;
  }
  while (next > 0 && entries.size() < limit) {
    if (next <= cut) {
      if (next != head) break;
      PAWL_TRY(auto kept, kept_entry(id, next));
      if (kept) entries.push_back(*std::move(kept));
      break;
    }
    PAWL_TRY(auto entry, log_entry(next));
    if (!entry) return fail(broken_chain(id, next, "is missing"));
    if (entry->id != id) return fail(broken_chain(id, next, "belongs to another instance"));
    if (entry->prev >= next) return fail(broken_chain(id, next, "follows a later one"));
    next = entry->prev;
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<std::vector<Entry>> EntryReader::feed(Seq after, std::size_t limit) {
  PAWL_TRY(const auto snapshot, Snapshot::begin(*db_));
  PAWL_TRY(const Seq cut, horizon());
  if (after < cut) {
    return fail(
        Code::cursor_expired,
        fmt::format("entries up to {} have been cut away; {} lies below. Read the heads, then follow the "
                    "feed from {}",
                    cut, after, cut),
        {{"horizon", std::to_string(cut)}, {"after", std::to_string(after)}});
  }
  const ResetGuard guard(after_);
  after_.bind(1, after);
  after_.bind(2, static_cast<std::int64_t>(std::min<std::size_t>(limit, std::size_t{1} << 31)));
  std::vector<Entry> entries;
  while (true) {
    PAWL_TRY(const bool more, after_.row());
    if (!more) return entries;
    PAWL_TRY(auto entry, read_entry(after_));
    entries.push_back(std::move(entry));
  }
}

Result<std::optional<StoredRequest>> EntryReader::find_request(const std::array<std::uint8_t, 16>& id) {
  const ResetGuard guard(request_);
  request_.bind_blob(1, id);
  PAWL_TRY(const bool found, request_.row());
  if (!found) return std::nullopt;
  StoredRequest request{.content = request_.integer(2), .entries = {}};
  const Seq first = request_.integer(0);
  const Seq end = first + request_.integer(1);
  for (Seq seq = first; seq < end; ++seq) {
    PAWL_TRY(auto entry, log_entry(seq));
    if (!entry) {
      return fail(Code::store_corrupt,
                  fmt::format("a request has entries {} to {}, but {} is missing", first, end - 1, seq),
                  {{"seq", std::to_string(seq)}});
    }
    request.entries.push_back(*std::move(entry));
  }
  return request;
}

Result<std::vector<Ephemeral>> EntryReader::ephemerals(const InstanceId& id) {
  const ResetGuard guard(ephemerals_);
  ephemerals_.bind_blob(1, id.bytes);
  std::vector<Ephemeral> values;
  while (true) {
    PAWL_TRY(const bool more, ephemerals_.row());
    if (!more) return values;
    values.push_back(
        {id, std::string(ephemerals_.text(0)), std::string(ephemerals_.text(1)), ephemerals_.time(2)});
  }
}

Result<Seq> EntryReader::seq_before(Time time) {
  PAWL_TRY(const auto snapshot, Snapshot::begin(*db_));
  PAWL_TRY(Seq low, horizon());
  PAWL_TRY(Seq high, db_->integer("SELECT coalesce(max(seq), 0) FROM log"));
  // Log time never decreases: halve [low, high], where nothing above `high` and everything up to `low` is
  // older.
  Seq found = 0;
  while (low < high) {
    const Seq middle = low + (high - low + 1) / 2;
    const ResetGuard guard(at_or_before_);
    at_or_before_.bind(1, middle);
    PAWL_TRY(const bool any, at_or_before_.row());
    const bool inside = any && at_or_before_.integer(0) > low;
    if (inside && at_or_before_.time(1) >= time) {
      high = at_or_before_.integer(0) - 1;
    } else {
      if (inside) found = at_or_before_.integer(0);
      low = middle;
    }
  }
  return found;
}

Result<std::unique_ptr<Reader>> Reader::open(const SqliteOptions& options) {
  auto reader = std::make_unique<Reader>();
  PAWL_TRY(reader->db_, Database::open(options.path, SQLITE_OPEN_READONLY, options.vfs));
  PAWL_CHECK(prepare_connection(reader->db_, Access::reader));
  reader->application_.attach(reader->db_);
  PAWL_CHECK(reader->entries_.attach(reader->db_));
  return reader;
}

}  // namespace pawl::sqlite
