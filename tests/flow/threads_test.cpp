// SPDX-License-Identifier: Apache-2.0
// Flows on real threads: starts, waits, changes and claims from several of them at once.
#include <filesystem>
#include <thread>

#include "tests/flow/world.hpp"

namespace pawl::test {

struct Number {
  int value = 0;
};
struct Sum {
  int value = 0;
};

namespace {

namespace fs = std::filesystem;

class FlowThreadsTest : public ::testing::Test {
 protected:
  FlowThreadsTest() {
    auto name = (fs::temp_directory_path() / "pawl_flow_threads_XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory = name;
    const auto add = [](Step& step, const Number& number, Sum& sum) {
      step.progress(0.5);
      sum.value += number.value;
      return Outcome::done();
    };
    flows.add(flow<Number, Sum>("add").start("one", add).to("two", add).end());
    flows.add(flow<Number, Sum>("elsewhere").remote("one").to("two", add).end());
    Machines machines;
    flows.add_machines(machines);
    engine = Engine::open(
                 runtime, std::move(machines),
                 {.store = "sqlite:" + directory + "/flows.db", .work_threads = 3, .pools = {{"line", 2}}})
                 .value();
    EXPECT_TRUE(flows.attach(*engine));
  }
  ~FlowThreadsTest() override {
    flows.detach();
    engine.reset();
    fs::remove_all(directory);
  }

  std::string directory;
  ThreadRuntime runtime;
  Flows flows{runtime};
  std::unique_ptr<Engine> engine;
};

TEST_F(FlowThreadsTest, Defect10_TheFilesOfTheStoreAreUsableByTheirOwnerAndWrittenByNobodyElse) {
  using enum fs::perms;
  const auto before = fs::status(directory).permissions();
  flows.start("add", "{}", {.id = "x"}).value();
  flows.wait("add", "x").value();
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(directory)) {
    const auto mode = entry.status().permissions();
    EXPECT_EQ(mode & (owner_read | owner_write), owner_read | owner_write) << entry.path();
    EXPECT_EQ(mode & (group_write | others_write), none) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 1u);
  EXPECT_EQ(fs::status(directory).permissions(), before);
}

TEST_F(FlowThreadsTest, ManyThreadsStartAndAwaitRuns) {
  constexpr int kThreads = 4;
  constexpr int kRuns = 25;
  std::atomic<int> right = 0;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < kThreads; ++caller) {
    callers.emplace_back([&, caller] {
      for (int i = 0; i < kRuns; ++i) {
        const auto id = std::to_string(caller) + "-" + std::to_string(i);
        const auto run = flows.start("add", "{\"value\":" + std::to_string(i) + "}",
                                     {.id = id, .queue = i % 2 == 0 ? "line" : ""});
        const auto ended = flows.wait("add", id);
        if (run && ended && ended->response == "{\"value\":" + std::to_string(2 * i) + "}") ++right;
      }
    });
  }
  callers.clear();
  EXPECT_EQ(right, kThreads * kRuns);
}

TEST_F(FlowThreadsTest, RunsAreSteeredWhileTheyRun) {
  std::jthread starter([&] {
    for (int i = 0; i < 50; ++i) (void)flows.start("add", "{}", {.id = std::to_string(i), .queue = "line"});
  });
  std::jthread meddler([&] {
    for (int i = 0; i < 50; ++i) {
      (void)flows.pause("add", std::to_string(i));
      (void)flows.cancel("add", std::to_string(49 - i), "enough");
      (void)flows.resume("add", std::to_string(i));
      (void)flows.list({.flow = "add"});
    }
  });
  starter.join();
  meddler.join();
  for (int i = 0; i < 50; ++i) {
    const auto id = std::to_string(i);
    (void)flows.resume("add", id);
    const auto ended = flows.wait("add", id);
    ASSERT_TRUE(ended);
    EXPECT_TRUE(ended->state == RunState::done || ended->state == RunState::cancelled);
  }
}

TEST_F(FlowThreadsTest, StepsAreClaimedAndCompletedByOtherThreads) {
  constexpr int kRuns = 20;
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < 2; ++worker) {
    workers.emplace_back([&] {
      while (true) {
        const auto claimed = engine->claim("elsewhere", {"one"}, std::chrono::seconds(30));
        if (!claimed || !*claimed) return;
        Gate gate;
        flows.complete((*claimed)->lease, {Outcome::done(), R"({"value":7})"},
                       [&](const Result<void>&) { gate.open(); });
        runtime.wait(gate);
        if ((*claimed)->lease.key.starts_with("last")) return;
      }
    });
  }
  for (int i = 0; i < kRuns; ++i)
    ASSERT_TRUE(flows.start("elsewhere", R"({"value":1})", {.id = std::to_string(i)}));
  for (int i = 0; i < kRuns; ++i) {
    EXPECT_EQ(flows.wait("elsewhere", std::to_string(i)).value().response, R"({"value":8})");
  }
  for (const auto* id : {"last one", "last two"}) ASSERT_TRUE(flows.start("elsewhere", "{}", {.id = id}));
  workers.clear();
}

}  // namespace
}  // namespace pawl::test
