// SPDX-License-Identifier: Apache-2.0
#include "tests/postgres/session.hpp"

#include <chrono>
#include <stdexcept>

namespace pawl::test {

Session::Session(const PostgresPlace& place) : db_(PQconnectdb(place.options().url.c_str()), &PQfinish) {
  if (PQstatus(db_.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(db_.get()));
}

std::string Session::run(const std::string& sql) {
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(db_.get(), sql.c_str()), &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
    throw std::runtime_error(PQerrorMessage(db_.get()));
  return PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
}

std::vector<std::string> Session::notifications() {
  run("SELECT 1");  // with its answer comes what was announced before
  std::vector<std::string> texts;
  while (auto* raw = PQnotifies(db_.get())) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notice(raw, &PQfreemem);
    texts.emplace_back(notice->extra);
  }
  return texts;
}

void Session::begin(const std::string& sql) {
  if (PQsendQuery(db_.get(), sql.c_str()) != 1) throw std::runtime_error(PQerrorMessage(db_.get()));
}

std::string Session::finish() {
  std::string state;
  while (auto* raw = PQgetResult(db_.get())) {
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(raw, &PQclear);
    if (PQresultStatus(raw) == PGRES_FATAL_ERROR) state = PQresultErrorField(raw, PG_DIAG_SQLSTATE);
  }
  return state;
}

void wait_until(PostgresPlace& place, const std::string& sql, const std::string& answer) {
  Session looks(place);
  const auto end = std::chrono::steady_clock::now() + kHangGuard;
  while (looks.run(sql) != answer) {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it never came to: " + sql);
  }
}

void wait_until_blocked(PostgresPlace& place, const std::string& backend) {
  wait_until(place,
             "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = " + backend,
             "1");
}

std::string owner_backend(PostgresPlace& place) { return place.sql("SELECT backend FROM pawl.leases"); }

}  // namespace pawl::test
