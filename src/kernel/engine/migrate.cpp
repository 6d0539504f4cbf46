// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/migrate.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <variant>

namespace pawl {
namespace {

// Stored beside the application's tables, so that it moves with them.
Sql make_record() {
  return {.text = fmt::format("CREATE TABLE IF NOT EXISTS {}(owner TEXT NOT NULL, number BIGINT NOT NULL, "
                              "PRIMARY KEY(owner, number))",
                              kMigrationRecord)};
}

Result<std::map<std::string, std::size_t>> read_applied(Store& store) {
  PAWL_TRY(const auto rows,
           store.query(
               {.text = fmt::format("SELECT owner, MAX(number) FROM {} GROUP BY owner", kMigrationRecord)}));
  std::map<std::string, std::size_t> applied;
  for (const auto& row : rows) {
    const auto* owner = std::get_if<std::string>(&row.at(0).get());
    const auto* number = std::get_if<std::int64_t>(&row.at(1).get());
    if (owner == nullptr || number == nullptr || *number < 1) {
      return fail(Code::store_corrupt,
                  fmt::format("the table {} holds what was not written there", kMigrationRecord));
    }
    applied[*owner] = static_cast<std::size_t>(*number);
  }
  return applied;
}

Result<void> check_known(const std::string& owner, std::size_t applied, std::size_t known) {
  if (applied <= known) return {};
  return fail(
      Code::store_newer,
      fmt::format("the tables of \"{}\" are of migration {}, this program knows {}; use a newer program",
                  owner, applied, known),
      {{"owner", owner}, {"applied", std::to_string(applied)}, {"known", std::to_string(known)}});
}

}  // namespace

Result<void> migrate(Store& store, const std::map<std::string, std::vector<Migration>>& by_owner) {
  if (by_owner.empty()) return {};
  PAWL_CHECK(store.execute(std::vector{make_record()}));
  PAWL_TRY(auto applied, read_applied(store));
  for (const auto& [owner, migrations] : by_owner) {
    PAWL_CHECK(check_known(owner, applied[owner], migrations.size()));
  }
  for (const auto& [owner, migrations] : by_owner) {
    for (auto number = applied[owner] + 1; number <= migrations.size(); ++number) {
      auto statements = migrations[number - 1];
      statements.push_back(
          {.text = fmt::format("INSERT INTO {}(owner, number) VALUES(?1, ?2)", kMigrationRecord),
           .rows = {{owner, static_cast<std::int64_t>(number)}}});
      const auto done = store.execute(statements);
      if (!done) {
        return fail(Error(done.error()).while_(fmt::format("in migration {} of \"{}\"", number, owner)));
      }
    }
  }
  return {};
}

}  // namespace pawl
