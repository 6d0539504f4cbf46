// SPDX-License-Identifier: Apache-2.0
// The integrity check: SQLite's own, then the log by itself, then the heads against the log.
#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "store/sqlite/sqlite_store.hpp"

namespace pawl::sqlite {
namespace {

/// More would not tell more.
constexpr std::size_t kProblems = 100;

/// The newest entry of an instance in the log.
struct Newest {
  Seq seq = 0;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  std::string state;
  bool finished = false;
  bool has_head = false;
};

class Checker {
 public:
  explicit Checker(Database& db) : db_(db) {}

  Result<StoreCheck> run() {
    PAWL_TRY(meta_, read_meta(db_));
    PAWL_CHECK(pages());
    // What SQLite itself finds damaged cannot be read reliably.
    if (!result_.problems.empty()) return std::move(result_);
    PAWL_CHECK(log());
    PAWL_CHECK(heads());
    for (const auto& [id, newest] : newest_) missing_head(id, newest);
    return std::move(result_);
  }

 private:
  template <class... Arguments>
  void problem(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (result_.problems.size() < kProblems) {
      result_.problems.push_back(fmt::format(format, std::forward<Arguments>(arguments)...));
    }
  }

  Result<void> pages() {
    PAWL_TRY(auto rows, db_.prepare("PRAGMA integrity_check"));
    while (true) {
      PAWL_TRY(const bool more, rows.row());
      if (!more) return {};
      if (rows.text(0) != "ok") problem("{}", rows.text(0));
    }
  }

  Result<void> log() {
    PAWL_TRY(
        auto rows,
        db_.prepare("SELECT seq, id, version, generation, prev, state, finished, kind, members, machine IN "
                    "(SELECT number FROM machines), at FROM log ORDER BY seq"));
    Seq request_ends = 0;
    Seq before = meta_.horizon;
    Time at{};
    while (true) {
      PAWL_TRY(const bool more, rows.row());
      if (!more) break;
      ++result_.entries;
      const Seq seq = rows.integer(0);
      PAWL_TRY(const auto id, rows.id(1));
      if (seq <= meta_.horizon) problem("entry {} lies below the horizon {}", seq, meta_.horizon);
      if (rows.integer(9) == 0) problem("entry {} names a machine that does not exist", seq);
      if (seq <= request_ends && seq != before + 1) problem("entry {} of a request is missing", before + 1);
      if (rows.time(10) < at) problem("entry {} is older than the one before it", seq);
      if (!rows.is_null(8)) request_ends = seq + rows.integer(8) - 1;
      at = rows.time(10);
      before = seq;
      link(rows, id, seq);
    }
    if (before < request_ends) problem("entry {} of a request is missing", before + 1);
    return {};
  }

  /// One entry against the one of its instance before it.
  void link(const Statement& row, const InstanceId& id, Seq seq) {
    const std::int64_t version = row.integer(2);
    const std::int64_t generation = row.integer(3);
    const Seq prev = row.integer(4);
    const bool created = row.integer(7) == std::to_underlying(EntryKind::created);
    const auto found = newest_.find(id);
    if (found != newest_.end() && !(prev == 0 && created && found->second.finished)) {
      // A finished instance may have been forgotten and begun anew; otherwise the chain goes on.
      const auto& last = found->second;
      if (prev != last.seq) problem("entry {} follows {} instead of {}", seq, prev, last.seq);
      if (generation < last.generation) problem("entry {} goes back to generation {}", seq, generation);
      if (generation == last.generation && version < last.version) {
        problem("entry {} goes back from version {} to {}", seq, last.version, version);
      }
    } else if (found == newest_.end() && prev > meta_.horizon) {
      problem("entry {} follows {}, which is not in the log", seq, prev);
    }
    newest_[id] = {seq, version, generation, std::string(row.text(5)), row.integer(6) != 0, false};
  }

  Result<void> heads() {
    PAWL_TRY(auto rows, db_.prepare("SELECT id, seq, version, generation, state, finished, kind IS NOT NULL, "
                                    "machine IN (SELECT number FROM machines) FROM heads"));
    while (true) {
      PAWL_TRY(const bool more, rows.row());
      if (!more) return {};
      PAWL_TRY(const auto id, rows.id(0));
      if (rows.integer(7) == 0) problem("the head of {} names a machine that does not exist", id.to_string());
      head(rows, id, rows.integer(1));
    }
  }

  void head(const Statement& row, const InstanceId& id, Seq seq) {
    ++result_.heads;
    const bool carries = row.integer(6) != 0;
    const auto found = newest_.find(id);
    if (found != newest_.end()) found->second.has_head = true;
    if (seq <= meta_.horizon && !carries) {
      problem("the head of {} points to entry {}, which was cut away, and does not carry it", id.to_string(),
              seq);
    }
    if (found == newest_.end()) {
      if (seq > meta_.horizon)
        problem("the head of {} points to entry {}, which is missing", id.to_string(), seq);
      return;
    }
    const auto& newest = found->second;
    if (seq > newest.seq) problem("the head of {} points to entry {}, which is missing", id.to_string(), seq);
    if (seq < newest.seq && newest.seq <= meta_.flushed) {
      problem("the head of {} points to entry {}, but {} is newer", id.to_string(), seq, newest.seq);
    }
    const bool same = row.integer(2) == newest.version && row.integer(3) == newest.generation &&
                      row.text(4) == newest.state && (row.integer(5) != 0) == newest.finished;
    if (seq == newest.seq && !same) problem("the head of {} differs from its entry {}", id.to_string(), seq);
  }

  void missing_head(const InstanceId& id, const Newest& newest) {
    // Entries after the mark have no head yet; finished instances may have been forgotten.
    if (newest.has_head || newest.finished || newest.seq > meta_.flushed) return;
    problem("instance {} has no head; its newest entry is {}", id.to_string(), newest.seq);
  }

  Database& db_;
  Meta meta_;
  StoreCheck result_;
  std::unordered_map<InstanceId, Newest> newest_;
};

}  // namespace

Result<StoreCheck> SqliteStore::check() {
  PAWL_CHECK(status_.usable());
  // A connection of its own, because this takes long and the pool is small.
  Reader reader;
  PAWL_CHECK(reader.open(options_));
  PAWL_TRY(const auto snapshot, Snapshot::begin(reader.database()));
  return Checker(reader.database()).run();
}

}  // namespace pawl::sqlite
