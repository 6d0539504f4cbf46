// SPDX-License-Identifier: Apache-2.0
// What orders to start a process do, also those that are given twice, in another order or by another store.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "tests/workers/process_world.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/process.hpp"

namespace {

std::mutex synced_mutex;
std::vector<std::string>* synced =
    nullptr;  ///< the files that were made durable, where somebody wants to know

}  // namespace

/// In place of the library's, for everything in this program.
extern "C" int fsync(int file) {
  {
    const std::lock_guard lock(synced_mutex);
    std::error_code failure;
    if (synced != nullptr)
      synced->push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(file), failure));
  }
  return static_cast<int>(::syscall(SYS_fsync, file));
}

namespace pawl::test {
namespace {

using namespace pawl::workers;
using pawl::workers::test::counted;
using pawl::workers::test::World;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using W = ProcessWorker;

class OrdersToStart : public ::testing::Test {
 protected:
  Result<void> start(std::int64_t order, const ProcessDesired& desired) {
    return W::Start::run(tools_, desired, {.identity = somebody(), .number = order});
  }
  ProcessObserved look(const ProcessDesired& desired) {
    return W::collect(tools_, desired, collect_context(Time{})).value();
  }
  void until_ended() { world_.until_ended(somebody().path); }
  ProcessDesired counts_itself(const std::string& then) const {
    return {.command = {"/bin/sh", "-c", "echo run >> " + world_.runs_file() + "; " + then},
            .restart = RestartPolicy::never};
  }

  World world_;
  ProcessManager manager_ = world_.manager();
  ProcessTools tools_{.manager = manager_, .restart_record = {world_.root() + "/notes", somebody().path}};
};

TEST_F(OrdersToStart, AProgramThatIsMissingIsTriedAgainWhateverTheOneBeforeHasDone) {
  const auto once = counts_itself("exit 0");
  ASSERT_TRUE(start(1, once));
  until_ended();
  const ProcessDesired missing{.command = {"/no/such/program"}, .restart = RestartPolicy::never};
  EXPECT_FALSE(start(2, missing));
  Table<W> table;
  EXPECT_EQ(table.next<W::TryingToStart>(look(missing), missing), "do Start");
}

TEST_F(OrdersToStart, AnOrderThatIsCarriedOutAgainStartsNothing) {
  const auto once = counts_itself("exit 0");
  ASSERT_TRUE(start(7, once));
  until_ended();
  EXPECT_TRUE(start(7, once));
  EXPECT_EQ(world_.runs(), 1U);
  EXPECT_EQ(look(once).generation, 7U);
}

TEST_F(OrdersToStart, AStoreThatCountsFromALowerNumberStartsItsProcesses) {
  const auto once = counts_itself("exit 0");
  ASSERT_TRUE(start(9000, once));
  until_ended();
  const auto started = start(1024, once);
  ASSERT_TRUE(started) << started.error().to_string();
  until_ended();
  EXPECT_EQ(world_.runs(), 2U);
  const auto seen = look(once);
  EXPECT_EQ(seen.generation, 9001U);
  EXPECT_TRUE(seen.ordered);
  EXPECT_FALSE(seen.noted);
}

TEST_F(OrdersToStart, AStoreThatCountsFromALowerNumberStartsNoneBesideOneThatRuns) {
  const auto stays = counts_itself("exec sleep 100000");
  ASSERT_TRUE(start(9000, stays));
  EXPECT_FALSE(start(1024, stays));
  world_.lines(somebody().path, 0);
  EXPECT_EQ(look(stays).generation, 9000U);
  ASSERT_TRUE(manager_.stop(somebody().path, Duration::zero()));
  EXPECT_EQ(world_.runs(), 1U);
}

TEST_F(OrdersToStart, AreDurableBeforeTheyAreCarriedOut) {
  const auto notes = world_.root() + "/notes";
  std::vector<std::string> files;
  {
    const std::lock_guard lock(synced_mutex);
    synced = &files;
  }
  const auto begun = tools_.restart_record.record_start(1, 0, "x");
  {
    const std::lock_guard lock(synced_mutex);
    synced = nullptr;
  }
  ASSERT_TRUE(begun);
  EXPECT_THAT(files, ElementsAre(world_.root(), HasSubstr(notes + "/"), notes));
}

}  // namespace
}  // namespace pawl::test
