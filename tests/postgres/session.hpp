// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A session beside those of the store, for tests of two concurrent sessions.
///
///     Session other(place);
///     other.run("BEGIN");
///     other.begin("UPDATE …");            // sent without waiting
///     other.wait_until_blocked(place);
///     other.finish();                      // the SQLSTATE, or "" on success

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/postgres/postgres_place.hpp"

namespace pawl::test {

/// Ends a test that would hang otherwise. Far longer than anything takes on a loaded machine: no test is
/// about time.
inline constexpr std::chrono::minutes kHangGuard(5);

/// For one thread at a time.
class Session {
 public:
  explicit Session(const PostgresPlace& place);

  /// First column of the first row; throws if the statement fails.
  std::string run(const std::string& sql);
  void begin(const std::string& sql);
  std::string finish();
  /// Notifications since the last call, on the channels to which this session listens.
  std::vector<std::string> notifications();
  int backend() const { return PQbackendPID(db_.get()); }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> db_;
};

/// Polls until a backend waits for a lock.
void wait_until_blocked(PostgresPlace& place, const std::string& backend);
/// Polls until a query returns this answer.
void wait_until(PostgresPlace& place, const std::string& sql, const std::string& answer);
/// The backend that the owner recorded.
std::string owner_backend(PostgresPlace& place);

}  // namespace pawl::test
