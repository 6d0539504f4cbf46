// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The PostgreSQL store, which combines the parts. `open_postgres` in store.hpp creates it.

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "store/postgres/backoff.hpp"
#include "store/postgres/listener.hpp"
#include "store/postgres/ownership.hpp"
#include "store/postgres/reader.hpp"
#include "store/postgres/schema.hpp"
#include "store/postgres/writer.hpp"
#include "store/reader_pool.hpp"
#include "store/status.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// As thread-safe as `Store` requires.
class PostgresStore final : public Store {
 public:
  PostgresStore(PostgresOptions options, Address address);
  ~PostgresStore() override;

  Result<void> open();

  StoreInfo info() const override { return status_.info(); }
  Result<Seq> apply(const Write& write) override { return writer_.apply(write); }
  Result<void> put(std::span<const Ephemeral> values) override { return writer_.put(values); }
  Result<void> commit() override { return writer_.commit(); }
  void discard() override { writer_.discard(); }
  Result<void> still_owner() const override;
  bool is_leased() const override { return !options_.read_only; }
  bool has_ended() const override { return !status_.usable(); }

  Result<void> load(const std::function<void(const StoredHead&)>& visit) override;
  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override;
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit) override;
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit) override;
  Result<bool> wait(Seq after, Duration most) override;
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) override;
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id) override;

  Result<bool> retain(Seq horizon) override;
  Result<void> forget(std::span<const InstanceId> ids) override;
  Result<Seq> seq_before(Time time) override;
  Result<void> checkpoint() override { return status_.writable(); }
  Result<void> backup(const std::string& path, const std::function<void(double)>& progress) override;
  Result<StoreCheck> check() override;
  Result<StoreRepair> repair() override;
  Result<void> execute(std::span<const Sql> statements) override { return writer_.execute(statements); }
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement,
                                                   const std::stop_token& stop) override;
  void stop_queries() override { closing_.request_stop(); }

 private:
  Result<void> open_owner();
  Result<void> open_reader();
  Result<ServerFacts> checked_facts(Connection& db) const;
  Result<StoreInfo> facts(Connection& db, const Meta& meta) const;
  Result<void> drop_partitions(Seq horizon);
  /// Runs `read` on a reading connection that `lease` returns; if that connection is lost, retries on others
  /// within `PostgresOptions::patience`.
  template <class Lease, class Read>
  auto reading_on(Lease lease, Read read) -> decltype(read(std::declval<Reader&>()));
  template <class Read>
  auto reading(ReaderPool<Reader>& pool, Read read) {
    return reading_on([&pool] { return pool.lease(); }, read);
  }

  PostgresOptions options_;
  Address address_;
  Names names_;
  Status status_;
  Ownership ownership_;
  Listener listener_;
  Writer writer_;
  std::stop_source closing_;
  // Long reads have their own connections: the engine's lane waits for lookups.
  ReaderPool<Reader> lookups_;
  ReaderPool<Reader> ranges_;
  ReaderPool<Reader> queries_;
};

template <class Lease, class Read>
auto PostgresStore::reading_on(Lease lease, Read read) -> decltype(read(std::declval<Reader&>())) {
  // All idle connections may have been lost with the server, and a new one may take a while. A read can be
  // repeated safely.
  Backoff backoff(options_.patience);
  while (true) {
    PAWL_CHECK(status_.usable());
    std::optional<Error> gone;
    if (auto reader = lease(); !reader) {
      if (reader.error().code() != Code::store_io) return fail(std::move(reader).error());
      gone = std::move(reader).error();
    } else {
      auto result = read(**reader);
      const bool is_gone = !result && result.error().code() == Code::store_io;
      if (!is_gone || !(*reader)->database().lost()) return result;
      gone = std::move(result).error();
    }
    if (!backoff.again()) return fail(*std::move(gone));
  }
}

}  // namespace pawl::postgres
