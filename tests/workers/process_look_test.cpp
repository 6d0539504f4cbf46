// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "tests/workers/process_world.hpp"
#include "workers/process/proc.hpp"

namespace pawl::workers::test {
namespace {

TEST(ProcessLook, TimeMemoryAndNumberOfAllItsProcessesAreSeen) {
  const World world;
  ASSERT_TRUE(world.manager().start(
      "pump", 1,
      shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 1000 & (setsid sleep 1000 &) ; "
            "setsid sh -c 'echo ready; sleep 1000; :'")));
  world.lines("pump", 1);
  const auto manager = world.manager();  // which has seen nothing yet
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::running);
  EXPECT_GE(status.processes, 4U);  // three times sleep, the shell; another shell before it has become sleep
  EXPECT_GT(status.cpu_seconds, 0.0);
  EXPECT_GT(status.memory_bytes, 100'000U);
}

TEST(ProcessLook, TheTimeIsKnownAfterTheEnd) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")));
  world.until_ended("pump");
  const auto status = manager.status("pump").value();
  EXPECT_GT(status.cpu_seconds, 0.0);
  EXPECT_EQ(status.processes, 0U);
  EXPECT_EQ(status.pid, 0);
}

TEST(ProcessLook, AProcessWithAnOddNameIsRead) {
  const World world;
  const auto manager = world.manager();
  const auto program = world.root() + "/a) S 1 (b";
  std::filesystem::copy_file("/bin/sleep", program);
  ASSERT_TRUE(manager.start("pump", 1, {.command = {program, "1000"}}));
  ProcStat stat;
  ASSERT_TRUE(read_stat(manager.status("pump").value().pid, stat));
  EXPECT_EQ(stat.parent, pids(world, "pump").shim);
}

TEST(ProcessLook, StatesHaveNames) {
  EXPECT_EQ(name(ProcessState::failed_to_start), "failed_to_start");
  EXPECT_EQ(name(ProcessState::lost), "lost");
}

}  // namespace
}  // namespace pawl::workers::test
