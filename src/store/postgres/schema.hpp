// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a Pawl schema in a PostgreSQL database looks like: its tables, by numbered migrations, and the table
/// `pawl_meta`; and what the server must be like.
///
///     PAWL_CHECK(migrate(db, names, Create::yes));
///     PAWL_TRY(auto meta, read_meta(db, names));
///
/// Not thread-safe; one connection is used by one thread at a time.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// The newest schema this program writes.
inline constexpr std::int64_t kSchemaVersion = 1;

/// Puts the name of the schema into statements: "{s}.log" becomes "pawl.log".
class Names {
 public:
  explicit Names(std::string schema) : schema_(std::move(schema)) {}
  const std::string& schema() const { return schema_; }
  std::string operator()(std::string_view sql) const;
  /// Where commits and owners are announced.
  std::string channel() const { return "pawl_" + schema_; }
  /// Announces what `text`, an SQL expression, says, unless nobody listens: who does shares a lock, and waits
  /// for it until the transactions are over that found it free. An announcement wakes every process that
  /// listens to anything in the database, the owner's among them, and costs more than the rest of a small
  /// batch.
  std::string announcement(std::string_view text) const;
  /// Takes that lock.
  std::string joining_the_audience() const;

 private:
  std::string schema_;
};

/// The content of `pawl_meta`.
struct Meta {
  std::int64_t schema = 0;
  std::string incarnation;
  Seq high = 0;     ///< numbers up to this one have been given out, whatever the log holds
  Seq flushed = 0;  ///< heads are true up to this entry; what follows is replayed from the log
  Seq horizon = 0;
  Time last_at{};
  std::string system;         ///< identifier of the database cluster that wrote it
  std::int64_t timeline = 0;  ///< highest seen of that cluster
};

/// What a server says of itself.
struct ServerFacts {
  std::string system;
  std::int64_t timeline = 0;
  std::string synchronous_commit;
  std::vector<std::string> unsafe;               ///< settings that lose acknowledged commits
  std::vector<std::string> weakened_guarantees;  ///< sentences for `StoreInfo::weakened_guarantees`
};

/// Errors: `invalid_argument` where the server is too old or not UTF-8.
Result<ServerFacts> server_facts(Connection& db);

enum class Create : std::uint8_t { no, yes };

/// Brings the schema to `kSchemaVersion` under an advisory lock. Errors: `store_newer`; `invalid_argument`
/// where there is no store and none may be made.
Result<void> migrate(Connection& db, const Names& names, Create create);
/// The version that is there; 0 where there is no store.
Result<std::int64_t> stored_version(Connection& db, const Names& names);

Result<Meta> read_meta(Connection& db, const Names& names);
/// Queues setting one value.
void queue_meta(Connection& db, const Names& names, std::string_view name, std::string_view value);
inline void queue_meta(Connection& db, const Names& names, std::string_view name, std::int64_t value) {
  queue_meta(db, names, name, std::to_string(value));
}

/// 32 random hexadecimal digits.
std::string make_incarnation();

/// Whether a name is one of Pawl's own tables.
bool is_own_table(std::string_view name);

}  // namespace pawl::postgres
