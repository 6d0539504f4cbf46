// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The SQLite store, which combines the parts. `open_sqlite` in store.hpp creates it.

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "store/reader_pool.hpp"
#include "store/sqlite/checkpointer.hpp"
#include "store/sqlite/owner_lock.hpp"
#include "store/sqlite/reader.hpp"
#include "store/sqlite/writer.hpp"
#include "store/status.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// As thread-safe as `Store` requires.
class SqliteStore final : public Store {
 public:
  explicit SqliteStore(SqliteOptions options);
  ~SqliteStore() override;

  Result<void> open();

  StoreInfo info() const override { return status_.info(); }
  Result<Seq> apply(const Write& write) override;
  Result<void> put(std::span<const Ephemeral> values) override;
  Result<void> commit() override;
  void discard() override;
  bool wants_help() const override;
  void help() override;

  Result<void> load(const std::function<void(const StoredHead&)>& visit) override;
  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override;
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit) override;
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit) override;
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) override;
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id) override;

  Result<bool> retain(Seq horizon) override;
  Result<void> forget(std::span<const InstanceId> ids) override;
  Result<Seq> seq_before(Time time) override;
  Result<void> checkpoint() override;
  Result<void> backup(const std::string& path, const std::function<void(double)>& progress) override;
  Result<StoreCheck> check() override;
  Result<StoreRepair> repair() override;
  Result<void> execute(std::span<const Sql> statements) override;
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement,
                                                   const std::stop_token& stop) override;
  void stop_queries() override { closing_.request_stop(); }

 private:
  Result<void> open_owner();
  Result<Meta> become_owner(Database& db);
  Error cannot_open(Database& db, Error cause) const;
  Result<void> open_reader();
  Result<StoreInfo> facts(Database& db, const Meta& meta) const;
  /// Runs `read` on a reading connection of a pool.
  template <class Read>
  auto reading(ReaderPool<Reader>& pool, Read read) -> decltype(read(std::declval<Reader&>()));

  SqliteOptions options_;
  Status status_;
  OwnerLock lock_;  ///< outlives every connection
  Checkpointer checkpointer_;
  Writer writer_;
  EntryReader batch_entries_;  ///< reads through the writer's connection
  std::stop_source closing_;
  // Long reads have their own connections: the engine's lane waits for lookups.
  ReaderPool<Reader> lookups_;
  ReaderPool<Reader> ranges_;
  ReaderPool<Reader> queries_;
};

template <class Read>
auto SqliteStore::reading(ReaderPool<Reader>& pool, Read read) -> decltype(read(std::declval<Reader&>())) {
  PAWL_CHECK(status_.usable());
  PAWL_TRY(auto reader, pool.lease());
  return read(*reader);
}

}  // namespace pawl::sqlite
