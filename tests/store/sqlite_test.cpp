// SPDX-License-Identifier: Apache-2.0
// The conformance suite on SQLite: on files, on a simulated disk whose process is killed, and on one whose
// power is cut.
#include "pawl/sim_disk.hpp"
#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

/// A store on a simulated disk. A crash kills the process, or cuts the power with whatever that does to the
/// disk.
class SimulatedPlace final : public Place {
 public:
  explicit SimulatedPlace(bool cuts_power) : cuts_power_(cuts_power) {}

  Result<std::unique_ptr<Store>> open(const PlaceOptions& wanted) override {
    return open_sqlite({.path = "pawl.db",
                        .flush_every = wanted.flush_every,
                        .entry_bytes = wanted.entry_bytes,
                        .query_limits = wanted.query_limits,
                        .vfs = disk_.vfs_name()});
  }
  Result<std::unique_ptr<Store>> open_read_only() override {
    return open_sqlite({.path = "pawl.db", .read_only = true, .vfs = disk_.vfs_name()});
  }
  Result<std::unique_ptr<Store>> open_after_crash(std::unique_ptr<Store> store,
                                                  const PlaceOptions& options) override {
    if (cuts_power_) {
      disk_.power_cut(sim::Unsynced::random);
    } else {
      disk_.process_kill();
    }
    store.reset();
    return open(options);
  }
  std::string backup_path() override { return directory_.file("backup.db"); }
  Result<std::unique_ptr<Store>> open_backup() override { return open_sqlite({.path = backup_path()}); }

 private:
  bool cuts_power_;
  Directory directory_;
  sim::Disk disk_{20'241};
};

const auto kPlaces =
    testing::Values([] { return std::unique_ptr<Place>(std::make_unique<SqlitePlace>()); },
                    [] { return std::unique_ptr<Place>(std::make_unique<SimulatedPlace>(false)); },
                    [] { return std::unique_ptr<Place>(std::make_unique<SimulatedPlace>(true)); });

std::string place_name(const testing::TestParamInfo<MakePlace>& info) {
  return std::array{"File", "Killed", "PowerCut"}.at(info.index);
}

/// What only SQLite's language can say.
class SqliteSql : public StoreSql {};

TEST_P(SqliteSql, ATableThatAnswersConflictsWithRollbackIsRefused) {
  ASSERT_TRUE(
      store_->execute(std::vector{plain("CREATE TABLE strict(id TEXT UNIQUE ON CONFLICT ROLLBACK)")}));
  EXPECT_EQ(code(run(plain("INSERT INTO strict VALUES('a')"))), Code::sql_refused);
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Sqlite, Conformance, kPlaces, place_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, StoreSql, kPlaces, place_name);
INSTANTIATE_TEST_SUITE_P(Sqlite, SqliteSql, kPlaces, place_name);

}  // namespace pawl::test
