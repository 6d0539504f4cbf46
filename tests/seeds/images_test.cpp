// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/seeds/images_machine.hpp"
#include "tests/seeds/table_check.hpp"

namespace {

using namespace seeds::images;
using testing::IsEmpty;

TEST(ImagesRun, HasAStateForEachWayToEnd) {
  const seeds::Table table{.initial = "pending",
                           .terminal = {"complete", "handoff", "aborted", "failed", "canceled"},
                           .legal = {
                               {"pending", "Begin", "running"},
                               {"pending", "Cancel", "canceled"},
                               {"running", "StepFailed", "running"},
                               {"running", "Finish", "complete"},
                               {"running", "Handoff", "handoff"},
                               {"running", "Abort", "aborted"},
                               {"running", "Fail", "failed"},
                               {"running", "Cancel", "canceled"},
                           }};
  EXPECT_EQ(pawl::define<run>().transitions.size(), 8U);
  EXPECT_THAT(seeds::differences<run>(table), IsEmpty());
}

TEST(ImagesRun, AFailureSaysWhoseFaultItWas) {
  pawl::Local<run> it({}, Run::running);
  ASSERT_TRUE(it.send(Fail{.blame = Blame::user}));
  EXPECT_EQ(it.data().blame, Blame::user);
}

}  // namespace
