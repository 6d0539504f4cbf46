// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "tests/workers/types_table.hpp"
#include "workers/types/process.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;
using W = ProcessWorker;

ProcessDesired desired(RestartPolicy policy = RestartPolicy::always, std::uint32_t give_up_after = 0) {
  return {.command = {"/bin/true"}, .restart = policy, .give_up_after = give_up_after};
}
ProcessObserved seen(std::string process, std::optional<int> code = {}) {
  return {.process = std::move(process),
          .pid = 7,
          .generation = 3,
          .ordered = true,
          .exit_code = code,
          .specification = name_specification(desired())};
}
ProcessObserved noted(ProcessObserved one, std::uint32_t brief = 1) {
  one.noted = true;
  one.brief = brief;
  return one;
}
/// Of an earlier order than the last one.
ProcessObserved earlier(ProcessObserved one) {
  one.ordered = false;
  return one;
}
ProcessObserved other(ProcessObserved one) {
  one.specification = "another";
  return one;
}

TEST(ProcessWorker, StartsRunsAndComesBackAsItsPolicySays) {
  Table<W> table;
  const auto once = desired(RestartPolicy::never);
  const auto careful = desired(RestartPolicy::on_failure, 3);
  EXPECT_EQ(table.next<W::Stopped>({}, desired()), "go TryingToStart");
  EXPECT_EQ(table.next<W::Stopped>(seen("running"), desired()), "do Stop");
  EXPECT_EQ(table.next<W::Stopped>(seen("exited", 0), desired()), "do Stop");
  EXPECT_EQ(table.next<W::TryingToStart>({}, desired()), "do Start");
  EXPECT_EQ(table.next<W::TryingToStart>(noted(seen("exited", 1)), desired()), "do Start");
  EXPECT_EQ(table.next<W::TryingToStart>(other(seen("exited", 1)), desired()), "do Start");
  EXPECT_EQ(table.next<W::TryingToStart>(earlier(seen("exited", 0)), once), "do Start");
  EXPECT_EQ(table.next<W::TryingToStart>(seen("running"), desired()), "go Running");
  EXPECT_EQ(table.next<W::TryingToStart>(seen("exited", 0), desired()), "go BackingOff");
  EXPECT_EQ(table.next<W::TryingToStart>(seen("failed_to_start"), once), "go Exited");
  auto third = seen("exited", 1);
  third.brief = 2;
  EXPECT_EQ(table.next<W::TryingToStart>(third, careful), "go GaveUp");
  EXPECT_EQ(table.next<W::Running>(seen("running"), desired()), "stay");
  EXPECT_EQ(table.next<W::Running>(other(seen("running")), desired()), "go TryingToStop");
  EXPECT_EQ(table.next<W::Running>(seen("exited", 0), careful), "go Exited");
  EXPECT_EQ(table.next<W::Running>(seen("exited", 1), careful), "go BackingOff");
  EXPECT_EQ(table.next<W::Running>(seen("lost"), careful), "go BackingOff");
  EXPECT_EQ(table.next<W::Running>(third, careful), "go GaveUp");
  third.lasted = true;
  EXPECT_EQ(table.next<W::Running>(third, careful), "go BackingOff");
  EXPECT_EQ(table.next<W::BackingOff>(seen("exited", 1), desired()), "do Note");
  EXPECT_EQ(table.next<W::BackingOff>(noted(seen("exited", 1)), desired()), "stay");
  EXPECT_EQ(table.next<W::BackingOff>(noted(seen("exited", 1)), desired(), {.in_state = 1s}),
            "go TryingToStart");
  EXPECT_EQ(table.next<W::BackingOff>(seen("running"), desired()), "go Running");
  EXPECT_EQ(table.next<W::Exited>(seen("exited", 0), once), "stay");
  EXPECT_EQ(table.next<W::Exited>(other(seen("exited", 0)), once), "go TryingToStart");
  EXPECT_EQ(table.next<W::GaveUp>(seen("exited", 0), careful), "stay");
  EXPECT_EQ(table.next<W::GaveUp>(other(seen("exited", 0)), careful), "go TryingToStop");
  EXPECT_EQ(table.next<W::TryingToStop>(seen("running"), desired()), "do Stop");
  EXPECT_EQ(table.next<W::TryingToStop>(seen("exited", 0), desired()), "do Stop");
  EXPECT_EQ(table.next<W::TryingToStop>(noted(seen("exited", 0)), desired()), "go Stopped");
  EXPECT_EQ(table.stop<W::TryingToStart>({}, desired()), "go TryingToStop");
  EXPECT_EQ(table.stop<W::Running>({}, desired()), "go TryingToStop");
  EXPECT_EQ(table.stop<W::BackingOff>({}, desired()), "go TryingToStop");
  EXPECT_EQ(table.stop<W::GaveUp>({}, desired()), "go TryingToStop");
  EXPECT_EQ(table.never_given(), "");
}

TEST(ProcessWorker, WaitsLongerAfterEachBriefRunUpToItsCap) {
  auto slow = desired();
  slow.backoff_first = 2s;
  slow.backoff_cap = 9s;
  EXPECT_EQ(backoff_after(slow, 0), 2s);
  EXPECT_EQ(backoff_after(slow, 1), 2s);
  EXPECT_EQ(backoff_after(slow, 2), 4s);
  EXPECT_EQ(backoff_after(slow, 3), 8s);
  EXPECT_EQ(backoff_after(slow, 4), 9s);
  EXPECT_EQ(backoff_after(slow, 4'000'000'000), 9s);
}

TEST(ProcessWorker, IsTheSameProcessWhateverItsPolicyIs) {
  auto one = desired();
  one.stop_grace = 1s;
  one.restart = RestartPolicy::never;
  EXPECT_EQ(name_specification(one), name_specification(desired()));
  one.command.emplace_back("x");
  EXPECT_NE(name_specification(one), name_specification(desired()));
}

TEST(ProcessWorker, HasTheSameNameInAReleaseThatKnowsOneKeyMore) {
  const auto before =
      name_of_unusual(R"({"command":["a"],"directory":"/"})", R"({"command":[],"directory":"/"})");
  EXPECT_EQ(before, name_of_unusual(R"({"command":["a"],"directory":"/","niceness":0})",
                                    R"({"command":[],"directory":"/","niceness":0})"));
  EXPECT_NE(before, name_of_unusual(R"({"command":["a"],"directory":"/","niceness":5})",
                                    R"({"command":[],"directory":"/","niceness":0})"));
  // What is written in a note today is read by every release to come.
  EXPECT_EQ(name_specification({.command = {"/bin/true"}}), "2a7e8e0ac3926599");
}

TEST(ProcessWorker, RefusesWhatCannotBeRun) {
  const auto field = [](ProcessDesired read) {
    const auto derived = W::derive(std::move(read));
    return derived ? std::string() : std::string(derived.error().field("field"));
  };
  EXPECT_EQ(field(desired()), "");
  EXPECT_EQ(field({}), "command");
  EXPECT_EQ(field({.command = {"a"}, .directory = "tmp"}), "directory");
  EXPECT_EQ(field({.command = {"a"}, .stop_signal = "SIGTERM"}), "stop_signal");
  EXPECT_EQ(field({.command = {"a"}, .stop_grace = 1h}), "stop_grace");
  EXPECT_EQ(field({.command = {"a"}, .backoff_first = 2s, .backoff_cap = 1s}), "backoff_cap");
}

class ProcessNotesTest : public ::testing::Test {
 protected:
  ProcessNotesTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "pawl-notes-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ProcessNotesTest() override { std::filesystem::remove_all(directory_); }
  RestartRecord note() const { return RestartRecordFile(directory_, "a/b").read().value(); }

  std::string directory_;
};

TEST_F(ProcessNotesTest, CountEachEndOnceAndForgiveWhatWasStopped) {
  const RestartRecordFile notes(directory_, "a/b");
  ASSERT_EQ(notes.record_start(5, 0, "x"), 5U);
  ASSERT_TRUE(notes.record_exit(5, true));
  ASSERT_TRUE(notes.record_exit(5, true));
  EXPECT_EQ(note().restarts, 1U);
  EXPECT_EQ(note().brief, 1U);
  ASSERT_TRUE(notes.record_exit(6, true));
  EXPECT_EQ(note().brief, 2U);
  ASSERT_TRUE(notes.record_exit(7, false));
  EXPECT_EQ(note().brief, 0U);
  ASSERT_TRUE(notes.record_exit(8, true));
  ASSERT_TRUE(notes.record_stop(9));
  EXPECT_EQ(note().brief, 0U);
  EXPECT_EQ(note().ended, 9U);
  EXPECT_EQ(note().restarts, 4U);
  EXPECT_EQ(note().specification, "x");
  notes.remove();
  EXPECT_EQ(note().ended, 0U);
}

}  // namespace
}  // namespace pawl::test
