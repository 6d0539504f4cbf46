// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading connections: each call sees one consistent, durable state. A small pool hands them to threads.
///
///     PAWL_TRY(auto reader, pool.lease());
///     PAWL_TRY(auto entries, reader->feed(after, 100));

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/postgres/application_sql.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/requests.hpp"
#include "store/postgres/schema.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// One reading connection. One thread at a time.
class Reader {
 public:
  explicit Reader(const Names& names) : names_(names), application_(names.schema()) {}
  Result<void> open(const PostgresOptions& options, const Address& address);

  Connection& database() { return db_; }

  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq);
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit);
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit);
  Result<std::optional<StoredRequest>> find_request(const RequestId& id);
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id);
  Result<Seq> seq_before(Time time);
  Result<void> load(const std::function<void(const StoredHead&)>& visit);
  Result<StoreCheck> check();
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& sql) { return application_.query(db_, sql); }

 private:
  Result<Entry> read_entry(const Rows& rows, int row);
  Result<std::vector<Entry>> read_entries(const Rows& rows);
  Result<std::string_view> machine_name(std::int64_t number);
  /// Machines that came since are needed while a COPY runs, when nothing else can be asked.
  Result<void> find_machines();
  Result<void> load_in_transaction(const std::function<void(const StoredHead&)>& visit);
  Result<StoreCheck> check_in_transaction();
  template <class Work>
  auto in_snapshot(Work work) -> decltype(work());

  const Names& names_;
  Connection db_;
  ApplicationSql application_;
  std::unordered_map<std::int64_t, std::string> machines_;
};

/// Thread-safe. A lease waits while all connections are in use.
class ReaderPool {
 public:
  ReaderPool(const PostgresOptions& options, const Address& address, const Names& names)
      : options_(options), address_(address), names_(names) {}

  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader) : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }
    Reader& operator*() const { return *reader_; }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  Result<Lease> lease();

 private:
  void give_back(std::unique_ptr<Reader> reader);

  const PostgresOptions& options_;
  const Address& address_;
  const Names& names_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Reader>> idle_;
  std::size_t made_ = 0;
};

template <class Work>
auto Reader::in_snapshot(Work work) -> decltype(work()) {
  PAWL_CHECK(db_.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  auto result = work();
  if (!db_.lost()) db_.roll_back();
  return result;
}

}  // namespace pawl::postgres
