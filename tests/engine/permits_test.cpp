// SPDX-License-Identifier: Apache-2.0
// Only running work holds permits, however work is created, cancelled and ended, and in however few batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::permits {
namespace {

enum class Job { idle, busy, done };
struct Begin {};
struct Line {};
struct Unline {};
struct Drop {};
struct End {};
struct Task {};
struct Ran {};

constexpr auto job =
    machine<Job, Total>("job")
        .initial(Job::idle)
        .on<Begin>(Job::idle, Job::busy,
                   [](Total&, const Begin&, Effects& effects) { effects.work("task", Task{}); })
        .on<Line>(Job::idle, Job::busy,
                  [](Total&, const Line&, Effects& effects) {
                    effects.enter_queue("line");
                    effects.work("task", Task{});
                  })
        .stay<Unline>(Job::busy, [](Total&, const Unline&, Effects& effects) { effects.leave_queue(); })
        .on<Drop>(Job::busy, Job::idle,
                  [](Total&, const Drop&, Effects& effects) { effects.cancel_work("task"); })
        .stay<Ran>(Job::busy, [](Total& total) { ++total.sum; })
        .on<End>(from(Job::idle, Job::busy), Job::done)
        .terminal(Job::done);
static_assert(verified<job>);

class PermitsTest : public testing::Test {
 protected:
  void begin(std::string pool = "") {
    world_.emplace(
        [this, pool] {
          Machines machines;
          machines.add<job>();
          machines.work<job, Task>("task",
                                   [this](const WorkContext&, const Task&) -> Result<Reply> {
                                     ++runs_;
                                     return reply(Ran{});
                                   },
                                   {.retry = {.retries = 1}, .pool = pool});
          return machines;
        },
        EngineOptions{.pools = {{"one", 1}, {"line", 1}}});
  }
  /// Sends all events in one batch.
  template <class... Events>
  void one_batch(const std::string& key, Events... events) {
    std::size_t answers = 0;
    const auto note = [&](const auto& outcome) {
      EXPECT_TRUE(outcome) << outcome.error().to_string();
      ++answers;
    };
    (*world_)->submit(Transaction{}.create<job>(key), note);
    (world().operator->()->submit(Transaction{}.send<job>(key, events), note), ...);
    world().simulation().run_until([&] { return answers == 1 + sizeof...(events); });
    world().simulation().run_for(1s);
  }
  std::uint32_t granted(std::string_view pool) {
    for (const auto& status : world()->pools()) {
      if (status.name == pool) return static_cast<std::uint32_t>(status.granted);
    }
    ADD_FAILURE() << "no pool " << pool;
    return 0;
  }
  World& world() { return *world_; }

  int runs_ = 0;
  std::optional<World> world_;
};

TEST_F(PermitsTest, WorkCreatedAndEndedInOneBatchLeavesItsPermit) {
  begin("one");
  one_batch("a", Begin{}, End{});
  EXPECT_EQ(granted("one"), 0U);
  one_batch("b", Begin{});
  EXPECT_EQ(runs_, 1);
}

TEST_F(PermitsTest, WorkCreatedAndCancelledInOneBatchLeavesItsPermit) {
  begin("one");
  one_batch("a", Begin{}, Drop{});
  EXPECT_EQ(granted("one"), 0U);
}

TEST_F(PermitsTest, WorkCreatedAgainInTheBatchThatCancelledItRuns) {
  begin("one");
  one_batch("a", Begin{}, Drop{}, Begin{});
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(granted("one"), 0U);
}

TEST_F(PermitsTest, APlaceInALineLeftInTheBatchThatTookItIsFree) {
  begin();
  one_batch("a", Line{}, Unline{}, End{});
  EXPECT_EQ(granted("line"), 0U);
  one_batch("b", Line{}, End{});
  EXPECT_EQ(granted("line"), 0U);
  one_batch("c", Line{});
  EXPECT_EQ(runs_, 1);
}

TEST_F(PermitsTest, ManyEndedInOneBatchLeaveTheDefaultPoolsFree) {
  begin();
  std::size_t answers = 0;
  const auto note = [&](const auto&) { ++answers; };
  constexpr int kOrders = 2000;
  for (int i = 0; i < kOrders; ++i) {
    const auto key = "j" + std::to_string(i);
    world()->submit(Transaction{}.create<job>(key), note);
    world()->submit(Transaction{}.send<job>(key, Begin{}), note);
    world()->submit(Transaction{}.send<job>(key, End{}), note);
  }
  world().simulation().run_until([&] { return answers == 3 * std::size_t{kOrders}; });
  world().simulation().run_for(1s);
  EXPECT_EQ(granted("started_attempts"), 0U);
  runs_ = 0;
  one_batch("last", Begin{});
  EXPECT_EQ(runs_, 1);
}

}  // namespace
}  // namespace pawl::test::permits
