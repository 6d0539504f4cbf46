// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Reading connections: each call sees one consistent, durable state.
///
///     PAWL_TRY(auto reader, Reader::open(options, address, names));
///     PAWL_TRY(auto entries, reader->feed(after, 100));

#include <functional>
#include <memory>
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

/// A reading connection. For one thread at a time.
class Reader {
 public:
  explicit Reader(const Names& names) : names_(names), application_(names.schema()) {}
  static Result<std::unique_ptr<Reader>> open(const PostgresOptions& options, const Address& address,
                                              const Names& names);
  /// For queries of the application: the server ends those that this process can no longer end.
  static Result<std::unique_ptr<Reader>> open_for_queries(const PostgresOptions& options,
                                                          const Address& address, const Names& names);

  Connection& database() { return db_; }
  /// False after a failure in the middle of a statement or transaction.
  bool reusable() const { return !db_.lost() && !db_.in_transaction(); }

  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq);
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit);
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit);
  Result<std::optional<StoredRequest>> find_request(const RequestId& id);
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id);
  Result<Seq> seq_before(Time time);
  Result<void> load(const std::function<void(const StoredHead&)>& visit);
  Result<StoreCheck> check();
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& sql, const QueryWatch& watch,
                                                   const QueryLimits& limits) {
    return application_.query(db_, sql, watch, limits);
  }

 private:
  Result<Entry> read_entry(const Rows& rows, int row);
  Result<std::vector<Entry>> read_entries(const Rows& rows);
  Result<std::string_view> machine_name(std::int64_t number);
  /// Reads all names of machines, because during a COPY no query is possible.
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

template <class Work>
auto Reader::in_snapshot(Work work) -> decltype(work()) {
  PAWL_CHECK(db_.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"));
  auto result = work();
  if (!db_.lost()) db_.roll_back();
  return result;
}

}  // namespace pawl::postgres
