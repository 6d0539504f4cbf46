// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::postgres {
namespace {

// The same order of columns for entries in the log and for those that a head contains.
#define PAWL_PG_COLUMNS                                                                                    \
  "seq, id, kind, machine, key, partition, version, generation, prev, state, schema, at, event, payload, " \
  "data, "                                                                                                 \
  "extra, "
#define PAWL_PG_ENTRY PAWL_PG_COLUMNS "finished"
#define PAWL_PG_HORIZON "(SELECT value::bigint FROM {s}.pawl_meta WHERE name = 'horizon')"

constexpr const char* kBegin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
constexpr const char* kBySeq =
    "SELECT " PAWL_PG_ENTRY " FROM {s}.log WHERE seq = $1 AND seq > " PAWL_PG_HORIZON;
constexpr const char* kKept =
    "SELECT " PAWL_PG_COLUMNS
    "finished_seq IS NOT NULL FROM {s}.heads WHERE id = $1 AND seq = $2 AND kind IS NOT NULL";
constexpr const char* kAfter = "SELECT " PAWL_PG_ENTRY " FROM {s}.log WHERE seq > $1 ORDER BY seq LIMIT $2";
constexpr const char* kHorizon = "SELECT " PAWL_PG_HORIZON;
/// Follows the links from the newest entry; stops at a link that points forward, so that damage cannot loop.
constexpr const char* kChain =
    "WITH RECURSIVE chain AS (SELECT 1 AS depth, log.* FROM {s}.log WHERE seq = $1 AND seq > " PAWL_PG_HORIZON
    " UNION ALL SELECT chain.depth + 1, log.* FROM chain JOIN {s}.log ON log.seq = chain.prev WHERE "
    "chain.prev > "
    "" PAWL_PG_HORIZON " AND chain.prev < chain.seq AND chain.depth < $2) SELECT " PAWL_PG_ENTRY
    " FROM chain ORDER BY depth LIMIT $2";
constexpr const char* kRequest =
    "WITH found AS (SELECT seq, members, content FROM {s}.log WHERE request = $1 AND seq > " PAWL_PG_HORIZON
    ") SELECT " PAWL_PG_ENTRY
    ", (SELECT content FROM found), (SELECT members FROM found) FROM {s}.log WHERE seq >= (SELECT seq FROM "
    "found) AND "
    "seq < (SELECT seq + members FROM found) ORDER BY seq";

Error broken_chain(const InstanceId& id, Seq seq, std::string_view what) {
  return Error(Code::store_corrupt,
               fmt::format("the history of instance {} is broken: entry {} {}", id.to_string(), seq, what),
               {{"id", id.to_string()}, {"seq", std::to_string(seq)}});
}

/// The row always has them, the entry only if it began a generation.
void clear_key(Entry& entry) {
  if (entry.kind == EntryKind::created) return;
  entry.key.clear();
  entry.partition.clear();
}

}  // namespace

Result<std::unique_ptr<Reader>> Reader::open(const PostgresOptions& options, const Address& address,
                                             const Names& names) {
  auto reader = std::make_unique<Reader>(names);
  PAWL_TRY(reader->db_, Connection::open(address, {.patience = options.patience, .read_only = true}));
  reader->db_.queue(
      "SELECT set_config('search_path', concat_ws(', ', nullif(current_setting('search_path'), ''), $1), "
      "false)",
      Params().text(names.schema()));
  PAWL_CHECK(reader->db_.sync());
  return reader;
}

Result<std::unique_ptr<Reader>> Reader::open_for_queries(const PostgresOptions& options,
                                                         const Address& address, const Names& names) {
  PAWL_TRY(auto reader, open(options, address, names));
  PAWL_CHECK(reader->db_.end_statements_on_close());
  // This process ends its own queries; a little later the server ends those of a stopped process.
  const auto limit =
      std::min<Duration>(options.query_limits.timeout, std::chrono::hours(24)) + std::chrono::seconds(1);
  reader->db_.queue(
      fmt::format("SET statement_timeout = {}", std::chrono::ceil<std::chrono::milliseconds>(limit).count()));
  PAWL_CHECK(reader->db_.sync());
  return reader;
}

Result<void> Reader::find_machines() {
  PAWL_TRY(const auto rows, db_.run(names_("SELECT number, name FROM {s}.machines")));
  for (int i = 0; i < rows.count(); ++i) machines_[rows.integer(i, 0)] = rows.text(i, 1);
  return {};
}

Result<std::string_view> Reader::machine_name(std::int64_t number) {
  auto found = machines_.find(number);
  if (found == machines_.end()) {
    PAWL_CHECK(find_machines());
    found = machines_.find(number);
  }
  if (found == machines_.end()) {
    return fail(Code::store_corrupt, fmt::format("the table 'machines' has no number {}", number));
  }
  return found->second;
}

Result<Entry> Reader::read_entry(const Rows& rows, int row) {
  Entry entry;
  entry.seq = rows.integer(row, 0);
  PAWL_TRY(entry.id, rows.id(row, 1));
  entry.kind = static_cast<EntryKind>(rows.integer(row, 2));
  PAWL_TRY(entry.machine, machine_name(rows.integer(row, 3)));
  entry.key = rows.text(row, 4);
  entry.partition = rows.text(row, 5);
  entry.version = rows.integer(row, 6);
  entry.generation = rows.integer(row, 7);
  entry.prev = rows.integer(row, 8);
  entry.state = rows.text(row, 9);
  entry.schema = rows.integer(row, 10);
  entry.at = rows.time(row, 11);
  entry.event = rows.text(row, 12);
  entry.payload = rows.text(row, 13);
  entry.data = rows.text(row, 14);
  entry.extra = rows.text(row, 15);
  entry.finished = rows.boolean(row, 16);
  return entry;
}

Result<std::vector<Entry>> Reader::read_entries(const Rows& rows) {
  std::vector<Entry> entries;
  entries.reserve(static_cast<std::size_t>(rows.count()));
  for (int i = 0; i < rows.count(); ++i) {
    PAWL_TRY(auto entry, read_entry(rows, i));
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::optional<Entry>> Reader::head_entry(const InstanceId& id, Seq seq) {
  db_.queue_kept(kBegin);
  db_.queue_kept(names_(kBySeq), Params().int8(seq));
  db_.queue_kept(names_(kKept), Params().uuid(id.bytes).int8(seq));
  db_.queue_kept("COMMIT");
  PAWL_TRY(const auto results, db_.sync());
  const bool in_log = results[1].count() != 0;
  const auto& rows = results[in_log ? 1 : 2];
  if (rows.count() == 0) return std::nullopt;
  PAWL_TRY(auto entry, read_entry(rows, 0));
  if (entry.id != id) return std::nullopt;
  if (!in_log) clear_key(entry);
  return entry;
}

Result<std::vector<Entry>> Reader::history(const InstanceId& id, Seq head, Seq before, std::size_t limit) {
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(limit, std::size_t{1} << 30));
  return in_snapshot([&]() -> Result<std::vector<Entry>> {
    db_.queue_kept(names_(kHorizon));
    db_.queue_kept(names_(kBySeq), Params().int8(before));
    PAWL_TRY(const auto facts, db_.sync());
    const Seq cut = facts[0].integer(0, 0);
    Seq next = head;
    if (before != 0) {
      std::optional<Entry> after;
      if (facts[1].count() != 0) {
        PAWL_TRY(after, read_entry(facts[1], 0));
      }
      // Beyond the newest entry this instance has no entries, so none is missing.
      if (after ? after->id != id : before > head) {
        return fail(Code::invalid_argument,
                    fmt::format("entry {} is not one of instance {}", before, id.to_string()),
                    {{"id", id.to_string()}, {"seq", std::to_string(before)}});
      }
      if (!after && before > cut) return fail(broken_chain(id, before, "is missing"));
      next = after ? after->prev : 0;
    }
    std::vector<Entry> entries;
    if (next <= 0 || count == 0) return entries;
    if (next <= cut) {
      if (next != head) return entries;
      db_.queue_kept(names_(kKept), Params().uuid(id.bytes).int8(next));
      PAWL_TRY(const auto kept, db_.sync());
      PAWL_TRY(entries, read_entries(kept[0]));
      for (auto& entry : entries) clear_key(entry);
      return entries;
    }
    db_.queue_kept(names_(kChain), Params().int8(next).int8(count));
    PAWL_TRY(const auto chain, db_.sync());
    PAWL_TRY(entries, read_entries(chain[0]));
    for (const auto& entry : entries) {
      if (entry.seq != next) return fail(broken_chain(id, next, "is missing"));
      if (entry.id != id) return fail(broken_chain(id, next, "belongs to another instance"));
      if (entry.prev >= next) return fail(broken_chain(id, next, "follows a later one"));
      next = entry.prev;
    }
    const bool whole = static_cast<std::int64_t>(entries.size()) == count || next <= cut;
    if (!whole) return fail(broken_chain(id, next, "is missing"));
    return entries;
  });
}

Result<std::vector<Entry>> Reader::feed(Seq after, std::size_t limit) {
  const auto count = static_cast<std::int64_t>(std::min<std::size_t>(limit, std::size_t{1} << 31));
  db_.queue_kept(kBegin);
  db_.queue_kept(names_(kHorizon));
  db_.queue_kept(names_(kAfter), Params().int8(after).int8(count));
  db_.queue_kept("COMMIT");
  PAWL_TRY(const auto results, db_.sync());
  const Seq cut = results[1].integer(0, 0);
  if (after < cut) {
    return fail(Code::cursor_expired,
                fmt::format("entries up to {} have been cut away; {} lies below. Read the heads, then follow "
                            "the feed from {}",
                            cut, after, cut),
                {{"horizon", std::to_string(cut)}, {"after", std::to_string(after)}});
  }
  return read_entries(results[2]);
}

Result<std::optional<StoredRequest>> Reader::find_request(const RequestId& id) {
  db_.queue_kept(names_(kRequest), Params().uuid(id));
  PAWL_TRY(const auto results, db_.sync());
  const auto& rows = results[0];
  if (rows.count() == 0) return std::nullopt;
  StoredRequest request{.content = rows.integer(0, 17), .entries = {}};
  PAWL_TRY(request.entries, read_entries(rows));
  if (rows.count() != rows.integer(0, 18)) {
    return fail(Code::store_corrupt, fmt::format("a request has {} entries, but only {} are there",
                                                 rows.integer(0, 18), rows.count()));
  }
  return request;
}

Result<std::vector<Ephemeral>> Reader::ephemerals(const InstanceId& id) {
  db_.queue_kept(
      names_("SELECT name, value, at FROM {s}.ephemeral WHERE id = $1 ORDER BY name COLLATE \"C\""),
      Params().uuid(id.bytes));
  PAWL_TRY(const auto results, db_.sync());
  const auto& rows = results[0];
  std::vector<Ephemeral> values;
  for (int i = 0; i < rows.count(); ++i)
    values.push_back({id, rows.text(i, 0), rows.text(i, 1), rows.time(i, 2)});
  return values;
}

Result<Seq> Reader::seq_before(Time time) {
  return in_snapshot([&]() -> Result<Seq> {
    db_.queue_kept(names_(kHorizon));
    db_.queue_kept(names_("SELECT max(seq) FROM {s}.log"));
    PAWL_TRY(const auto bounds, db_.sync());
    Seq low = bounds[0].integer(0, 0);
    Seq high = bounds[1].integer(0, 0);
    // Log time never decreases: halve [low, high], where nothing above `high` and everything up to `low` is
    // older.
    Seq found = 0;
    while (low < high) {
      const Seq middle = low + (high - low + 1) / 2;
      db_.queue_kept(
          names_("SELECT seq, at FROM {s}.log WHERE seq <= $1 AND seq > $2 ORDER BY seq DESC LIMIT 1"),
          Params().int8(middle).int8(low));
      PAWL_TRY(const auto results, db_.sync());
      const auto& row = results[0];
      const bool inside = row.count() != 0;
      if (inside && row.time(0, 1) >= time) {
        high = row.integer(0, 0) - 1;
      } else {
        if (inside) found = row.integer(0, 0);
        low = middle;
      }
    }
    return found;
  });
}

}  // namespace pawl::postgres
