// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A plain session beside the store's own, for what two sessions do to each other.
///
///     Session other(place);
///     other.run("BEGIN");
///     other.begin("UPDATE …");            // sent, not waited for
///     other.wait_until_blocked(place);
///     other.finish();                      // the SQLSTATE, or "" where it went well

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

/// Used by one thread at a time.
class Session {
 public:
  explicit Session(const PostgresPlace& place);

  /// First column of the first row; throws where the statement fails.
  std::string run(const std::string& sql);
  void begin(const std::string& sql);
  std::string finish();
  /// What was announced on the channels that it listens to, since the last call.
  std::vector<std::string> heard();
  int backend() const { return PQbackendPID(db_.get()); }

 private:
  std::unique_ptr<PGconn, decltype(&PQfinish)> db_;
};

/// Waits until a backend waits for a lock; looks as often as the database answers.
void wait_until_blocked(PostgresPlace& place, const std::string& backend);
/// Waits until a query gives this answer.
void wait_until(PostgresPlace& place, const std::string& sql, const std::string& answer);
/// The backend that the owner has recorded.
std::string owner_backend(PostgresPlace& place);

}  // namespace pawl::test
