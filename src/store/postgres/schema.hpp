// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The format of a Pawl schema in a PostgreSQL database: its tables, by numbered migrations, and the table
/// `pawl_meta`; and the requirements for the server.
///
///     PAWL_CHECK(migrate(db, names, Create::yes));
///     PAWL_TRY(auto meta, read_meta(db, names));
///
/// Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/postgres/connection.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// The newest schema this program writes.
inline constexpr std::int64_t kSchemaVersion = 1;

/// Inserts the name of the schema into statements: "{s}.log" becomes "pawl.log".
class Names {
 public:
  explicit Names(std::string schema) : schema_(std::move(schema)) {}
  const std::string& schema() const { return schema_; }
  std::string operator()(std::string_view sql) const;
  /// The channel on which commits and owners are announced.
  std::string channel() const { return "pawl_" + schema_; }
  /// SQL that announces the value of `text`, an SQL expression, if there is a listener. Listeners hold a
  /// shared lock, for which they wait until the transactions have ended that found it free. The check is
  /// worthwhile because an announcement wakes every listening process of the database, including the owner,
  /// and costs more than the rest of a small batch.
  std::string announcement(std::string_view text) const;
  /// SQL that takes that lock.
  std::string listener_lock() const;

 private:
  std::string schema_;
};

/// The contents of `pawl_meta`.
struct Meta {
  std::int64_t schema = 0;
  std::string incarnation;
  Seq high = 0;     ///< numbers up to this one have been used, even if the log does not contain them
  Seq flushed = 0;  ///< heads are up to date up to this entry; later entries are replayed from the log
  Seq horizon = 0;
  Time last_at{};
  std::string system;         ///< identifier of the database cluster that wrote it
  std::int64_t timeline = 0;  ///< highest seen of that cluster
};

/// Facts about the server.
struct ServerFacts {
  std::string system;
  std::int64_t timeline = 0;
  std::string synchronous_commit;
  std::vector<std::string> unsafe;               ///< settings that lose acknowledged commits
  std::vector<std::string> weakened_guarantees;  ///< sentences for `StoreInfo::weakened_guarantees`
};

/// Error: `invalid_argument` if the server is too old or the database is not UTF-8.
Result<ServerFacts> server_facts(Connection& db);

enum class Create : std::uint8_t { no, yes };

/// Migrates the schema to `kSchemaVersion` under an advisory lock. Errors: `store_newer`; `invalid_argument`
/// if there is no store and `create` forbids to create one.
Result<void> migrate(Connection& db, const Names& names, Create create);
/// The stored version; 0 if there is no store.
Result<std::int64_t> stored_version(Connection& db, const Names& names);

Result<Meta> read_meta(Connection& db, const Names& names);
/// Queues a statement that sets one value.
void queue_meta(Connection& db, const Names& names, std::string_view name, std::string_view value);
inline void queue_meta(Connection& db, const Names& names, std::string_view name, std::int64_t value) {
  queue_meta(db, names, name, std::to_string(value));
}

/// 32 random hexadecimal digits.
std::string make_incarnation();

/// Whether a name is one of Pawl's own tables.
bool is_own_table(std::string_view name);

}  // namespace pawl::postgres
