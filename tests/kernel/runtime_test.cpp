// SPDX-License-Identifier: Apache-2.0
#include "pawl/runtime.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using pawl::Code;
using pawl::Gate;
using pawl::ThreadRuntime;

std::string this_thread_name() {
  std::array<char, 16> name{};
  (void)pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

/// Opens a gate when it is destroyed; lets a test see that a task was dropped.
struct OpensWhenDestroyed {
  Gate& gate;
  explicit OpensWhenDestroyed(Gate& g) : gate(g) {}
  OpensWhenDestroyed(const OpensWhenDestroyed&) = delete;
  OpensWhenDestroyed& operator=(const OpensWhenDestroyed&) = delete;
  ~OpensWhenDestroyed() { gate.open(); }
};

TEST(Gate, IsClosedUntilItIsOpenedAndThenStaysOpen) {
  ThreadRuntime runtime;
  Gate gate;
  EXPECT_FALSE(gate.is_open());
  EXPECT_FALSE(runtime.wait(gate, 0us));
  gate.open();
  gate.open();
  EXPECT_TRUE(gate.is_open());
  EXPECT_TRUE(runtime.wait(gate));
  EXPECT_TRUE(runtime.wait(gate, 0us));
}

TEST(Gate, AWaitWithATimeoutEndsWithoutTheGate) {
  ThreadRuntime runtime;
  Gate gate;
  const auto begun = runtime.instant();
  EXPECT_FALSE(runtime.wait(gate, 2ms));
  EXPECT_GE(runtime.instant() - begun, 2ms);
}

TEST(Gate, AnEndlessTimeoutDoesNotOverflow) {
  ThreadRuntime runtime;
  Gate gate;
  std::thread opener([&] { gate.open(); });
  EXPECT_TRUE(runtime.wait(gate, pawl::Duration::max()));
  opener.join();
}

TEST(Gate, MayBeDestroyedAsSoonAsAWaitHasReturned) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  for (int i = 0; i < 500; ++i) {
    auto gate = std::make_unique<Gate>();
    lane->post([opened = gate.get()] { opened->open(); });
    runtime.wait(*gate);
  }
}

TEST(Lane, RunsTasksInTheOrderTheyWerePosted) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  std::vector<int> order;
  Gate done;
  for (int i = 0; i < 1000; ++i) lane->post([&order, i] { order.push_back(i); });
  lane->post([&] { done.open(); });
  runtime.wait(done);
  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(Lane, RunsTasksOfManyPostersOneAtATime) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  int count = 0;  // not atomic: the thread sanitizer would see two tasks at once
  std::vector<std::thread> posters;
  for (int p = 0; p < 4; ++p) {
    posters.emplace_back([&] {
      for (int i = 0; i < 500; ++i) lane->post([&count] { ++count; });
    });
  }
  for (auto& poster : posters) poster.join();
  Gate done;
  lane->post([&] { done.open(); });
  runtime.wait(done);
  EXPECT_EQ(count, 2000);
}

TEST(Lane, ATaskMayPostToItsOwnLane) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate done;
  lane->post([&] { lane->post([&] { done.open(); }); });
  runtime.wait(done);
}

TEST(Lane, RunsTimersInTheOrderOfTheirDeadlines) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  std::vector<int> order;
  Gate done;
  // Set from one task, so that no timer can run before the last is set.
  lane->post([&] {
    lane->after(30ms, [&] { order.push_back(30), done.open(); });
    lane->after(10ms, [&] { order.push_back(10); });
    lane->after(20ms, [&] { order.push_back(20); });
    lane->after(10ms, [&] { order.push_back(11); });
    lane->after(0ms, [&] { order.push_back(0); });
    lane->after(-1h, [&] { order.push_back(1); });
  });
  runtime.wait(done);
  EXPECT_EQ(order, (std::vector{0, 1, 10, 11, 20, 30}));
}

TEST(Lane, ATimerDoesNotRunBeforeItsDelay) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate done;
  const auto begun = runtime.instant();
  lane->after(3ms, [&] { done.open(); });
  runtime.wait(done);
  EXPECT_GE(runtime.instant() - begun, 3ms);
}

TEST(Lane, AnEarlierTimerWakesALaneThatWaitsForALaterOne) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate done;
  lane->after(pawl::Duration::max(), [] { FAIL() << "a timer of a hundred years ran"; });
  lane->after(1ms, [&] { done.open(); });
  runtime.wait(done);
}

TEST(Lane, ACancelledTimerDoesNotRun) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate done;
  bool ran = false;
  lane->post([&] {
    const auto timer = lane->after(1ms, [&] { ran = true; });
    lane->after(2ms, [&] { done.open(); });
    EXPECT_TRUE(lane->cancel(timer));
    EXPECT_FALSE(lane->cancel(timer));
  });
  runtime.wait(done);
  EXPECT_FALSE(ran);
}

TEST(Lane, ATimerThatRanOrWasQueuedAtOnceCannotBeCancelled) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate held;
  Gate done;
  lane->post([&] {
    const auto queued = lane->after(0ms, [] {});
    EXPECT_FALSE(lane->cancel(queued));
    held.open();
  });
  runtime.wait(held);
  const auto timer = lane->after(1ms, [&] { done.open(); });
  runtime.wait(done);
  EXPECT_FALSE(lane->cancel(timer));
}

TEST(Lane, DestroyingItDropsWhatHasNotBegunAndWaitsForWhatHas) {
  ThreadRuntime runtime;
  auto lane = runtime.open_lane("lane");
  Gate begun;
  Gate dropped_timer;
  bool finished = false;
  lane->post([&, posted_to = lane.get()] {
    begun.open();
    // A lane that is being destroyed drops a posted task at once; that is how this task knows.
    for (auto probe = std::make_shared<int>(); !finished; std::this_thread::yield()) {
      const auto before = probe.use_count();
      posted_to->post([probe] { FAIL() << "a task began after the lane was told to stop"; });
      finished = probe.use_count() == before;
    }
  });
  lane->after(1h, [drop = std::make_unique<OpensWhenDestroyed>(dropped_timer)] {});
  runtime.wait(begun);
  lane.reset();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(dropped_timer.is_open());
}

TEST(Lane, ADroppedTaskMayPostAgainWhileTheLaneIsDestroyed) {
  ThreadRuntime runtime;
  auto lane = runtime.open_lane("lane");
  struct PostsWhenDestroyed {
    pawl::Lane* lane;
    ~PostsWhenDestroyed() {
      lane->post([] { FAIL() << "a destroyed lane ran a task"; });
      lane->after(1us, [] { FAIL() << "a destroyed lane ran a timer"; });
    }
  };
  lane->after(1h, [drop = std::make_unique<PostsWhenDestroyed>(lane.get())] {});
  lane.reset();
}

TEST(Lane, ItsThreadBearsItsName) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("a rather long lane name");
  Gate done;
  std::string name;
  lane->post([&] { name = this_thread_name(), done.open(); });
  runtime.wait(done);
  EXPECT_EQ(name, "a rather long l");
}

/// Runs the task on this thread as soon as the lane is idle.
void run_here_at_last(pawl::Lane& lane, pawl::Task task) {
  while (!lane.run_here(task)) std::this_thread::yield();
}

TEST(Lane, AnIdleOneLetsACallerRunATask) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  std::thread::id ran;
  run_here_at_last(*lane, [&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(Lane, ABusyOneLetsNobodyRunATaskAndLeavesIt) {
  ThreadRuntime runtime;
  Gate begun;
  Gate end;
  const auto lane = runtime.open_lane("lane");
  lane->post([&] {
    begun.open();
    while (!end.is_open()) std::this_thread::yield();
  });
  runtime.wait(begun);
  int runs = 0;
  pawl::Task task = [&] { ++runs; };
  EXPECT_FALSE(lane->run_here(task));
  EXPECT_EQ(runs, 0);
  end.open();
  task();
  EXPECT_EQ(runs, 1);
}

TEST(Lane, WhatIsPostedWhileACallerRunsATaskComesAfterIt) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate done;
  std::vector<int> order;
  run_here_at_last(*lane, [&] {
    lane->post([&] {
      order.push_back(2);
      done.open();
    });
    order.push_back(1);
  });
  runtime.wait(done);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST(Lane, ATimerThatIsSetWhileACallerRunsATaskIsKept) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  Gate late;
  Gate soon;
  lane->after(1h, [&] { late.open(); });
  run_here_at_last(*lane, [&] { lane->after(1ms, [&] { soon.open(); }); });
  EXPECT_TRUE(runtime.wait(soon));
  EXPECT_FALSE(late.is_open());
}

TEST(Lane, TasksOfCallersAndPostedOnesNeverRunAtOnce) {
  ThreadRuntime runtime;
  const auto lane = runtime.open_lane("lane");
  int unguarded = 0;  // the thread sanitizer sees what is not one at a time
  constexpr int kEach = 2000;
  Gate posted;
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 3; ++i) {
      callers.emplace_back([&] {
        for (int n = 0; n < kEach; ++n) {
          pawl::Task task = [&] { ++unguarded; };
          if (!lane->run_here(task)) lane->post(std::move(task));
        }
      });
    }
  }
  lane->post([&] { posted.open(); });
  runtime.wait(posted);
  EXPECT_EQ(unguarded, 3 * kEach);
}

TEST(Lane, DestroyingItWaitsForATaskThatACallerRuns) {
  ThreadRuntime runtime;
  auto lane = runtime.open_lane("lane");
  Gate begun;
  Gate end;
  std::atomic<bool> ended = false;
  std::jthread caller([&, raw = lane.get()] {
    run_here_at_last(*raw, [&] {
      begun.open();
      while (!end.is_open()) std::this_thread::yield();
      ended = true;
    });
  });
  runtime.wait(begun);
  std::jthread opener([&] { end.open(); });
  lane.reset();
  EXPECT_TRUE(ended);
}

TEST(LaneDeathTest, ATaskMustNotWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        ThreadRuntime runtime;
        const auto lane = runtime.open_lane("lane");
        Gate never;
        lane->post([&] { runtime.wait(never); });
        runtime.wait(never);
      },
      "a lane task does not wait");
}

TEST(ThreadPool, RunAsManyJobsAtTheSameTimeAsTheyHaveThreads) {
  ThreadRuntime runtime;
  std::array<Gate, 3> begun;
  const auto workers = runtime.open_thread_pool("io", {.threads = 3, .queue = 3});
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers->submit([&, i](std::stop_token) {
      begun[i].open();
      for (auto& gate : begun) runtime.wait(gate);  // returns only if all three run
    }));
  }
  for (auto& gate : begun) runtime.wait(gate);
}

TEST(ThreadPool, RefuseTheJobBeyondTheQueueAndTakeOneAgainWhenThereIsRoom) {
  ThreadRuntime runtime;
  Gate first;
  Gate second;
  Gate go;
  const auto workers = runtime.open_thread_pool("io", {.threads = 1, .queue = 1});
  ASSERT_TRUE(workers->submit([&](std::stop_token) { first.open(), runtime.wait(go); }));
  ASSERT_TRUE(workers->submit([&](std::stop_token) { second.open(); }));
  const auto refused = workers->submit([](std::stop_token) { FAIL() << "a refused job ran"; });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::overloaded);
  EXPECT_EQ(refused.error().field("workers"), "io");
  go.open();
  runtime.wait(second);  // the first has ended, so there is room
  EXPECT_TRUE(workers->submit([](std::stop_token) {}));
}

TEST(ThreadPool, RunMoreJobsAtTheSameTimeOnceTheyAreResized) {
  ThreadRuntime runtime;
  Gate hanging;
  Gate other;
  const auto workers = runtime.open_thread_pool("io", {.threads = 1, .queue = 2});
  ASSERT_TRUE(workers->submit([&](std::stop_token) { runtime.wait(hanging); }));
  ASSERT_TRUE(workers->submit([&](std::stop_token) { other.open(); }));
  workers->resize(2);
  runtime.wait(other);
  workers->resize(1);
  Gate last;
  ASSERT_TRUE(workers->submit([&](std::stop_token) { last.open(); }));
  EXPECT_FALSE(last.is_open()) << "one runs already";
  hanging.open();
  runtime.wait(last);
}

TEST(ThreadPool, RunQueuedJobsOfOneThreadInOrder) {
  ThreadRuntime runtime;
  std::vector<int> order;
  Gate done;
  const auto workers = runtime.open_thread_pool("io", {.threads = 1});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(workers->submit([&order, i](std::stop_token) { order.push_back(i); }));
  }
  ASSERT_TRUE(workers->submit([&](std::stop_token) { done.open(); }));
  runtime.wait(done);
  EXPECT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(ThreadPool, AJobIsAskedToStopThroughItsOwnSource) {
  ThreadRuntime runtime;
  Gate stopped;
  const auto workers = runtime.open_thread_pool("io", {.threads = 2});
  auto source = workers->submit([&](std::stop_token stop) {
    Gate asked;
    const std::stop_callback callback(stop, [&] { asked.open(); });
    runtime.wait(asked);
    stopped.open();
  });
  Gate other;
  ASSERT_TRUE(workers->submit([&](std::stop_token stop) {
    EXPECT_FALSE(stop.stop_requested());
    other.open();
  }));
  runtime.wait(other);
  ASSERT_TRUE(source);
  source->request_stop();
  runtime.wait(stopped);
}

TEST(ThreadPool, DestroyingThemAsksRunningJobsToStopAndDropsTheRest) {
  ThreadRuntime runtime;
  Gate begun;
  Gate dropped;
  bool finished = false;
  bool refused = false;
  auto workers = runtime.open_thread_pool("io", {.threads = 1});
  ASSERT_TRUE(workers->submit([&, pool = workers.get()](std::stop_token stop) {
    Gate asked;
    const std::stop_callback callback(stop, [&] { asked.open(); });
    begun.open();
    runtime.wait(asked);
    const auto late = pool->submit([](std::stop_token) {});
    refused = !late && late.error().code() == Code::stopped;
    finished = true;
  }));
  auto source = workers->submit([drop = std::make_unique<OpensWhenDestroyed>(dropped)](std::stop_token) {
    FAIL() << "a job began after the workers were told to stop";
  });
  ASSERT_TRUE(source);
  runtime.wait(begun);
  workers.reset();
  EXPECT_TRUE(finished);
  EXPECT_TRUE(refused);
  EXPECT_TRUE(dropped.is_open());
  EXPECT_TRUE(source->stop_requested());
}

TEST(ThreadPool, TheirThreadsBearTheirNameAndANumber) {
  ThreadRuntime runtime;
  Gate done;
  std::string name;
  const auto workers = runtime.open_thread_pool("io", {.threads = 1});
  ASSERT_TRUE(workers->submit([&](std::stop_token) { name = this_thread_name(), done.open(); }));
  runtime.wait(done);
  EXPECT_EQ(name, "io-0");
}

TEST(ThreadRuntime, TwoRuntimesDrawDifferentNumbers) {
  ThreadRuntime a;
  ThreadRuntime b;
  EXPECT_NE(a.random(), b.random());
}

TEST(ThreadRuntime, NeverInjectsAFault) {
  ThreadRuntime runtime;
  EXPECT_FALSE(runtime.fault("store.commit"));
}

TEST(ThreadRuntime, ItsMonotonicClockNeverGoesBack) {
  ThreadRuntime runtime;
  auto last = runtime.instant();
  for (int i = 0; i < 1000; ++i) {
    const auto next = runtime.instant();
    EXPECT_GE(next, last);
    last = next;
  }
}

}  // namespace
