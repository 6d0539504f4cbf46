// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "workers/drain_base.hpp"
#include "workers/types/process.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

WorkerView worker(std::string type, Phase phase, Duration grace) {
  return {.identity = {.path = "a", .name = "a", .type = std::move(type), .parent = {}},
          .phase = phase,
          .desired = Json{encode(ProcessDesired{.command = {"a"}, .stop_grace = grace}).value()}};
}

TEST(TheTimeToComeToRest, IsWhatWasSetWhereThereAreNoProcesses) {
  EXPECT_EQ(drain_base({}, 5s, 8), 5s);
  EXPECT_EQ(drain_base({worker("child", Phase::running, 1min)}, 5s, 8), 5s);
}

TEST(TheTimeToComeToRest, IsLongerThanTheLongestGraceOfAProcessThatRuns) {
  EXPECT_EQ(drain_base({worker("process", Phase::running, 10s), worker("process", Phase::degraded, 30s),
                        worker("process", Phase::stopped, 1min)},
                       5s, 8),
            35s);
}

TEST(TheTimeToComeToRest, GrowsWithProcessesThatCannotBeStoppedAtTheSameTime) {
  const std::vector<WorkerView> many(17, worker("process", Phase::running, 10s));
  EXPECT_EQ(drain_base(many, 5s, 8), 35s);
}

}  // namespace
}  // namespace pawl::workers
