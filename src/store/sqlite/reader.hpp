// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading connections: each sees one consistent, durable state.
///
///     PAWL_TRY(auto reader, Reader::open(options));
///     PAWL_TRY(auto entries, reader->entries().feed(after, 100));

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/replay.hpp"
#include "store/sqlite/application_sql.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/schema.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// Reads entries through a connection that it does not own: a reader's, or the writer's including its open
/// batch. For one thread at a time.
class EntryReader {
 public:
  Result<void> attach(Database& db);
  /// Must be called when a batch is dropped: its numbers of machines may be used again for other machines.
  void forget_machines() { machines_.clear(); }

  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq);
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit);
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit);
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id);
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id);
  Result<Seq> seq_before(Time time);
  Result<void> load(const std::function<void(const StoredHead&)>& visit);

 private:
  Result<std::optional<Entry>> log_entry(Seq seq);
  Result<std::optional<Entry>> kept_entry(const InstanceId& id, Seq seq);
  Result<Entry> read_entry(Statement& row);
  Result<std::string_view> machine_name(std::int64_t number);
  Result<Seq> horizon();
  Result<Replay> replay();
  Result<void> load_heads(Replay& replay, const std::function<void(const StoredHead&)>& visit);
  Result<std::string> extra_of(Seq seq);

  Database* db_ = nullptr;
  Statement by_seq_, kept_, after_, request_, ephemerals_, horizon_, at_or_before_, extra_;
  std::vector<std::string> machines_;  ///< by number
};

/// A reading connection. For one thread at a time.
class Reader {
 public:
  static Result<std::unique_ptr<Reader>> open(const SqliteOptions& options);
  Database& database() { return db_; }
  EntryReader& entries() { return entries_; }
  ApplicationSql& application() { return application_; }
  bool reusable() const { return true; }

 private:
  Database db_;
  ApplicationSql application_;
  EntryReader entries_;
};

}  // namespace pawl::sqlite
