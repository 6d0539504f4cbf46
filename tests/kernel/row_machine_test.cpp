// SPDX-License-Identifier: Apache-2.0
#include "pawl/row_machine.hpp"

#include <gtest/gtest.h>

namespace {

using pawl::Code;

enum class Vuln { unseen, analyzing, published, failed };
struct Nothing {};
struct Analyze {};
struct Publish {};
struct Retry {};

constexpr auto vuln = pawl::machine<Vuln, Nothing>("vuln")
                          .initial(Vuln::unseen)
                          .on<Analyze>(pawl::from(Vuln::unseen, Vuln::failed), Vuln::analyzing)
                          .on<Publish>(Vuln::analyzing, Vuln::published)
                          .on<Retry>(Vuln::failed, Vuln::unseen)
                          .on<Retry>(Vuln::analyzing, Vuln::failed)
                          .terminal(Vuln::published);

constexpr pawl::RowMachine<vuln> rows{{.table = "vuln", .column = "status", .key = "id"}};
constexpr pawl::RowMachine<vuln> nullable{{.table = "vuln", .column = "status", .key = "id"}, Vuln::unseen};

TEST(RowMachine, WritesTheCompareAndSetOfAnEvent) {
  const auto sql = rows.update<Publish>({"v-1", "v-2"});
  EXPECT_EQ(sql.text,
            R"(UPDATE "vuln" SET "status" = 'published' WHERE "id" = ?1 AND "status" IN ('analyzing'))");
  EXPECT_EQ(sql.expect, 2);
  EXPECT_EQ(sql.rows, (std::vector<std::vector<pawl::SqlValue>>{{"v-1"}, {"v-2"}}));
}

TEST(RowMachine, AcceptsSeveralSourceStates) {
  EXPECT_EQ(
      rows.update<Analyze>({1}).text,
      R"(UPDATE "vuln" SET "status" = 'analyzing' WHERE "id" = ?1 AND "status" IN ('unseen', 'failed'))");
}

TEST(RowMachine, AnEventWithSeveralTargetsBecomesACase) {
  EXPECT_EQ(rows.update<Retry>({1}).text,
            R"(UPDATE "vuln" SET "status" = CASE WHEN "status" = 'analyzing' THEN 'failed')"
            R"( WHEN "status" = 'failed' THEN 'unseen' END)"
            R"( WHERE "id" = ?1 AND "status" IN ('analyzing', 'failed'))");
}

TEST(RowMachine, AStateMayBeStoredAsNull) {
  EXPECT_EQ(nullable.update<Analyze>({1}).text,
            R"(UPDATE "vuln" SET "status" = 'analyzing')"
            R"( WHERE "id" = ?1 AND ("status" IN ('failed') OR "status" IS NULL))");
}

TEST(RowMachine, SaysWhyARowWasNotMoved) {
  EXPECT_EQ(rows.refusal<Publish>("v-1", "unseen").message(),
            "vuln \"v-1\" is unseen: it does not accept Publish; legal: Analyze");
  EXPECT_EQ(rows.refusal<Publish>("v-1", "published").code(), Code::finished_instance);
  EXPECT_EQ(rows.refusal<Publish>("v-1", "analyzing").code(), Code::version_conflict);
  EXPECT_EQ(rows.refusal<Publish>("v-1", "lost").code(), Code::unknown_state);
}

TEST(RowMachine, QuotesIdentifiers) {
  constexpr pawl::RowMachine<vuln> odd{{.table = "a\"b", .column = "c", .key = "d"}};
  EXPECT_TRUE(odd.update<Publish>({1}).text.starts_with(R"(UPDATE "a""b" SET)"));
}

}  // namespace
