// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/seeds/table_check.hpp"
#include "tests/seeds/workers_machine.hpp"

namespace {

using namespace seeds::workers;
using testing::IsEmpty;

TEST(WorkersWorker, HasTheNineTransitionsOfTheParentWorkerAndItsRemoval) {
  const seeds::Table table{.initial = "Stopped",
                           .terminal = {"Removed"},
                           .legal = {
                               {"Stopped", "Start", "TryingToStart"},
                               {"Stopped", "Shutdown", "Removed"},
                               {"TryingToStart", "Started", "Running"},
                               {"TryingToStart", "Shutdown", "TryingToStop"},
                               {"Running", "Degraded", "Degraded"},
                               {"Running", "Shutdown", "TryingToStop"},
                               {"Degraded", "Recovered", "Running"},
                               {"Degraded", "Shutdown", "TryingToStop"},
                               {"TryingToStop", "Stopped", "Stopped"},
                           }};
  EXPECT_EQ(pawl::define<worker>().transitions.size(), 9U);
  EXPECT_THAT(seeds::differences<worker>(table), IsEmpty());
}

}  // namespace
