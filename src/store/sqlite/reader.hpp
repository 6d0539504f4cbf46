// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading connections: each sees one consistent, durable state. A small pool hands them to threads.
///
///     PAWL_TRY(auto reader, pool.lease());
///     PAWL_TRY(auto entries, reader->feed(after, 100));

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "store/replay.hpp"
#include "store/sqlite/application_sql.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/schema.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// Reads entries through a connection that somebody else owns: a reader's, or the writer's with its open
/// batch. One thread at a time.
class EntryReader {
 public:
  Result<void> attach(Database& db);
  /// Numbers given out in a batch that was dropped may come to mean another machine.
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

/// One reading connection. One thread at a time.
class Reader {
 public:
  Result<void> open(const SqliteOptions& options);
  Database& database() { return db_; }
  EntryReader& entries() { return entries_; }
  ApplicationSql& application() { return application_; }

 private:
  Database db_;
  ApplicationSql application_;
  EntryReader entries_;
};

/// Thread-safe. A lease waits while all connections are in use.
class ReaderPool {
 public:
  explicit ReaderPool(const SqliteOptions& options) : options_(options) {}

  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader) : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  Result<Lease> lease();

 private:
  void give_back(std::unique_ptr<Reader> reader);

  const SqliteOptions& options_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Reader>> idle_;
  std::size_t made_ = 0;
};

}  // namespace pawl::sqlite
