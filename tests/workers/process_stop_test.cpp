// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <thread>

#include "tests/workers/process_world.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kLongGrace = Duration::max();
constexpr auto kShortGrace = std::chrono::milliseconds(50);

/// The process whose number the command wrote as its first line.
pid_t written_pid(const World& world, std::string_view id) { return std::stoi(world.lines(id, 1).front()); }

TEST(ProcessStop, TheSignalReachesTheProcessAndItsEndIsRecorded) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::exited);
  EXPECT_EQ(status.exit->signal, SIGTERM);
}

TEST(ProcessStop, AProcessMayUseItsGrace) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start(
      "pump", 1, shell("trap 'echo saved; exit 3' TERM; echo ready; while :; do sleep 1000 & wait; done")));
  world.lines("pump", 1);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().exit->code, 3);
  EXPECT_THAT(world.lines("pump", 2), ElementsAre("ready", "saved"));
}

TEST(ProcessStop, AnotherSignalMayBeGiven) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  ASSERT_TRUE(manager.stop("pump", kLongGrace, {}, SIGQUIT));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGQUIT);
}

TEST(ProcessStop, AfterTheGraceItIsKilled) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("trap '' TERM; echo ready; while :; do sleep 1000; done")));
  world.lines("pump", 1);
  ASSERT_TRUE(manager.stop("pump", kShortGrace));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGKILL);
}

TEST(ProcessStop, AStoppedProcessNoticesTheSignal) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  ASSERT_EQ(::kill(manager.status("pump").value().pid, SIGSTOP), 0);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
}

TEST(ProcessStop, AGrandchildThatIgnoresTheSignalIsKilled) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("(trap '' TERM; exec sleep 1000) & echo $!; wait")));
  const Handle grandchild(written_pid(world, "pump"));
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_TRUE(grandchild.ended());
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
}

TEST(ProcessStop, AGrandchildThatHasForkedAwayIntoItsOwnSessionIsKilled) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start(
      "pump", 1, shell("(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' &) ; exec sleep 1000")));
  const Handle grandchild(written_pid(world, "pump"));
  EXPECT_TRUE(grandchild.lives());
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_TRUE(grandchild.ended());
}

TEST(ProcessStop, NothingIsLeftOfACommandThatEndsByItself) {
  const World world;
  const auto manager = world.manager();
  const auto fifo = world.root() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(manager.start(
      "pump", 1,
      shell(fmt::format("(setsid sh -c 'echo $$; exec sleep 1000' &) ; read x < {}; exit 4", fifo))));
  const Handle grandchild(written_pid(world, "pump"));
  write_all(fifo, "go\n");
  world.until_ended("pump");
  EXPECT_TRUE(grandchild.ended());
  EXPECT_EQ(manager.status("pump").value().exit->code, 4);
}

TEST(ProcessStop, StoppingTwiceOrWhatDoesNotRunIsFine) {
  const World world;
  const auto manager = world.manager();
  EXPECT_TRUE(manager.stop("pump", kLongGrace));
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  std::vector<int> answers(4, 0);
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers) {
      threads.emplace_back([&] { answer = manager.stop("pump", kLongGrace) ? 1 : 2; });
    }
  }
  EXPECT_THAT(answers, ::testing::Each(1));
  EXPECT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::exited);
}

TEST(ProcessStop, WaitingForTheEndCanBeCancelled) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start(
      "pump", 1, shell("trap 'echo heard' TERM; echo ready; while :; do sleep 1000 & wait; done")));
  world.lines("pump", 1);
  std::stop_source stop;
  Result<void> stopped;
  {
    const std::jthread stopping([&] { stopped = manager.stop("pump", kLongGrace, stop.get_token()); });
    world.lines("pump", 2);
    stop.request_stop();
  }
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::cancelled);
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::running);
}

TEST(ProcessStop, TheShimItselfCannotBeAskedToEnd) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  const auto shim = pids(world, "pump").shim;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE})
    ASSERT_EQ(::kill(shim, signal), 0);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
}

TEST(ProcessStop, AShimThatIsStoppedDoesNotKeepItsProcessAlive) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  ASSERT_EQ(::kill(pids(world, "pump").shim, SIGSTOP), 0);
  ASSERT_TRUE(manager.stop("pump", kShortGrace));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
}

TEST(ProcessForget, OnlyWhatDoesNotRunIsForgotten) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("plant/pump", 1, counted(world)));
  ASSERT_TRUE(manager.start("plant/valve", 1, shell("true")));
  EXPECT_THAT(manager.list().value(), ElementsAre("plant/pump", "plant/valve"));
  const auto refused = manager.forget("plant/pump");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::process_failed);
  EXPECT_THAT(refused.error().message(), HasSubstr("stop it"));
  EXPECT_EQ(manager.status("plant/pump").value().state, ProcessState::running);
  ASSERT_TRUE(manager.stop("plant/pump", kLongGrace));
  ASSERT_TRUE(manager.stop("plant/valve", kLongGrace));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(manager.forget("plant/pump"));
    ASSERT_TRUE(manager.forget("plant/valve"));
  }
  EXPECT_THAT(manager.list().value(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(world.processes()));
  ASSERT_TRUE(manager.start("plant/pump", 1, shell("true")));
}

TEST(ProcessForget, IdsAreListedHoweverLongOrOddTheyAre) {
  const World world;
  const auto manager = world.manager();
  const std::vector<std::string> ids{"..",
                                     "../../escape",
                                     "/etc/passwd",
                                     "a%2Fb",
                                     "a/b",
                                     std::string(1000, 'x'),
                                     std::string(999, 'x') + "y"};
  for (const auto& id : ids) ASSERT_TRUE(manager.start(id, 1, shell("echo \"$0\""))) << id;
  EXPECT_THAT(manager.list().value(), ::testing::UnorderedElementsAreArray(ids));
  std::size_t entries = 0;
  for (const auto& entry : std::filesystem::directory_iterator(world.root())) {
    EXPECT_EQ(entry.path(), world.processes());
  }
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(world.processes())) ++entries;
  EXPECT_EQ(entries, ids.size());
}

}  // namespace
}  // namespace pawl::workers::test
