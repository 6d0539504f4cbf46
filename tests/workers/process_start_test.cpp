// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/workers/process_world.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProcessStart, TheExitCodeIsKnown) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("exit 7")));
  world.until_ended("pump");
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::exited);
  EXPECT_EQ(status.generation, 1U);
  ASSERT_TRUE(status.exit);
  EXPECT_EQ(status.exit->code, 7);
  EXPECT_EQ(status.exit->signal, std::nullopt);
  EXPECT_GE(status.exit->at, status.started_at);
}

TEST(ProcessStart, TheSignalThatEndedItIsKnown) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("kill -USR1 $$")));
  world.until_ended("pump");
  const auto status = manager.status("pump").value();
  ASSERT_TRUE(status.exit);
  EXPECT_EQ(status.exit->signal, SIGUSR1);
  EXPECT_EQ(status.exit->code, std::nullopt);
}

TEST(ProcessStart, WhatWasNeverStartedIsAbsent) {
  const World world;
  EXPECT_EQ(world.manager().status("pump").value().state, ProcessState::absent);
  EXPECT_TRUE(world.manager().tail("pump", 10).value().empty());
}

TEST(ProcessStart, AGenerationIsStartedOnceWhileItRunsAndAfterwards) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 3, counted(world)));
  world.lines("pump", 1);
  const int first = manager.status("pump").value().pid;
  ASSERT_TRUE(manager.start("pump", 3, counted(world)));
  EXPECT_EQ(manager.status("pump").value().pid, first);
  ASSERT_TRUE(manager.stop("pump", std::chrono::seconds(60)));
  ASSERT_TRUE(manager.start("pump", 3, counted(world)));
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::exited);
  EXPECT_EQ(world.runs(), 1U);
}

TEST(ProcessStart, AnotherGenerationIsRefusedWhileOneRuns) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 3, counted(world)));
  const auto later = manager.start("pump", 4, counted(world));
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code(), Code::process_failed);
  EXPECT_THAT(later.error().message(), HasSubstr("generation 3 runs; stop it before 4"));
  ASSERT_TRUE(manager.stop("pump", std::chrono::seconds(60)));
  ASSERT_TRUE(manager.start("pump", 4, counted(world)));
  EXPECT_EQ(manager.status("pump").value().generation, 4U);
}

TEST(ProcessStart, AnOlderGenerationIsRefused) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 3, shell("true")));
  world.until_ended("pump");
  const auto older = manager.start("pump", 2, counted(world));
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code(), Code::process_failed);
  EXPECT_THAT(older.error().message(), HasSubstr("2 is older"));
  EXPECT_EQ(world.runs(), 0U);
}

TEST(ProcessStart, ManyThreadsAndProcessesThatRaceStartOnce) {
  const World world;
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(world.manager().start("pump", 1, counted(world)) ? 0 : 1);
    children.push_back(child);
  }
  std::vector<int> answers(8, 0);
  {
    std::vector<std::jthread> threads;
    for (auto& answer : answers) {
      threads.emplace_back([&] { answer = world.manager().start("pump", 1, counted(world)) ? 1 : 2; });
    }
  }
  EXPECT_THAT(answers, ::testing::Each(1));
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  world.lines("pump", 1);
  EXPECT_EQ(world.runs(), 1U);
  EXPECT_EQ(world.manager().status("pump").value().processes, 1U);
}

TEST(ProcessStart, WhatCannotBeExecutedHasFailedToStartAndSaysWhy) {
  const World world;
  const auto manager = world.manager();
  const auto program = world.root() + "/nonsense";
  write_all(program, "\x01\x02 not a program", 0700);
  for (int i = 0; i < 2; ++i) {  // the answer stays the same
    const auto started = manager.start("pump", 1, {.command = {program}});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code(), Code::process_failed);
    EXPECT_EQ(started.error().field("errno"), std::to_string(ENOEXEC));
  }
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::failed_to_start);
  EXPECT_THAT(status.error, HasSubstr("Exec format error"));
  EXPECT_FALSE(status.exit);
  ASSERT_TRUE(manager.start("pump", 2, shell("true")));
}

TEST(ProcessStart, NobodyHasToReapTheShim) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("true")));
  world.until_ended("pump");
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ProcessStart, OnlyASmallPartOfTheServersEnvironmentIsInherited) {
  const World world;
  const auto manager = world.manager();
  ASSERT_EQ(::setenv("PAWL_TEST_SECRET", "of the server", 1), 0);  // NOLINT(concurrency-mt-unsafe)
  auto spec = shell("echo \"<$PAWL_TEST_SECRET> <$OWN> <$LANG> <$PATH>\"");
  spec.environment = {{"OWN", "of the worker"}, {"LANG", "xx"}};
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.until_ended("pump");
  EXPECT_THAT(world.lines("pump", 1).front(), ::testing::MatchesRegex("<> <of the worker> <xx> <.+>"));
  spec.inherit_environment = true;
  ASSERT_TRUE(manager.start("pump", 2, spec));
  world.until_ended("pump");
  EXPECT_THAT(world.lines("pump", 2).back(), HasSubstr("<of the server> <of the worker> <xx>"));
  ::unsetenv("PAWL_TEST_SECRET");  // NOLINT(concurrency-mt-unsafe)
}

TEST(ProcessStart, TheEnvironmentIsNeitherSeenInTheShimNorWritten) {
  const World world;
  const auto manager = world.manager();
  auto spec = shell("echo ready; exec sleep 1000");
  spec.environment = {{"TOKEN", "open-sesame"}};
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.lines("pump", 1);
  const auto [shim, command] = pids(world, "pump");
  const auto of_shim = fmt::format("/proc/{}/", shim);
  EXPECT_THAT(read_all(of_shim + "cmdline"), HasSubstr("pump"));
  EXPECT_THAT(read_all(of_shim + "cmdline"), Not(HasSubstr("open-sesame")));
  EXPECT_THAT(read_all(of_shim + "environ"), Not(HasSubstr("open-sesame")));
  EXPECT_THAT(read_all(fmt::format("/proc/{}/environ", command)), HasSubstr("open-sesame"));
  for (const auto& file : std::filesystem::directory_iterator(world.place("pump"))) {
    EXPECT_THAT(read_all(file.path()), Not(HasSubstr("open-sesame"))) << file.path();
  }
}

TEST(ProcessStart, ArgumentsAreNotInterpreted) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, {.command = {"printf", "%s\\n", "$(id)", "; ls", "a  b", ""}}));
  world.until_ended("pump");
  EXPECT_THAT(world.lines("pump", 4), ElementsAre("$(id)", "; ls", "a  b", ""));
}

TEST(ProcessStart, ItBeginsInItsDirectoryWithItsLimits) {
  const World world;
  const auto manager = world.manager();
  auto spec = shell("pwd; ulimit -n; ulimit -v");
  spec.directory = world.root();
  spec.open_files = 33;
  spec.address_space = 512ULL << 20U;
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.until_ended("pump");
  EXPECT_THAT(world.lines("pump", 3), ElementsAre(world.root(), "33", std::to_string(512 << 10)));
}

TEST(ProcessStart, ItHasNeitherSignalsNorDescriptorsOfTheServer) {
  const World world;
  const auto manager = world.manager();
  const int leaked = ::open("/dev/zero", O_RDONLY);  // NOLINT(android-cloexec-open): that is the point
  const auto old = ::signal(SIGUSR2, SIG_IGN);
  ASSERT_TRUE(manager.start("pump", 1, shell("grep -E 'Sig(Ign|Blk)' /proc/self/status; ls -l /proc/$$/fd")));
  world.until_ended("pump");
  ::signal(SIGUSR2, old);
  ::close(leaked);
  const auto lines = world.lines("pump", 5);
  EXPECT_THAT(lines, Contains("SigBlk:\t0000000000000000"));
  // 32 and 33 are the C library's own, which every program that it spawns ignores at first.
  EXPECT_THAT(lines, Contains(AnyOf("SigIgn:\t0000000000000000", "SigIgn:\t0000000180000000")));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("/dev/zero"))));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("/lock"))));
  EXPECT_EQ(std::ranges::count_if(lines, [](const auto& line) { return line.contains(" -> "); }), 3);
}

TEST(ProcessStart, AWrongSpecificationIsRefusedBeforeAnythingHappens) {
  const World world;
  const auto manager = world.manager();
  using namespace std::string_literals;
  const struct {
    ProcessSpec spec;
    std::string field;
    std::string says;
  } cases[] = {
      {{}, "command", "empty"},
      {{.command = {""}}, "command", "empty"},
      {{.command = {"no-such-program"}}, "command", "no program no-such-program in PATH"},
      {{.command = {"./here"}}, "command", "relative"},
      {{.command = {"/no/such/program"}}, "command", "not a file that may be executed"},
      {{.command = {"/tmp"}}, "command", "not a file that may be executed"},
      {{.command = {"/bin/sh", "a\0b"s}}, "command", "NUL"},
      {{.command = {"/bin/sh"}, .environment = {{"", "x"}}}, "environment", "name is not empty"},
      {{.command = {"/bin/sh"}, .environment = {{"A=B", "x"}}}, "environment", "no '='"},
      {{.command = {"/bin/sh"}, .environment = {{"A", "x\0"s}}}, "environment", "NUL"},
      {{.command = {"/bin/sh"}, .environment = {{"PAWL_PROCESS_MARK", "x"}}}, "environment", "by the server"},
      {{.command = {"/bin/sh"}, .directory = "/no/such"}, "directory", "make it"},
      {{.command = {"/bin/sh"}, .directory = "relative"}, "directory", "absolute"},
      {{.command = {"/bin/sh"}, .directory = "/bin/sh"}, "directory", "not a directory"},
      {{.command = {"/bin/sh"}, .line_bytes = 1}, "line_bytes", "16 to"},
      {{.command = {"/bin/sh"}, .log_bytes = 100}, "log_bytes", "two of the longest lines"},
      {{.command = {"/bin/sh"}, .open_files = 1}, "open_files", "at least 8"},
      {{.command = {"/bin/sh"}, .address_space = 0}, "address_space", "leave it out"},
  };
  for (const auto& one : cases) {
    const auto started = manager.start("pump", 1, one.spec);
    ASSERT_FALSE(started) << one.says;
    EXPECT_EQ(started.error().code(), Code::invalid_argument) << one.says;
    EXPECT_EQ(started.error().field("field"), one.field);
    EXPECT_THAT(started.error().message(), HasSubstr(one.says));
  }
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::absent);
  EXPECT_EQ(manager.start("", 1, shell("true")).error().code(), Code::invalid_argument);
  EXPECT_EQ(manager.start("pump", 0, shell("true")).error().code(), Code::invalid_argument);
}

TEST(ProcessStart, AManagerNeedsAbsolutePathsAndAShim) {
  const World world;
  EXPECT_EQ(ProcessManager::open("relative", PAWL_SHIM).error().code(), Code::invalid_argument);
  EXPECT_EQ(ProcessManager::open(world.processes(), world.root() + "/none").error().code(),
            Code::invalid_argument);
  EXPECT_EQ(ProcessManager::open("/dev/null/x", PAWL_SHIM).error().code(), Code::process_failed);
  const auto other = world.manager("/bin/true").start("pump", 1, shell("true"));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("without a word"));
}

}  // namespace
}  // namespace pawl::workers::test
