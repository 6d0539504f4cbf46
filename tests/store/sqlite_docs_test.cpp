// SPDX-License-Identifier: Apache-2.0
// What docs/storage.md says can be asked of a file with the sqlite3 command.
#include <fstream>
#include <iterator>
#include <string_view>

#include "tests/store/shell.hpp"
#include "tests/store/sqlite_place.hpp"

namespace pawl::test {
namespace {

/// The SQL blocks of the page.
std::vector<std::string> documented_queries() {
  std::ifstream file(PAWL_SOURCE_DIR "/docs/storage.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  constexpr std::string_view kBegin = "```sql\n";
  std::vector<std::string> queries;
  for (auto begin = text.find(kBegin); begin != std::string::npos; begin = text.find(kBegin, begin)) {
    begin += kBegin.size();
    queries.push_back(text.substr(begin, text.find("```", begin) - begin));
  }
  return queries;
}

class SqliteDocs : public testing::Test {
 protected:
  void SetUp() override {
    store_ = open_sqlite({.path = path_, .flush_every = 10}).value();
    // Some heads are behind the horizon, some written behind, some only in the log.
    const auto drafts = fill(*store_, 25);
    for (std::size_t i = 0; i < 3; ++i) write(*store_, after(drafts[i], static_cast<Seq>(i) + 1, "open"));
    while (!store_->retain(5).value()) {}
    write(*store_, after(drafts[20], 21, "open"));
    write(*store_, created("new"));
  }
  Ran ask(const std::string& sql) const {
    std::ofstream(directory_.file("query.sql")) << sql;
    return run_shell("sqlite3 -readonly " + path_ + " < " + directory_.file("query.sql"));
  }

  Directory directory_;
  std::string path_ = directory_.file("pawl.db");
  std::unique_ptr<Store> store_;
};

TEST_F(SqliteDocs, EveryDocumentedQueryAnswersBesideTheOwner) {
  const auto queries = documented_queries();
  ASSERT_GE(queries.size(), 6U);
  for (const auto& query : queries) {
    const auto ran = ask(query);
    EXPECT_EQ(ran.status, 0) << query << ran.output;
    EXPECT_FALSE(ran.output.empty()) << query;
  }
}

TEST_F(SqliteDocs, InstancesByStateCountsEveryInstanceOnce) {
  EXPECT_EQ(ask(documented_queries().at(0)).output, "door|closed|22\ndoor|open|4\n");
}

TEST_F(SqliteDocs, TheHistoryOfAKeyIsItsEntries) {
  EXPECT_EQ(ask(documented_queries().at(2)).output, "27|2|Push|open|{\"opened\":2}\n");
}

TEST_F(SqliteDocs, TheViewShowsWhenTheNewestGenerationBegan) {
  auto draft = created("again");
  auto seq = write(*store_, draft);
  draft = after(draft, seq, "locked");
  draft.finished = true;
  seq = write(*store_, draft);
  auto second = created("again");
  second.version = 3;
  second.generation = 2;
  second.prev = seq;
  second.at = at_second(60);
  write(*store_, second);
  const std::string query = "SELECT created_at FROM pawl_instances WHERE key = 'again'";
  const auto begun =
      ask("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', " +
          std::to_string(at_second(60).time_since_epoch().count()) + " / 1000000, 'unixepoch')");
  EXPECT_EQ(ask(query).output, begun.output) << "as long as only the log has it";
  store_.reset();
  EXPECT_EQ(ask(query).output, begun.output) << "once the head is written";
}

TEST_F(SqliteDocs, TheViewShowsWhatLoadingShows) {
  std::map<std::string, std::string> expected;
  for (const auto& [id, head] : load_all(*store_)) {
    expected[id.to_string()] =
        head.key + "|" + head.state + "|" + std::to_string(head.version) + "|" + std::to_string(head.seq);
  }
  std::string text;
  for (const auto& [id, line] : expected) text += id + "|" + line + "\n";
  EXPECT_EQ(ask("SELECT id, key, state, version, seq FROM pawl_instances ORDER BY id").output, text);
}

}  // namespace
}  // namespace pawl::test
