// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/application_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::sqlite {
namespace {

constexpr std::size_t kKeptStatements = 64;

std::string shown(const std::string& text) {
  return text.size() <= 120 ? text : fmt::format("{}...", std::string_view(text).substr(0, 117));
}

Error refusal(const std::string& what, const std::string& text) {
  return Error(Code::sql_refused, fmt::format("{} is not allowed here: {}", what, shown(text)),
               {{"refused", what}, {"sql", shown(text)}});
}

void bind_value(sqlite3_stmt* statement, int index, const SqlValue& value) {
  struct Visitor {
    sqlite3_stmt* statement;
    int index;
    void operator()(std::nullptr_t) const { sqlite3_bind_null(statement, index); }
    void operator()(std::int64_t number) const { sqlite3_bind_int64(statement, index, number); }
    void operator()(double number) const { sqlite3_bind_double(statement, index, number); }
    void operator()(const std::string& text) const {
      sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
    void operator()(const Blob& blob) const {
      sqlite3_bind_blob64(statement, index, blob.bytes.data(), blob.bytes.size(), SQLITE_STATIC);
    }
  };
  std::visit(Visitor{statement, index}, value.get());
}

SqlValue column_value(const Statement& row, int column) {
  switch (sqlite3_column_type(row.get(), column)) {
    case SQLITE_INTEGER:
      return row.integer(column);
    case SQLITE_FLOAT:
      return sqlite3_column_double(row.get(), column);
    case SQLITE_TEXT:
      return std::string(row.text(column));
    case SQLITE_BLOB:
      return Blob{std::string(row.text(column))};
    default:
      return nullptr;
  }
}

/// Interrupts the statement of this scope once the watch returns an error.
class Interruptible {
 public:
  Interruptible(Database& db, const QueryWatch& watch) : db_(db) {
    constexpr int kSteps = 1000;  // of SQLite's virtual machine: some microseconds
    sqlite3_progress_handler(db_.get(), kSteps, &Interruptible::ask, const_cast<QueryWatch*>(&watch));
  }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible() { sqlite3_progress_handler(db_.get(), 0, nullptr, nullptr); }

 private:
  static int ask(void* watch) { return static_cast<const QueryWatch*>(watch)->check() ? 0 : 1; }

  Database& db_;
};

}  // namespace

void ApplicationSql::attach(Database& db) {
  db_ = &db;
  authorizer_.install(db);
}

void ApplicationSql::clear() {
  by_text_.clear();
  kept_.clear();
}

Error ApplicationSql::failure(int code, const Sql& sql) const {
  auto error = db_->error(code, "running an application statement");
  const int primary = code & 0xff;
  if (primary == SQLITE_FULL || primary == SQLITE_IOERR || primary == SQLITE_CORRUPT ||
      primary == SQLITE_NOTADB || primary == SQLITE_NOMEM || primary == SQLITE_READONLY ||
      primary == SQLITE_BUSY) {
    return error;
  }
  if (primary == SQLITE_AUTH) {
    return refusal(authorizer_.refused(), sql.text);
  }
  return Error(Code::sql_failed,
               fmt::format("SQLite says '{}': {}", sqlite3_errmsg(db_->get()), shown(sql.text)),
               {{"sqlite_code", std::string(error.field("sqlite_code"))}, {"sql", shown(sql.text)}});
}

Result<Statement> ApplicationSql::compile(const std::string& text) {
  sqlite3_stmt* raw = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v3(db_->get(), text.c_str(), static_cast<int>(text.size()) + 1,
                                      SQLITE_PREPARE_PERSISTENT, &raw, &rest);
  Statement statement(raw);
  if (code != SQLITE_OK) return fail(failure(code, Sql{.text = text}));
  if (!statement || text.find('\0') != std::string::npos) {
    return fail(refusal("an empty text, or one with a NUL byte,", text));
  }
  // Only whitespace and comments may follow: they prepare to nothing.
  sqlite3_stmt* second = nullptr;
  const int after = sqlite3_prepare_v3(db_->get(), rest, -1, 0, &second, nullptr);
  const Statement further(second);
  if (after != SQLITE_OK || further) {
    return fail(refusal("a text of several statements", text));
  }
  return statement;
}

Result<void> ApplicationSql::check_program(const std::string& text) {
  // The authorizer is not asked about this; it shows in SQLite's compiled program. ON CONFLICT ROLLBACK and
  // RAISE(ROLLBACK), also in triggers and table definitions, are halts with the error action 1; they would
  // take the other transactions of the batch with them.
  PAWL_TRY(auto program, compile("EXPLAIN " + text));
  while (true) {
    PAWL_TRY(const bool more, program.row());
    if (!more) return {};
    const auto opcode = program.text(1);
    const bool halts = opcode == "Halt" || opcode == "HaltIfNull";
    if (halts && program.integer(2) != 0 && program.integer(3) == 1) {
      return fail(refusal("ROLLBACK as an answer to a conflict (ABORT does what is needed)", text));
    }
    if (opcode == "Vacuum") return fail(refusal("VACUUM", text));
  }
}

Result<Statement*> ApplicationSql::prepared(const std::string& text, Allow allow) {
  if (const auto found = by_text_.find(text); found != by_text_.end()) {
    kept_.splice(kept_.begin(), kept_, found->second);
    return &kept_.front().statement;
  }
  PAWL_TRY(auto statement, compile(text));
  const bool explains = sqlite3_stmt_isexplain(statement.get()) != 0;
  if (allow != Allow::read && !explains) PAWL_CHECK(check_program(text));
  if (allow == Allow::read && sqlite3_stmt_readonly(statement.get()) == 0) {
    return fail(refusal("anything but reading", text));
  }
  kept_.push_front({text, std::move(statement)});
  by_text_.emplace(kept_.front().text, kept_.begin());
  if (kept_.size() > kKeptStatements) {
    by_text_.erase(kept_.back().text);
    kept_.pop_back();
  }
  return &kept_.front().statement;
}

Result<void> ApplicationSql::bind(Statement& statement, const Sql& sql, const std::vector<SqlValue>& row) {
  const auto wanted = static_cast<std::size_t>(sqlite3_bind_parameter_count(statement.get()));
  if (wanted != row.size()) {
    return fail(Code::sql_failed,
                fmt::format("the statement has {} parameters, the row {} values: {}", wanted, row.size(),
                            shown(sql.text)),
                {{"sql", shown(sql.text)}});
  }
  for (std::size_t i = 0; i < row.size(); ++i) bind_value(statement.get(), static_cast<int>(i) + 1, row[i]);
  return {};
}

Result<void> ApplicationSql::run(const Sql& sql, Allow allow) {
  const auto scope = authorizer_.allow(allow);
  PAWL_TRY(auto* statement, prepared(sql.text, allow));
  const bool writes = sqlite3_stmt_readonly(statement->get()) == 0;
  std::int64_t affected = 0;
  for (const auto& row : sql.rows) {
    const ResetGuard guard(*statement);
    PAWL_CHECK(bind(*statement, sql, row));
    int code = statement->step();
    while (code == SQLITE_ROW) code = statement->step();
    if (code != SQLITE_DONE) return fail(failure(code, sql));
    if (writes) affected += sqlite3_changes64(db_->get());
  }
  if (sql.expect && *sql.expect != affected) {
    return fail(
        Code::row_expectation_failed,
        fmt::format("expected {} rows to be affected, {} were: {}", *sql.expect, affected, shown(sql.text)),
        {{"expected", std::to_string(*sql.expect)},
         {"actual", std::to_string(affected)},
         {"sql", shown(sql.text)}});
  }
  return {};
}

Result<std::vector<std::vector<SqlValue>>> ApplicationSql::query(const Sql& sql, const QueryWatch& watch,
                                                                 const QueryLimits& limits) {
  const Interruptible interruptible(*db_, watch);
  const auto scope = authorizer_.allow(Allow::read);
  PAWL_TRY(auto* statement, prepared(sql.text, Allow::read));
  QueryRows result(limits);
  for (const auto& row : sql.rows) {
    const ResetGuard guard(*statement);
    PAWL_CHECK(bind(*statement, sql, row));
    int code = statement->step();
    for (; code == SQLITE_ROW; code = statement->step()) {
      std::vector<SqlValue> values;
      for (int i = 0; i < sqlite3_column_count(statement->get()); ++i)
        values.push_back(column_value(*statement, i));
      PAWL_CHECK(result.add(std::move(values)));
    }
    if ((code & 0xff) == SQLITE_INTERRUPT) PAWL_CHECK(watch.check());
    if (code != SQLITE_DONE) return fail(failure(code, sql));
  }
  return result.take();
}

}  // namespace pawl::sqlite
