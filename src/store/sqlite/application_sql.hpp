// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs the application's statements on a connection: prepares them under the authorizer, caches them, binds
/// and steps per row, and compares the affected rows.
///
///     PAWL_CHECK(sql.run(statement, Allow::write));
///
/// The caller provides the transaction around it.

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pawl/sql.hpp"
#include "store/query.hpp"
#include "store/sqlite/authorizer.hpp"
#include "store/sqlite/connection.hpp"

namespace pawl::sqlite {

/// For the connection's thread; not movable once attached.
class ApplicationSql {
 public:
  /// Installs the authorizer on this connection, which must outlive this object.
  void attach(Database& db);

  /// Errors: `sql_refused`, `sql_failed`, `row_expectation_failed`; `disk_full`, `store_io` and
  /// `store_corrupt` if the store itself failed; then the whole transaction is lost.
  Result<void> run(const Sql& sql, Allow allow);
  /// Additional errors: those of `QueryWatch` and `QueryRows`.
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& sql, const QueryWatch& watch,
                                                   const QueryLimits& limits);

  /// Drops the prepared statements, because the schema has changed.
  void clear();

 private:
  Result<Statement*> prepared(const std::string& text, Allow allow);
  Result<Statement> compile(const std::string& text);
  Result<void> check_program(const std::string& text);
  Result<void> bind(Statement& statement, const Sql& sql, const std::vector<SqlValue>& row);
  Error failure(int code, const Sql& sql) const;

  Database* db_ = nullptr;
  Authorizer authorizer_;
  struct Kept {
    std::string text;
    Statement statement;
  };
  std::list<Kept> kept_;  ///< the most recently used first
  std::unordered_map<std::string_view, std::list<Kept>::iterator> by_text_;
};

}  // namespace pawl::sqlite
