// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "workers/settings.hpp"

namespace pawl::workers {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(WorkerSettings, TheDocumentationListsEveryKeyWithItsDefault) {
  WorkersOptions options;
  std::vector<std::string> expected;
  for (const auto& setting : worker_settings(options)) {
    expected.push_back(fmt::format("| `workers.{}` | {} | `{}` | {} |", setting.name, setting.type,
                                   setting.default_value, setting.description));
  }
  std::vector<std::string> found;
  std::ifstream page(PAWL_SOURCE_DIR "/docs/workers.md");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `workers.")) found.push_back(line);
  }
  EXPECT_EQ(found, expected);
}

TEST(WorkerSettings, TheDefaultsThatAreShownAreThoseInUse) {
  const WorkersOptions before;
  WorkersOptions options{
      .tick = 1ms, .on_stop = OnStop::drain, .drain_base = 1ms, .actions = 1, .collectors = 1};
  for (const auto& setting : worker_settings(options)) {
    if (setting.default_value == "\"\"") continue;
    const auto taken = setting.set(setting.default_value);
    EXPECT_TRUE(taken) << setting.name << ": " << taken.error().to_string();
  }
  EXPECT_EQ(options.tick, before.tick);
  EXPECT_EQ(options.on_stop, before.on_stop);
  EXPECT_EQ(options.drain_base, before.drain_base);
  EXPECT_EQ(options.actions, before.actions);
  EXPECT_EQ(options.collectors, before.collectors);
}

TEST(WorkerSettings, ARefusedValueIsToldWhatWouldBeRight) {
  WorkersOptions options;
  for (const auto& setting : worker_settings(options)) {
    const auto taken = setting.set("colour");
    if (setting.type == "text") continue;
    ASSERT_FALSE(taken) << setting.name;
    const auto* const right = setting.type == "duration" ? "a duration"
                              : setting.type == "number" ? "a number from 1 to"
                                                         : "leave";
    EXPECT_THAT(taken.error().message(), HasSubstr(right));
  }
}

}  // namespace
}  // namespace pawl::workers
