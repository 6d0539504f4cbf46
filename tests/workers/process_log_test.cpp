// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <filesystem>

#include "tests/workers/process_world.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::ElementsAre;

std::uint64_t size_of(const World& world, const std::string& file) {
  std::error_code ignored;
  const auto size = std::filesystem::file_size(world.place("pump") + "/" + file, ignored);
  return ignored ? 0 : size;
}

TEST(ProcessLog, EachLineHasItsTimeAndItsStream) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("echo one; exec 1>&2; echo two; printf 'no end'")));
  world.until_ended("pump");
  const auto status = manager.status("pump").value();
  const auto lines = manager.tail("pump", 10).value();
  std::vector<std::string> out;
  std::vector<std::string> err;
  for (const auto& line : lines) (line.error ? err : out).push_back(line.text);
  EXPECT_THAT(out, ElementsAre("one"));
  EXPECT_THAT(err, ElementsAre("two", "no end"));
  for (const auto& line : lines) {
    EXPECT_GE(line.at, status.started_at);
    EXPECT_LE(line.at, status.exit->at);
    EXPECT_FALSE(line.cut);
  }
  EXPECT_EQ(status.log_bytes, size_of(world, "log"));
}

TEST(ProcessLog, ALongLineIsCutAndTheNextIsWhole) {
  const World world;
  const auto manager = world.manager();
  auto spec = shell("head -c 300000 /dev/zero | tr '\\0' x; echo; echo exactly-16-chars; echo next");
  spec.line_bytes = 16;
  spec.log_bytes = 4096;
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.until_ended("pump");
  const auto lines = manager.tail("pump", 10).value();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].text, std::string(16, 'x'));
  EXPECT_TRUE(lines[0].cut);
  EXPECT_EQ(lines[1].text, "exactly-16-chars");
  EXPECT_FALSE(lines[1].cut);
  EXPECT_EQ(lines[2].text, "next");
}

TEST(ProcessLog, AFloodStaysWithinTheLimitAndItsEndIsKept) {
  const World world;
  const auto manager = world.manager();
  auto spec = shell("seq 1 300000; seq 1 100000 >&2; echo last");
  spec.log_bytes = 64 << 10;
  spec.line_bytes = 128;
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.until("pump", [&] {
    EXPECT_LE(size_of(world, "log"), spec.log_bytes / 2);
    EXPECT_LE(size_of(world, "log.1"), spec.log_bytes / 2);
    return manager.status("pump").value().state == ProcessState::exited;
  });
  EXPECT_GT(size_of(world, "log.1"), spec.log_bytes / 4);
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.log_bytes, size_of(world, "log") + size_of(world, "log.1"));
  EXPECT_EQ(status.log_lost_bytes, 0U);
  EXPECT_EQ(status.exit->code, 0);
  const auto all = manager.tail("pump", 10'000).value();
  EXPECT_GT(all.size(), 800U);
  // The numbers of each stream follow one another, also where one log ends and the next begins.
  int before = 0;
  for (const auto& line : all) {
    if (!line.error || line.text == "last") continue;
    if (before != 0) {
      ASSERT_EQ(std::stoi(line.text), before + 1);
    }
    before = std::stoi(line.text);
  }
  EXPECT_EQ(before, 100'000);
  EXPECT_THAT(manager.tail("pump", 1).value().size(), 1U);
}

TEST(ProcessLog, AFloodWithoutEndCanBeStopped) {
  const World world;
  const auto manager = world.manager();
  auto spec = shell("exec yes");
  spec.log_bytes = 64 << 10;
  ASSERT_TRUE(manager.start("pump", 1, spec));
  world.until("pump", [&] { return size_of(world, "log.1") > 0; });
  ASSERT_TRUE(manager.stop("pump", Duration::max()));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
  EXPECT_LE(manager.status("pump").value().log_bytes, spec.log_bytes);
}

TEST(ProcessLog, EveryByteButTheLineEndIsKept) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(
      manager.start("pump", 1, shell("printf 'a\\000b\\377\\r\\n\\n2026-01-01T00:00:00.000000Z err x\\n'")));
  world.until_ended("pump");
  using namespace std::string_literals;
  EXPECT_THAT(world.lines("pump", 3), ElementsAre("a\0b\xff\r"s, "", "2026-01-01T00:00:00.000000Z err x"));
}

TEST(ProcessLog, TheLogOfEarlierGenerationsIsContinued) {
  const World world;
  const auto manager = world.manager();
  for (std::uint64_t generation = 1; generation <= 3; ++generation) {
    ASSERT_TRUE(manager.start("pump", generation, shell(fmt::format("echo {}", generation))));
    ASSERT_TRUE(manager.stop("pump", Duration::max()));
  }
  // One that was stopped early may have written nothing.
  ASSERT_TRUE(manager.start("pump", 4, shell("echo 4; echo 5; echo 6")));
  world.until_ended("pump");
  EXPECT_EQ(manager.tail("pump", 1).value().front().text, "6");
  std::vector<std::string> last;
  const auto lines = manager.tail("pump", 2).value();
  for (const auto& line : lines) last.push_back(line.text);
  EXPECT_THAT(last, ElementsAre("5", "6"));
  EXPECT_TRUE(manager.tail("pump", 0).value().empty());
}

TEST(ProcessLog, WhatCannotBeWrittenIsCountedAndHoldsNothingUp) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("true")));
  world.until_ended("pump");
  std::filesystem::create_directory(world.place("pump") + "/log");
  std::filesystem::create_directory(world.place("pump") + "/log.1");
  std::filesystem::create_directory(world.place("pump") + "/log.1/full");
  ASSERT_TRUE(manager.start("pump", 2, shell("seq 1 50000; exit 6")));
  world.until_ended("pump");
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.exit->code, 6);
  EXPECT_GT(status.log_lost_bytes, 50'000U);
}

}  // namespace
}  // namespace pawl::workers::test
