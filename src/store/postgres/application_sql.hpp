// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the application's statements on a connection, in few round trips.
///
///     PAWL_CHECK(application.run(db, write.sql, Allow::write));   // inside the batch's transaction
///     PAWL_TRY(auto rows, application.query(db, statement));
///
/// For the connection's thread.

#include <span>
#include <string>
#include <vector>

#include "pawl/sql.hpp"
#include "store/postgres/connection.hpp"
#include "store/postgres/sql_text.hpp"

namespace pawl::postgres {

class ApplicationSql {
 public:
  explicit ApplicationSql(std::string schema) : schema_(std::move(schema)) {}

  /// Runs all or none of the statements, within a savepoint of the open transaction; queued statements are
  /// sent first, in the same round trip. Deadlocks and serialization failures are retried a few times. The
  /// errors `sql_refused`, `sql_failed` and `row_expectation_failed` leave the transaction as it was; any
  /// other error ends it.
  Result<void> run(Connection& db, std::span<const Sql> statements, Allow allow);

  /// Additional errors: those of `QueryWatch` and `QueryRows`; then the connection counts as lost.
  Result<std::vector<std::vector<SqlValue>>> query(Connection& db, const Sql& sql, const QueryWatch& watch,
                                                   const QueryLimits& limits);

  /// Checks whether these statements are allowed; sends nothing. Errors: `sql_refused`, `sql_failed`.
  Result<void> check(std::span<const Sql> statements, Allow allow) const;

 private:
  Result<SqlText> prepare(const Sql& sql, Allow allow) const;
  void queue(Connection& db, const Sql& sql, const SqlText& text, Format format) const;
  Result<void> attempt(Connection& db, std::span<const Sql> statements, const std::vector<SqlText>& texts);
  Result<void> expectations(const std::vector<Rows>& results, std::size_t first,
                            std::span<const Sql> statements) const;

  std::string schema_;
};

}  // namespace pawl::postgres
