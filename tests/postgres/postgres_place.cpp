// SPDX-License-Identifier: Apache-2.0
#include "tests/postgres/postgres_place.hpp"

namespace pawl::test {

PostgresPlace::PostgresPlace(Server& server) : server_(server), database_(server.create_database()) {}

PostgresPlace::~PostgresPlace() {
  server_.drop_database(database_);
  if (!backup_.empty()) server_.drop_database(backup_);
}

PostgresOptions PostgresPlace::options(const PlaceOptions& wanted) const {
  return {.url = server_.url(database_),
          .flush_every = wanted.flush_every,
          .entry_bytes = wanted.entry_bytes,
          .query_limits = wanted.query_limits};
}

Result<std::unique_ptr<Store>> PostgresPlace::open(const PlaceOptions& wanted) {
  return open_postgres(options(wanted));
}

Result<std::unique_ptr<Store>> PostgresPlace::open_read_only() {
  auto wanted = options();
  wanted.read_only = true;
  return open_postgres(wanted);
}

Result<std::unique_ptr<Store>> PostgresPlace::open_after_crash(std::unique_ptr<Store> store,
                                                               const PlaceOptions& wanted) {
  auto taking = options(wanted);
  taking.take_over = true;
  auto next = open_postgres(taking);
  // Fenced by now, so that its closing writes nothing.
  store.reset();
  return next;
}

std::string PostgresPlace::backup_path() {
  if (backup_.empty()) backup_ = server_.create_database();
  return server_.url(backup_);
}

Result<std::unique_ptr<Store>> PostgresPlace::open_backup() { return open_postgres({.url = backup_path()}); }

}  // namespace pawl::test
