// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The suite that every store must pass. To run it on a store, implement `Place`:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, Conformance, testing::Values(make_sqlite_place), …);

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace pawl::test {

struct PlaceOptions {
  std::int64_t flush_every = 8192;
  std::size_t entry_bytes = std::size_t{1} << 20;
  QueryLimits query_limits{};
};

/// The store of one test: it can be opened repeatedly, and is removed after the test.
class Place {
 public:
  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  virtual ~Place() = default;

  virtual Result<std::unique_ptr<Store>> open(const PlaceOptions& options) = 0;
  virtual Result<std::unique_ptr<Store>> open_read_only() = 0;
  /// Opens the store as if its process had died just now, without closing it.
  virtual Result<std::unique_ptr<Store>> open_after_crash(std::unique_ptr<Store> store,
                                                          const PlaceOptions& options) = 0;
  /// A target for a backup, and the store opened from it.
  virtual std::string backup_path() = 0;
  virtual Result<std::unique_ptr<Store>> open_backup() = 0;
};

/// Nothing if such a store is not available on this machine; then its tests are skipped.
using MakePlace = std::function<std::unique_ptr<Place>()>;

/// An entry that owns its texts.
struct Draft {
  InstanceId id;
  EntryKind kind = EntryKind::fired;
  std::string machine = "door";
  std::string key;
  std::string partition;
  std::int64_t version = 1;
  std::int64_t generation = 1;
  Seq prev = 0;
  std::string state = "closed";
  std::int64_t schema = 1;
  Time at{};
  std::string event;
  std::string payload;
  std::string data;
  std::string extra;
  bool finished = false;

  EntryView view() const;
  /// The entry as read back.
  Entry stored(Seq seq) const;
};

/// A head from `load`, with copies of its texts.
struct LoadedHead {
  InstanceId id;
  std::string machine;
  std::string key;
  std::string partition;
  std::int64_t version = 0;
  std::int64_t generation = 0;
  Seq seq = 0;
  std::string state;
  Time created_at{};
  Time at{};
  std::string extra;
  bool finished = false;
  bool operator==(const LoadedHead&) const = default;
};
void PrintTo(const LoadedHead& head, std::ostream* out);
std::map<InstanceId, LoadedHead> load_all(Store& store);

/// The k-th second of the tests' time.
Time at_second(std::int64_t k);

/// The first entry of an instance of machine "door".
Draft created(const std::string& key);
/// The entry after `last`, which is at `seq`.
Draft after(const Draft& last, Seq seq, const std::string& state);

Result<Seq> join(Store& store, const Draft& draft, std::optional<RequestTag> request = {});
Result<Seq> join(Store& store, const std::vector<Draft>& drafts, const std::vector<Sql>& sql = {},
                 std::optional<RequestTag> request = {});

/// Applies and commits one entry; fails the test on an error.
Seq write(Store& store, const Draft& draft);
/// Creates `count` instances "k0", "k1", … and commits each.
std::vector<Draft> fill(Store& store, int count);

RequestTag request(std::uint8_t number, std::int64_t content = 1);

/// The problems that `check` finds, one per line.
std::string problems(Store& store);

class Conformance : public testing::TestWithParam<MakePlace> {
 protected:
  Conformance() : place_(GetParam()()) {}
  void SetUp() override;

  std::unique_ptr<Store> open(const PlaceOptions& options = {});
  /// Closes and opens again.
  std::unique_ptr<Store> reopen(std::unique_ptr<Store> store, const PlaceOptions& options = {});
  std::unique_ptr<Store> crash(std::unique_ptr<Store> store, const PlaceOptions& options = {});

  std::unique_ptr<Place> place_;
};

using Rows = std::vector<std::vector<SqlValue>>;
inline Sql plain(const std::string& text) { return {.text = text}; }
/// A query that runs until it is ended.
inline Sql endless_query() {
  return plain("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT count(*) FROM n");
}

/// A store with one table of the application.
class StoreSql : public Conformance {
 protected:
  void SetUp() override;
  /// Applies a transaction that creates instance `key` and runs the statement.
  Result<Seq> run(const Sql& sql, const std::string& key = "k");
  Rows invoices();
  /// Opens the store again.
  void limit_queries(const QueryLimits& limits);

  std::unique_ptr<Store> store_;
};

/// `EXPECT_EQ(code(result), Code::x)`; nothing if there is no error.
template <class T>
std::optional<Code> code(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code();
}

}  // namespace pawl::test

namespace pawl {
/// For GoogleTest's messages.
void PrintTo(const Entry& entry, std::ostream* out);
void PrintTo(Code code, std::ostream* out);
}  // namespace pawl
