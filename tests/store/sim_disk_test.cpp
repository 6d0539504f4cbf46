// SPDX-License-Identifier: Apache-2.0
// The simulated disk without SQLite between: files, names, cuts, faults.
#include "pawl/sim_disk.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/store/sim_disk_database.hpp"

namespace pawl::sim {
namespace {

constexpr std::size_t kSector = 512;

std::string sectors(std::size_t count, char filling) { return std::string(count * kSector, filling); }

/// Makes the name durable, which for a database SQLite leaves to its journal.
void sync_directory(const Disk& disk) { RawFile(disk, "x-journal", SQLITE_OPEN_MAIN_JOURNAL).sync(); }

/// A durable file of old sectors, marked 'o'.
std::unique_ptr<RawFile> old_file(Disk& disk, std::size_t count) {
  auto file = std::make_unique<RawFile>(disk);
  EXPECT_EQ(file->write(0, sectors(count, 'o')), SQLITE_OK);
  EXPECT_EQ(file->sync(), SQLITE_OK);
  sync_directory(disk);
  return file;
}

/// The first byte of each sector, after checking that no sector is mixed.
std::string marks(const Disk& disk, const std::string& name = "f") {
  const std::string bytes = disk.read_file(name).value();
  std::string found;
  for (std::size_t at = 0; at < bytes.size(); at += kSector) {
    found += bytes[at] == '\0' ? '-' : bytes[at];
    EXPECT_EQ(bytes.substr(at, kSector), std::string(std::min(kSector, bytes.size() - at), bytes[at]));
  }
  return found;
}

/// What a random cut leaves of what `act` does to a durable file of four old sectors, over many seeds.
template <class Act>
std::set<std::string> outcomes(const Act& act) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Disk disk{seed};
    const auto file = old_file(disk, 4);
    act(*file);
    disk.power_cut(Unsynced::random);
    found.insert(marks(disk));
  }
  return found;
}

TEST(SimDisk, ReadsSeeAWriteBeforeItIsDurable) {
  Disk disk{1};
  const auto file = old_file(disk, 2);
  ASSERT_EQ(file->write(512, sectors(1, 'n')), SQLITE_OK);
  EXPECT_EQ(marks(disk), "on");
  EXPECT_EQ(disk.read_file("f", View::durable), sectors(2, 'o'));
  ASSERT_EQ(file->sync(), SQLITE_OK);
  EXPECT_EQ(disk.read_file("f", View::durable), sectors(1, 'o') + sectors(1, 'n'));
}

TEST(SimDisk, AShortReadIsFilledWithZeros) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  std::string into(4, 'x');
  EXPECT_EQ(file->read(510, into), SQLITE_IOERR_SHORT_READ);
  EXPECT_EQ(into, std::string("oo\0\0", 4));
  EXPECT_EQ(file->read(5000, into), SQLITE_IOERR_SHORT_READ);
  EXPECT_EQ(into, std::string(4, '\0'));
}

TEST(SimDisk, APowerCutThatKeepsNothingLeavesWhatWasSynced) {
  Disk disk{1};
  const auto file = old_file(disk, 2);
  file->write(0, sectors(3, 'n'));
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(marks(disk), "oo");
}

TEST(SimDisk, APowerCutThatKeepsEverythingLeavesWhatWasWritten) {
  Disk disk{1};
  const auto file = old_file(disk, 4);
  file->write(0, sectors(3, 'n'));
  file->truncate(1024);
  disk.power_cut(Unsynced::keep_all);
  EXPECT_EQ(marks(disk), "nn");
  EXPECT_EQ(disk.read_file("f", View::durable), sectors(2, 'n')) << "and it is durable now";
}

TEST(SimDisk, ARandomCutTearsAWriteAtAnySector) {
  const auto found = outcomes([](RawFile& file) { file.write(0, sectors(3, 'n')); });
  // Every subset of the three sectors; the fourth was synced and never written again.
  EXPECT_THAT(found,
              testing::UnorderedElementsAre("oooo", "nooo", "onoo", "oono", "nnoo", "nono", "onno", "nnno"));
}

TEST(SimDisk, ARandomCutKeepsLaterWritesWithoutEarlierOnes) {
  const auto found = outcomes([](RawFile& file) {
    file.write(0, sectors(1, '1'));
    file.write(512, sectors(1, '2'));
  });
  EXPECT_THAT(found, testing::UnorderedElementsAre("oooo", "1ooo", "o2oo", "12oo"));
}

TEST(SimDisk, OneSectorNeverGoesBackToAnOlderWrite) {
  const auto found = outcomes([](RawFile& file) {
    file.write(0, sectors(1, '1'));
    file.write(0, sectors(1, '2'));
  });
  EXPECT_THAT(found, testing::UnorderedElementsAre("oooo", "1ooo", "2ooo"));
}

TEST(SimDisk, WritesWithinOneSectorReachTheDiskInOrder) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Disk disk{seed};
    const auto file = old_file(disk, 1);
    file->write(0, "1");
    file->write(1, "2");
    disk.power_cut(Unsynced::random);
    found.insert(disk.read_file("f").value().substr(0, 3));
  }
  EXPECT_THAT(found, testing::UnorderedElementsAre("ooo", "1oo", "12o"));
}

TEST(SimDisk, AFileMayGrowByZerosBeforeItsDataArrives) {
  const auto found = outcomes([](RawFile& file) { file.write(2048, sectors(2, 'n')); });
  EXPECT_THAT(found, testing::UnorderedElementsAre("oooo", "oooon", "oooo-n", "oooonn", "oooo--"));
}

TEST(SimDisk, SizesChangeInOrder) {
  const auto found = outcomes([](RawFile& file) {
    file.truncate(1024);
    file.write(1024, sectors(1, 'n'));
  });
  // The growth cannot be there without the truncation: no old fourth sector behind a new third one.
  EXPECT_THAT(found, testing::UnorderedElementsAre("oooo", "oo", "oon", "oo-"));
}

TEST(SimDisk, WhatWasSyncedIsNeverTouched) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Disk disk{seed};
    const auto file = old_file(disk, 4);
    file->write(512, sectors(1, 's'));
    ASSERT_EQ(file->sync(), SQLITE_OK);
    file->write(1024, sectors(5, 'n'));
    disk.power_cut(Unsynced::random);
    ASSERT_EQ(marks(disk).substr(0, 2), "os") << "seed " << seed;
  }
}

TEST(SimDisk, ANameIsDurableOnlyOnceItsDirectoryIsSynced) {
  Disk disk{1};
  RawFile file(disk);
  ASSERT_EQ(file.write(0, "data"), SQLITE_OK);
  ASSERT_EQ(file.sync(), SQLITE_OK);
  EXPECT_EQ(disk.read_file("f", View::durable), std::nullopt);
  sync_directory(disk);
  EXPECT_EQ(disk.read_file("f", View::durable), "data");
}

TEST(SimDisk, TheFirstSyncOfAJournalOrWalSyncsItsDirectory) {
  for (const int kind : {SQLITE_OPEN_MAIN_JOURNAL, SQLITE_OPEN_SUPER_JOURNAL, SQLITE_OPEN_WAL}) {
    Disk disk{1};
    RawFile file(disk, "dir/w", kind);
    RawFile elsewhere(disk, "other/f");
    ASSERT_EQ(file.sync(), SQLITE_OK);
    EXPECT_EQ(disk.syncs(), 2U);
    ASSERT_EQ(file.sync(), SQLITE_OK);
    EXPECT_EQ(disk.syncs(), 3U) << "only the first";
    disk.power_cut(Unsynced::keep_none);
    EXPECT_THAT(disk.files(), testing::ElementsAre("dir/w")) << "and no other directory";
  }
}

TEST(SimDisk, ADeletedFileComesBackUnlessItsDirectoryWasSynced) {
  for (const bool synced : {false, true}) {
    Disk disk{1};
    old_file(disk, 1);
    ASSERT_EQ(remove_name(disk, "f", synced), SQLITE_OK);
    EXPECT_EQ(disk.read_file("f"), std::nullopt);
    disk.power_cut(Unsynced::keep_none);
    EXPECT_EQ(disk.read_file("f").has_value(), !synced);
  }
}

TEST(SimDisk, AReplacedFileIsTheOldOneOrTheNewOneOrNone) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Disk disk{seed};
    old_file(disk, 1);
    remove_name(disk, "f", false);
    RawFile file(disk);
    file.write(0, sectors(1, 'n'));
    file.sync();
    disk.power_cut(Unsynced::random);
    found.insert(disk.read_file("f") ? marks(disk) : "none");
  }
  EXPECT_THAT(found, testing::UnorderedElementsAre("o", "none", "n"));
}

TEST(SimDisk, RemovingAFileThatIsNotThereSaysSo) {
  Disk disk{1};
  EXPECT_EQ(remove_name(disk, "f", true), SQLITE_IOERR_DELETE_NOENT);
}

TEST(SimDisk, WhatWasOpenIsDeadAfterACrash) {
  for (const bool kill : {false, true}) {
    Disk disk{1};
    const auto file = old_file(disk, 1);
    if (kill) {
      disk.process_kill();
    } else {
      disk.power_cut(Unsynced::random);
    }
    std::string into(1, 'x');
    EXPECT_EQ(file->read(0, into), SQLITE_IOERR);
    EXPECT_EQ(file->write(0, "n"), SQLITE_IOERR);
    EXPECT_EQ(file->truncate(0), SQLITE_IOERR);
    EXPECT_EQ(file->sync(), SQLITE_IOERR);
    EXPECT_EQ(file->lock(SQLITE_LOCK_SHARED), SQLITE_IOERR);
    EXPECT_EQ(marks(disk), "o");
    EXPECT_EQ(RawFile(disk).read(0, into), SQLITE_OK) << "what is opened now is alive";
  }
}

TEST(SimDisk, ConnectionsMayOutliveTheirDisk) {
  auto disk = std::make_unique<Disk>(1);
  auto db = std::make_unique<Connection>(*disk);
  ASSERT_EQ(write_ledger(*db).transactions, 12);
  disk.reset();
  EXPECT_EQ(db->run("DELETE FROM ledger"), SQLITE_IOERR);
  db.reset();
}

TEST(SimDisk, EachDiskHasAVfsOfItsOwnWhileItLives) {
  std::string name;
  {
    Disk one{1};
    Disk two{1};
    name = one.vfs_name();
    EXPECT_NE(name, two.vfs_name());
    RawFile(one, "f").write(0, "1");
    EXPECT_THAT(two.files(), testing::IsEmpty());
  }
  EXPECT_EQ(sqlite3_vfs_find(name.c_str()), nullptr);
}

TEST(SimDisk, ACutAtASyncLeavesThePowerOff) {
  for (const Moment moment : {Moment::before, Moment::after}) {
    Disk disk{1};
    const auto file = old_file(disk, 1);
    disk.cut_at_sync(2, moment, Unsynced::keep_none);
    file->write(0, sectors(1, '1'));
    ASSERT_EQ(file->sync(), SQLITE_OK);
    file->write(0, sectors(1, '2'));
    EXPECT_FALSE(disk.is_off());
    EXPECT_EQ(file->sync(), SQLITE_IOERR) << "the caller learns nothing, whether it took effect or not";
    EXPECT_TRUE(disk.is_off());
    EXPECT_EQ(RawFile(disk).opened(), SQLITE_IOERR);
    disk.power_on();
    EXPECT_EQ(RawFile(disk).opened(), SQLITE_OK);
    EXPECT_EQ(marks(disk), moment == Moment::before ? "1" : "2");
  }
}

TEST(SimDisk, TheHookSeesBothSidesOfEverySync) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  std::vector<std::string> seen;
  disk.on_sync([&](const SyncPoint& point) {
    seen.push_back(std::to_string(point.nth) + (point.moment == Moment::before ? " before " : " after ") +
                   point.name + (point.directory ? " directory " : " ") +
                   disk.read_file("f", View::durable)->substr(0, 1));
  });
  file->write(0, "n");
  file->sync();
  remove_name(disk, "x-journal", true);
  EXPECT_THAT(seen, testing::ElementsAre("4 before f o", "4 after f n", "5 before x-journal directory n",
                                         "5 after x-journal directory n"));
}

TEST(SimDisk, TheHookMayCutThePower) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  disk.on_sync([&](const SyncPoint&) { disk.power_cut(Unsynced::keep_none); });
  file->write(0, "n");
  EXPECT_EQ(file->sync(), SQLITE_IOERR);
  EXPECT_EQ(marks(disk), "o");
}

TEST(SimDisk, TheNthMatchingOperationFails) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  RawFile wal(disk, "f-wal", SQLITE_OPEN_WAL);
  disk.fail_next({.on = Operation::write, .nth = 2, .suffix = "-wal"});
  EXPECT_EQ(wal.write(0, "1"), SQLITE_OK);
  EXPECT_EQ(file->write(0, "o"), SQLITE_OK) << "another file";
  EXPECT_EQ(wal.write(0, "2"), SQLITE_IOERR_WRITE);
  EXPECT_EQ(wal.write(0, "3"), SQLITE_OK) << "once";
}

TEST(SimDisk, EveryOperationCanFail) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  std::string into(1, 'x');
  for (const Operation on : {Operation::open, Operation::read, Operation::truncate, Operation::remove}) {
    disk.fail_next({.on = on});
  }
  EXPECT_EQ(RawFile(disk).opened(), SQLITE_CANTOPEN);
  EXPECT_EQ(file->read(0, into), SQLITE_IOERR_READ);
  EXPECT_EQ(file->truncate(0), SQLITE_IOERR_TRUNCATE);
  EXPECT_EQ(remove_name(disk, "f", true), SQLITE_IOERR_DELETE);
  EXPECT_EQ(marks(disk), "o") << "nothing happened";
  disk.fail_next({.on = Operation::sync_directory});
  EXPECT_EQ(remove_name(disk, "f", true), SQLITE_IOERR_DIR_FSYNC);
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(marks(disk), "o") << "the deletion was not durable";
  disk.fail_next({.on = Operation::write, .with = Failure::full});
  EXPECT_EQ(RawFile(disk).write(0, "n"), SQLITE_FULL);
}

TEST(SimDisk, AFailingDirectorySyncBehindAJournalsSyncGoesUnnoticed) {
  Disk disk{1};
  RawFile journal(disk, "x-journal", SQLITE_OPEN_MAIN_JOURNAL);
  disk.fail_next({.on = Operation::sync_directory, .suffix = "-journal"});
  EXPECT_EQ(journal.sync(), SQLITE_OK) << "SQLite's own VFS ignores it, too";
  disk.power_cut(Unsynced::keep_none);
  EXPECT_THAT(disk.files(), testing::IsEmpty());
}

TEST(SimDisk, AForgottenFaultDoesNotStrike) {
  Disk disk{1};
  RawFile file(disk);
  disk.fail_next({.on = Operation::write});
  disk.clear_faults();
  EXPECT_EQ(file.write(0, "n"), SQLITE_OK);
}

TEST(SimDisk, AfterAFailedSyncTheWritesMayNeverBecomeDurable) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Disk disk{seed};
    const auto file = old_file(disk, 1);
    file->write(0, sectors(1, 'n'));
    disk.fail_next({.on = Operation::sync});
    ASSERT_EQ(file->sync(), SQLITE_IOERR_FSYNC);
    ASSERT_EQ(file->sync(), SQLITE_OK) << "as on Linux, the next sync does not know";
    ASSERT_EQ(marks(disk), "n") << "and reads do not show it";
    disk.power_cut(Unsynced::keep_none);
    found.insert(marks(disk));
  }
  EXPECT_THAT(found, testing::UnorderedElementsAre("o", "n"));
}

TEST(SimDisk, AFailedSyncThatKeepsItsWritesCanBeRepeated) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  file->write(0, sectors(1, 'n'));
  disk.fail_next({.on = Operation::sync, .failed_sync = FailedSync::keeps_writes});
  ASSERT_EQ(file->sync(), SQLITE_IOERR_FSYNC);
  EXPECT_EQ(disk.read_file("f", View::durable), sectors(1, 'o'));
  ASSERT_EQ(file->sync(), SQLITE_OK);
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(marks(disk), "n");
}

TEST(SimDisk, AFullDiskTakesThePartThatFits) {
  Disk disk{1};
  RawFile file(disk);
  RawFile other(disk, "g");
  disk.set_capacity(10);
  EXPECT_EQ(other.write(0, "1234"), SQLITE_OK);
  EXPECT_EQ(file.write(0, "abcdefgh"), SQLITE_FULL);
  EXPECT_EQ(disk.read_file("f"), "abcdef");
  EXPECT_EQ(file.write(2, "XY"), SQLITE_OK) << "what does not grow needs no space";
  EXPECT_EQ(file.write(20, "z"), SQLITE_FULL);
  EXPECT_EQ(disk.read_file("f"), "abXYef");
  EXPECT_EQ(other.truncate(0), SQLITE_OK);
  EXPECT_EQ(file.write(6, "gh"), SQLITE_OK) << "space can be freed";
  disk.set_capacity(std::nullopt);
  EXPECT_EQ(file.write(0, sectors(9, 'n')), SQLITE_OK);
}

TEST(SimDisk, WritesAndSyncsAreCounted) {
  Disk disk{1};
  RawFile file(disk);
  file.write(0, "1");
  file.write(0, "2");
  file.sync();
  EXPECT_EQ(disk.writes(), 2U);
  EXPECT_EQ(disk.syncs(), 1U);
}

TEST(SimDisk, AnImageHoldsUnsyncedWritesAsUnsynced) {
  Disk disk{1};
  const auto file = old_file(disk, 1);
  file->write(0, sectors(1, 'n'));
  const DiskImage image = disk.snapshot();
  file->sync();
  for (const Unsynced unsynced : {Unsynced::keep_none, Unsynced::keep_all}) {
    Disk fork{2};
    fork.restore(image);
    EXPECT_EQ(marks(fork), "n");
    fork.power_cut(unsynced);
    EXPECT_EQ(marks(fork), unsynced == Unsynced::keep_none ? "o" : "n");
  }
  disk.restore(image);
  EXPECT_EQ(file->sync(), SQLITE_IOERR) << "what was open before is dead";
  EXPECT_EQ(disk.read_file("f", View::durable), sectors(1, 'o'));
}

TEST(SimDisk, AFlippedBitStaysFlipped) {
  Disk disk{1};
  old_file(disk, 1);
  ASSERT_TRUE(disk.flip("f", 3, 1));
  EXPECT_EQ(disk.read_file("f")->substr(0, 5), "ooono");
  disk.power_cut(Unsynced::keep_none);
  EXPECT_EQ(disk.read_file("f")->substr(0, 5), "ooono");
}

TEST(SimDisk, FlippingWhatIsNotThereIsRefused) {
  Disk disk{1};
  old_file(disk, 1);
  EXPECT_EQ(disk.flip("f", 512).error().message(), "byte 512 of f is beyond its end; it has 512 bytes");
  EXPECT_EQ(disk.flip("g", 0).error().message(), "the disk has no file g");
}

}  // namespace
}  // namespace pawl::sim
