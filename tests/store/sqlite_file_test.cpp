// SPDX-License-Identifier: Apache-2.0
// What is found at the path of a SQLite store: nothing, something else, a newer or a damaged file, another
// owner.
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

namespace fs = std::filesystem;

class SqliteFile : public testing::Test {
 protected:
  Result<std::unique_ptr<Store>> open() { return open_sqlite({.path = path_, .flush_every = 4}); }

  /// A store with some lives, closed.
  void make() {
    auto store = open().value();
    const auto drafts = fill(*store, 60);
    for (std::size_t i = 0; i < 20; ++i) write(*store, after(drafts[i], static_cast<Seq>(i) + 1, "open"));
    std::vector requested{created("r1"), created("r2")};
    for (auto& draft : requested) draft.at = at_second(1000);
    ASSERT_TRUE(join(*store, requested, {}, request(1)));
    ASSERT_TRUE(store->commit());
    while (!store->retain(10).value()) {}
  }
  /// Changes the file behind the store's back.
  void tamper(const std::string& sql) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message);
    EXPECT_EQ(message, nullptr) << message;
    sqlite3_free(message);
    sqlite3_close(db);
  }
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write_bytes(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
  }
  /// Everything that reading can find; empty where all is well.
  std::vector<Error> read_everything() {
    std::vector<Error> errors;
    const auto note = [&](const auto& result) {
      if (!result) errors.push_back(result.error());
    };
    auto store = open();
    note(store);
    if (!store) return errors;
    note((*store)->load([](const StoredHead&) {}));
    note((*store)->feed(10, 1000));
    for (Seq seq = 11; seq < 90; ++seq) note((*store)->head_entry(created("k1").id, seq));
    note((*store)->history(created("k19").id, 80, 0, 100));
    note((*store)->find_request(request(1).id));
    const auto checked = (*store)->check();
    note(checked);
    if (checked && !checked->problems.empty()) {
      errors.emplace_back(Code::store_corrupt, checked->problems.front());
    }
    return errors;
  }

  Directory directory_;
  std::string path_ = directory_.file("pawl.db");
};

TEST_F(SqliteFile, AnEmptyFileBecomesAStore) {
  write_bytes("");
  EXPECT_TRUE(open());
}

TEST_F(SqliteFile, WhatIsNoDatabaseIsRefusedAndLeftAlone) {
  const std::string text(10'000, 'x');
  write_bytes(text);
  const auto refused = open();
  ASSERT_EQ(code(refused), Code::store_corrupt);
  EXPECT_NE(refused.error().message().find(path_), std::string::npos);
  EXPECT_EQ(bytes(), text);
}

TEST_F(SqliteFile, ADatabaseOfAnotherProgramIsRefusedAndLeftAlone) {
  tamper("CREATE TABLE other(x)");
  const auto before = bytes();
  const auto refused = open();
  ASSERT_EQ(code(refused), Code::invalid_argument);
  EXPECT_NE(refused.error().message().find("another program"), std::string::npos);
  EXPECT_EQ(bytes(), before);
}

TEST_F(SqliteFile, ANewerFileIsRefusedWithBothNumbers) {
  make();
  tamper("UPDATE pawl_meta SET value = 7 WHERE name = 'schema'");
  for (const bool read_only : {false, true}) {
    const auto refused = open_sqlite({.path = path_, .read_only = read_only});
    ASSERT_EQ(code(refused), Code::store_newer);
    EXPECT_EQ(refused.error().field("file_schema"), "7");
    EXPECT_EQ(refused.error().field("known_schema"), "1");
  }
}

TEST_F(SqliteFile, AMissingFileIsNotCreatedWhenThatIsNotWanted) {
  EXPECT_FALSE(open_sqlite({.path = path_, .create = false}));
  EXPECT_FALSE(open_sqlite({.path = path_, .read_only = true}));
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

TEST_F(SqliteFile, ADirectoryThatDoesNotExistIsReported) {
  const auto failed = open_sqlite({.path = directory_.file("missing/pawl.db")});
  ASSERT_EQ(code(failed), Code::store_io);
  EXPECT_NE(failed.error().message().find("missing/pawl.db"), std::string::npos);
}

TEST_F(SqliteFile, BadOptionsAreRefused) {
  EXPECT_EQ(code(open_sqlite({.path = ""})), Code::invalid_argument);
  EXPECT_EQ(code(open_sqlite({.path = ":memory:"})), Code::invalid_argument);
  EXPECT_EQ(code(open_sqlite({.path = path_, .flush_every = 0})), Code::invalid_argument);
  EXPECT_FALSE(open_sqlite({.path = path_, .vfs = "no such vfs"}));
}

TEST_F(SqliteFile, APathThatLooksLikeAUriIsAPath) {
  const auto before = fs::current_path();
  fs::current_path(directory_.path());
  EXPECT_TRUE(open_sqlite({.path = "file:x?mode=memory"}));
  EXPECT_TRUE(fs::exists("file:x?mode=memory"));
  fs::current_path(before);
}

TEST_F(SqliteFile, TwoNamesOfOneFileShareOneOwner) {
  fs::create_symlink(path_, directory_.file("link.db"));
  const auto store = open().value();
  EXPECT_EQ(code(open_sqlite({.path = directory_.file("link.db")})), Code::store_locked);
}

TEST_F(SqliteFile, TwoHardLinksOfOneFileShareOneOwner) {
  open().value().reset();
  fs::create_hard_link(path_, directory_.file("link.db"));
  const auto store = open().value();
  EXPECT_FALSE(open_sqlite({.path = directory_.file("link.db")}));
}

TEST_F(SqliteFile, TheOwnerStaysTheOnlyOneWhenItsOwnerFileIsDeleted) {
  for (const bool is_new : {true, false}) {
    auto store = open().value();
    fs::remove(path_ + ".owner");
    const auto refused = open();
    ASSERT_EQ(code(refused), Code::store_locked) << (is_new ? "new" : "opened again");
    EXPECT_EQ(refused.error().field("pid"), "unknown") << "nothing says it any more";
    EXPECT_FALSE(fs::exists(path_ + ".owner")) << "who is refused leaves nothing behind";
    write(*store, created(is_new ? "a" : "b"));
    store.reset();
  }
  EXPECT_EQ(load_all(*open().value()).size(), 2U);
}

/// Opens a store in a process of its own when it is asked to. It is made before the store is opened here, so
/// that it inherits none of SQLite's knowledge of it.
class OtherProcess {
 public:
  explicit OtherProcess(const std::string& path) {
    if (::pipe(question_.data()) != 0 || ::pipe(answer_.data()) != 0) throw std::runtime_error("no pipe");
    child_ = ::fork();
    if (child_ != 0) return;
    char asked = 0;
    const bool got = ::read(question_[0], &asked, 1) == 1;
    const auto opened = open_sqlite({.path = path});
    const auto said = opened ? std::string("opened") : opened.error().to_string();
    const bool written = ::write(answer_[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    ::_exit(got && written ? 0 : 1);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;
  ~OtherProcess() {
    for (const int end : {question_[0], question_[1], answer_[0], answer_[1]}) ::close(end);
  }

  /// What opening says.
  std::string ask() {
    EXPECT_EQ(::write(question_[1], "?", 1), 1);
    int status = 0;
    EXPECT_EQ(::waitpid(child_, &status, 0), child_);
    EXPECT_EQ(status, 0);
    std::array<char, 2048> said{};
    const auto length = ::read(answer_[0], said.data(), said.size());
    return {said.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
  }

 private:
  std::array<int, 2> question_{};
  std::array<int, 2> answer_{};
  pid_t child_ = 0;
};

TEST_F(SqliteFile, AnotherProcessIsRefusedAndToldWhoTheOwnerIs) {
  OtherProcess beside(path_);
  OtherProcess later(path_);
  auto store = open_sqlite({.path = path_, .now = [] { return at_second(0); }}).value();
  const auto refused = beside.ask();
  EXPECT_NE(refused.find("store_locked"), std::string::npos) << refused;
  EXPECT_NE(refused.find("pid=" + std::to_string(getpid())), std::string::npos) << refused;
  EXPECT_NE(refused.find("since=2023-11-14T22:13:20.000000Z"), std::string::npos) << refused;
  write(*store, created("a"));
  store.reset();
  EXPECT_EQ(later.ask(), "opened");
}

TEST_F(SqliteFile, AnotherProcessIsRefusedWhenTheOwnerFileIsDeleted) {
  OtherProcess beside(path_);
  OtherProcess later(path_);
  auto store = open().value();
  fs::remove(path_ + ".owner");
  const auto refused = beside.ask();
  EXPECT_NE(refused.find("store_locked"), std::string::npos) << refused;
  store.reset();
  EXPECT_EQ(later.ask(), "opened");
}

TEST_F(SqliteFile, ClosingLeavesOneFile) {
  fill(*open().value(), 3);
  EXPECT_FALSE(fs::exists(path_ + "-wal"));
}

/// Another program that writes the file.
class OtherProgram {
 public:
  explicit OtherProgram(const std::string& path) { EXPECT_EQ(sqlite3_open(path.c_str(), &db_), SQLITE_OK); }
  OtherProgram(const OtherProgram&) = delete;
  OtherProgram& operator=(const OtherProgram&) = delete;
  ~OtherProgram() { sqlite3_close(db_); }
  void run(const char* sql) {
    EXPECT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
  }

 private:
  sqlite3* db_ = nullptr;
};

TEST_F(SqliteFile, AnotherProgramThatWritesForTooLongRollsTheBatchBackAndTheStoreGoesOn) {
  auto store = open_sqlite({.path = path_, .lock_wait = std::chrono::milliseconds(1)}).value();
  write(*store, created("a"));
  OtherProgram other(path_);
  other.run("BEGIN IMMEDIATE");
  const auto refused = join(*store, created("b"));
  ASSERT_EQ(code(refused), Code::rolled_back);
  EXPECT_NE(refused.error().message().find("another program"), std::string::npos)
      << refused.error().to_string();
  EXPECT_EQ(code(store->put(std::vector{Ephemeral{.id = created("a").id, .name = "n", .value = "1"}})),
            Code::rolled_back);
  EXPECT_EQ(code(store->execute(std::vector{plain("CREATE TABLE t(x)")})), Code::rolled_back);
  EXPECT_EQ(code(store->retain(1)), Code::rolled_back);
  EXPECT_EQ(code(store->forget(std::vector{created("a").id})), Code::rolled_back);
  EXPECT_EQ(store->feed(0, 10).value().size(), 1U) << "reading goes on";
  other.run("ROLLBACK");
  write(*store, created("c"));
  EXPECT_EQ(store->feed(0, 10).value().size(), 2U);
  EXPECT_EQ(problems(*store), "");
}

TEST_F(SqliteFile, OpeningBesideAProgramThatWritesIsRefusedForNow) {
  open().value().reset();
  OtherProgram other(path_);
  other.run("BEGIN IMMEDIATE");
  const auto refused = open_sqlite({.path = path_, .lock_wait = std::chrono::milliseconds(1)});
  EXPECT_EQ(code(refused), Code::store_locked) << refused.error().to_string();
  other.run("ROLLBACK");
  EXPECT_TRUE(open());
}

TEST_F(SqliteFile, TheCheckFindsPlantedDamage) {
  const auto planted = std::to_array<std::pair<const char*, const char*>>({
      {"DELETE FROM log WHERE seq = 30", "which is missing"},
      {"DELETE FROM log WHERE seq = 82", "of a request is missing"},
      {"UPDATE log SET prev = 99 WHERE seq = 70", "follows 99"},
      {"UPDATE log SET version = 0 WHERE seq = 75", "goes back from version"},
      {"UPDATE log SET generation = 0 WHERE seq = 75", "goes back to generation"},
      {"UPDATE log SET machine = 44 WHERE seq = 30", "names a machine"},
      {"UPDATE log SET at = 5 WHERE seq = 30", "is older"},
      {"UPDATE heads SET state = 'wrong' WHERE seq = 30", "differs from its entry 30"},
      {"UPDATE heads SET seq = 12, version = 1 WHERE seq = 72", "but 72 is newer"},
      {"UPDATE heads SET machine = 44 WHERE seq = 30", "names a machine"},
      {"DELETE FROM heads WHERE seq = 30", "has no head"},
      {"UPDATE heads SET seq = 5, kind = NULL WHERE seq = 30", "does not carry it"},
      {"UPDATE pawl_meta SET value = 40 WHERE name = 'horizon'", "below the horizon"},
  });
  for (const auto& [sql, expected] : planted) {
    for (const auto& entry : fs::directory_iterator(directory_.path())) fs::remove(entry.path());
    make();
    ASSERT_TRUE(read_everything().empty()) << read_everything().front().to_string();
    tamper(sql);
    const auto checked = open().value()->check().value();
    std::string all;
    for (const auto& problem : checked.problems) all += problem + "\n";
    EXPECT_NE(all.find(expected), std::string::npos) << sql << "\n" << all;
  }
}

TEST_F(SqliteFile, ABrokenChainIsReportedByReadingIt) {
  make();
  tamper("UPDATE log SET id = zeroblob(16) WHERE seq = 12");
  auto store = open().value();
  const auto failed = store->history(created("k11").id, 72, 0, 10);
  ASSERT_EQ(code(failed), Code::store_corrupt);
  EXPECT_EQ(failed.error().field("seq"), "12");
}

TEST_F(SqliteFile, ADamagedPageIsReportedAsCorrupt) {
  make();
  const auto good = bytes();
  constexpr std::size_t kPage = 4096;
  ASSERT_GT(good.size(), 10 * kPage);
  // The first byte of a page says what kind it is; in the first page it stands behind the file's header. The
  // second page only helps to give pages back, and SQLite's check leaves it out.
  for (std::size_t page = 0; page < good.size() / kPage; ++page) {
    if (page == 1) continue;
    auto bad = good;
    auto& byte = bad[page * kPage + (page == 0 ? 100 : 0)];
    byte = static_cast<char>(byte ^ 0x55);
    write_bytes(bad);
    const auto errors = read_everything();
    ASSERT_FALSE(errors.empty()) << "page " << page + 1;
    EXPECT_TRUE(std::ranges::any_of(errors, [](const Error& e) { return e.code() == Code::store_corrupt; }))
        << "page " << page + 1 << ": " << errors.front().to_string();
  }
}

TEST_F(SqliteFile, ACutOffFileIsReportedAsCorrupt) {
  make();
  const auto good = bytes();
  for (const std::size_t size : {50UL, 100UL, 4096UL, 3 * 4096UL, good.size() - 4096}) {
    write_bytes(good.substr(0, size));
    EXPECT_FALSE(read_everything().empty()) << size << " of " << good.size() << " bytes";
  }
}

TEST_F(SqliteFile, NoDamageCrashesAnything) {
  make();
  const auto good = bytes();
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    auto bad = good;
    const std::size_t start = random() % bad.size();
    const std::size_t length = 1 + random() % (i % 2 == 0 ? 4 : 600);
    for (std::size_t at = start; at < std::min(bad.size(), start + length); ++at) {
      bad[at] = static_cast<char>(random());
    }
    write_bytes(bad);
    // Damage inside a text is not noticed; all that is asked here is an orderly answer.
    read_everything();
    for (const char* suffix : {"-wal", "-shm", "-journal"}) fs::remove(path_ + suffix);
  }
}

/// Entries of 100 kB, in batches of ten.
void write_much(Store& store, int batches) {
  auto draft = created("large");
  draft.data = std::string(100'000, 'x');
  Seq seq = write(store, draft);
  for (int i = 0; i < batches; ++i) {
    for (int k = 0; k < 10; ++k) {
      draft = after(draft, seq, "open");
      draft.data = std::string(100'000, 'x');
      seq = join(store, draft).value();
    }
    ASSERT_TRUE(store.commit());
  }
}

TEST_F(SqliteFile, TheWalStaysBoundedEvenWithoutCheckpoints) {
  auto store = open().value();
  write_much(*store, 150);  // 150 MB
  EXPECT_LT(fs::file_size(path_ + "-wal"), 80U << 20);
  EXPECT_EQ(problems(*store), "");
}

TEST_F(SqliteFile, WhatRetentionFreesIsGivenBack) {
  auto store = open().value();
  write_much(*store, 30);
  ASSERT_TRUE(store->checkpoint());
  const auto before = fs::file_size(path_);
  while (!store->retain(store->info().last).value()) {}
  store.reset();
  EXPECT_LT(fs::file_size(path_), before / 2);
  store = open().value();
  EXPECT_EQ(problems(*store), "");
  EXPECT_EQ(load_all(*store).size(), 1U);
}

}  // namespace
}  // namespace pawl::test
