// SPDX-License-Identifier: Apache-2.0
#pragma once

/// PostgreSQL stores for tests: each in a database of its own on the program's server.

#include <memory>
#include <string>
#include <vector>

#include "tests/store/conformance.hpp"
#include "tests/support/postgres_server.hpp"

namespace pawl::test {

class PostgresPlace final : public Place {
 public:
  explicit PostgresPlace(Server& server = shared_server());
  ~PostgresPlace() override;

  Result<std::unique_ptr<Store>> open(const PlaceOptions& options) override;
  Result<std::unique_ptr<Store>> open_read_only() override;
  /// Takes the store over from one that still lives, so that it cannot tidy up.
  Result<std::unique_ptr<Store>> open_after_crash(std::unique_ptr<Store> store,
                                                  const PlaceOptions& options) override;
  std::string backup_path() override;
  Result<std::unique_ptr<Store>> open_backup() override;

  PostgresOptions options(const PlaceOptions& wanted = {}) const;
  Server& server() { return server_; }
  const std::string& database() const { return database_; }
  /// A statement of the superuser in this place's database.
  std::string sql(const std::string& text) { return server_.run(database_, text); }

 private:
  Server& server_;
  std::string database_;
  std::string backup_;
};

}  // namespace pawl::test
