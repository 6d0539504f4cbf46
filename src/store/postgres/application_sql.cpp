// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/application_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "store/postgres/backoff.hpp"
#include "store/postgres/wire.hpp"

namespace pawl::postgres {
namespace {

/// How often statements are run that meet a deadlock, and how long the pauses may be in total.
constexpr int kAttempts = 5;
constexpr Duration kPauses = std::chrono::minutes(1);

std::string shown(const std::string& text) {
  return text.size() <= 120 ? text : fmt::format("{}...", std::string_view(text).substr(0, 117));
}

Error refusal(const std::string& what, const std::string& text) {
  return Error(Code::sql_refused, fmt::format("{} is not allowed here: {}", what, shown(text)),
               {{"refused", what}, {"sql", shown(text)}});
}

Error failure(const Error& cause, const std::string& text) {
  const auto state = std::string(cause.field("sqlstate"));
  if (state == "25006") return refusal("anything but reading", text);
  return Error(Code::sql_failed, fmt::format("{}: {}", cause.message(), shown(text)),
               {{"sqlstate", state}, {"sql", shown(text)}});
}

/// Whether the server refused the statement, as opposed to a failure of the server.
bool concerns_statement(const Error& error) {
  return error.code() != Code::disk_full && error.code() != Code::store_fenced &&
         error.code() != Code::store_corrupt && !error.field("sqlstate").empty();
}

Params to_params(const std::vector<SqlValue>& row) {
  Params params;
  struct Visitor {
    Params& params;
    void operator()(std::nullptr_t) const { params.null(); }
    void operator()(std::int64_t number) const { params.int8(number); }
    void operator()(double number) const { params.float8(number); }
    void operator()(const std::string& text) const { params.inferred(text); }
    void operator()(const Blob& blob) const { params.bytea(blob.bytes); }
  };
  for (const auto& value : row) std::visit(Visitor{params}, value.get());
  return params;
}

double to_double(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

SqlValue number_value(const std::string& text) {
  std::int64_t whole = 0;
  const auto* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, whole).ptr == end) return whole;
  return to_double(text);
}

Blob to_blob(const std::string& hex) {
  Blob blob;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 2; i + 1 < hex.size(); i += 2) {
    blob.bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return blob;
}

SqlValue column_value(const Rows& rows, int row, int column) {
  if (rows.is_null(row, column)) return nullptr;
  std::string text(rows.bytes(row, column));
  switch (rows.type(column)) {
    case kInt2:
    case kInt4:
    case kInt8:
    case kNumeric:
      return number_value(text);
    case kFloat4:
    case kFloat8:
      return to_double(text);
    case kBool:
      return std::int64_t{text == "t"};
    case kBytea:
      return to_blob(text);
    default:
      return text;
  }
}

}  // namespace

Result<SqlText> ApplicationSql::prepare(const Sql& sql, Allow allow) const {
  auto text = SqlText::scan(sql.text);
  if (const auto what = refused(text, allow, schema_)) return fail(refusal(*what, sql.text));
  for (const auto& row : sql.rows) {
    if (row.size() == text.parameters) continue;
    return fail(Code::sql_failed,
                fmt::format("the statement has {} parameters, the row {} values: {}", text.parameters,
                            row.size(), shown(sql.text)),
                {{"sql", shown(sql.text)}});
  }
  return text;
}

Result<void> ApplicationSql::check(std::span<const Sql> statements, Allow allow) const {
  for (const auto& sql : statements) PAWL_CHECK(prepare(sql, allow));
  return {};
}

void ApplicationSql::queue(Connection& db, const Sql& sql, const SqlText& text, Format format) const {
  std::vector<Oid> types;
  bool prepared = false;
  for (const auto& row : sql.rows) {
    const auto params = to_params(row);
    if (!std::exchange(prepared, true) || params.types() != types) db.queue_unnamed(text.translated, params);
    types = params.types();
    // An unknown word is only parsed: if the server knows it, it was not meant to be run here.
    if (is_known(text)) db.queue_again(params, format);
  }
}

Result<void> ApplicationSql::expectations(const std::vector<Rows>& results, std::size_t first,
                                          std::span<const Sql> statements) const {
  auto next = first;
  for (const auto& sql : statements) {
    if (next + sql.rows.size() > results.size()) return {};
    std::int64_t affected = 0;
    for (std::size_t i = 0; i < sql.rows.size(); ++i) affected += results[next + i].affected();
    next += sql.rows.size();
    if (!sql.expect || *sql.expect == affected) continue;
    return fail(
        Code::row_expectation_failed,
        fmt::format("expected {} rows to be affected, {} were: {}", *sql.expect, affected, shown(sql.text)),
        {{"expected", std::to_string(*sql.expect)},
         {"actual", std::to_string(affected)},
         {"sql", shown(sql.text)}});
  }
  return {};
}

Result<void> ApplicationSql::attempt(Connection& db, std::span<const Sql> statements,
                                     const std::vector<SqlText>& texts) {
  std::vector<std::size_t> ends;  // position of each statement's last message
  db.queue("SAVEPOINT application");
  // A deferred constraint belongs to this transaction, not to the whole batch.
  db.queue("SET CONSTRAINTS ALL DEFERRED");
  const auto before = db.queued_results();
  for (std::size_t i = 0; i < statements.size(); ++i) {
    queue(db, statements[i], texts[i], Format::text);
    ends.push_back(db.queued());
  }
  db.queue("SET CONSTRAINTS ALL IMMEDIATE");
  auto results = db.sync();
  if (db.lost()) return fail(std::move(results).error());
  Result<void> done;
  if (!results) {
    const auto found = std::ranges::upper_bound(ends, db.failed_at());
    const auto& culprit =
        statements[std::min(static_cast<std::size_t>(found - ends.begin()), statements.size() - 1)];
    const auto& error = results.error();
    if (!concerns_statement(error)) return fail(error);
    done = expectations(db.take_partial(), before, statements);
    if (done && error.code() == Code::rolled_back) {
      done = fail(error);
    } else if (done) {
      done = fail(failure(error, culprit.text));
    }
  } else {
    done = expectations(*results, before, statements);
  }
  for (std::size_t i = 0; i < statements.size() && done; ++i) {
    if (!is_known(texts[i])) done = fail(refusal("this kind of statement", statements[i].text));
  }
  if (!done) {
    db.queue("ROLLBACK TO application");
    db.queue("RELEASE application");
    if (auto back = db.sync(); !back) return fail(std::move(back).error());
    return done;
  }
  db.queue("RELEASE application");  // travels with what comes next
  return {};
}

Result<void> ApplicationSql::run(Connection& db, std::span<const Sql> statements, Allow allow) {
  std::vector<SqlText> texts;
  for (const auto& sql : statements) {
    PAWL_TRY(auto text, prepare(sql, allow));
    texts.push_back(std::move(text));
  }
  Backoff pause(kPauses);
  for (int i = 1;; ++i) {
    auto done = attempt(db, statements, texts);
    if (done || done.error().code() != Code::rolled_back) return done;
    // Let the other transaction go first; without a pause these statements could lock again before it wakes
    // up.
    if (i == kAttempts || !pause.again()) return fail(failure(done.error(), statements.front().text));
  }
}

Result<std::vector<std::vector<SqlValue>>> ApplicationSql::query(Connection& db, const Sql& sql,
                                                                 const QueryWatch& watch,
                                                                 const QueryLimits& limits) {
  PAWL_TRY(const auto text, prepare(sql, Allow::read));
  db.queue("BEGIN READ ONLY");
  queue(db, sql, text, Format::text);
  db.queue("COMMIT");
  QueryRows result(limits);
  auto done = db.stream(watch, [&](const Rows& rows) {
    std::vector<SqlValue> values;
    for (int column = 0; column < rows.columns(); ++column) values.push_back(column_value(rows, 0, column));
    return result.add(std::move(values));
  });
  if (!done) {
    if (db.lost()) return fail(std::move(done).error());
    db.roll_back();
    // The server was faster.
    if (done.error().field("sqlstate") == "57014") PAWL_CHECK(watch.check());
    return fail(failure(done.error(), sql.text));
  }
  if (!is_known(text)) return fail(refusal("this kind of statement", sql.text));
  return result.take();
}

}  // namespace pawl::postgres
