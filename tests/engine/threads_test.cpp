// SPDX-License-Identifier: Apache-2.0
// The engine on real threads and a real file; these tests run with the thread sanitizer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>

#include "kernel/engine/open_engine.hpp"
#include "pawl/atomic.hpp"
#include "pawl/engine.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"

namespace pawl::test {
namespace {

class EngineThreads : public testing::Test {
 protected:
  EngineThreads() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pawl-engine-XXXXXX").string();
    directory = ::mkdtemp(pattern.data());
  }
  ~EngineThreads() override {
    engine.reset();
    std::filesystem::remove_all(directory);
  }

  void open() {
    Machines machines;
    machines.add<counter>().add<member>().add<order>();
    machines.work<order, Charge>("charge", [](const WorkContext&, const Charge& charge) -> Result<Reply> {
      return reply(Charged{std::to_string(charge.cents)});
    });
    auto opened =
        Engine::open(runtime, std::move(machines),
                     {.store = "sqlite:" + (directory / "engine.db").string(),
                      .work_threads = 3,
                      .cache_bytes = 2000,
                      .schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}},
                      .checkpoint_every = 1ms});
    ASSERT_TRUE(opened) << opened.error().to_string();
    engine = *std::move(opened);
  }

  ThreadRuntime runtime;
  std::filesystem::path directory;
  std::unique_ptr<Engine> engine;
};

TEST_F(EngineThreads, ManyThreadsSendReadListAndSubscribeAtOnce) {
  constexpr int kWorkThreads = 4;
  constexpr int kSends = 100;
  open();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(engine->create<counter>("c" + std::to_string(i)));
  std::atomic<int> seen = 0;
  std::jthread subscriber([&] {
    auto subscription = engine->subscribe("begin").value();
    while (seen < 10 + kWorkThreads * kSends) {
      const auto events = subscription.next();
      ASSERT_TRUE(events);
      seen += static_cast<int>(events->size());
    }
  });
  std::vector<std::jthread> senders;
  for (int thread = 0; thread < kWorkThreads; ++thread) {
    senders.emplace_back([&, thread] {
      for (int i = 0; i < kSends; ++i) {
        const auto key = "c" + std::to_string((thread + i) % 10);
        EXPECT_TRUE(engine->send<counter>(key, Add{1}));
        EXPECT_TRUE(engine->get<counter>(key));
        EXPECT_EQ(engine->list({.machine = "counter", .limit = 5}).value().instances.size(), 5U);
      }
    });
  }
  senders.clear();
  subscriber.join();
  EXPECT_EQ(seen, 10 + kWorkThreads * kSends);
  int sum = 0;
  for (int i = 0; i < 10; ++i) sum += engine->get<counter>("c" + std::to_string(i)).value().data.sum;
  EXPECT_EQ(sum, kWorkThreads * kSends);
  engine.reset();
  open();
  EXPECT_EQ(engine->counts().at("counter").at("open"), 10U);
}

TEST_F(EngineThreads, ASubscriberThatWaitsIsWokenOnlyForEntriesItHasNotSeen) {
  open();
  std::jthread placing([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      ASSERT_TRUE(engine->create<order>("o" + std::to_string(i)));
      ASSERT_TRUE(engine->send<order>("o" + std::to_string(i), Place{}));
    }
  });
  auto subscription = engine->subscribe("begin").value();
  for (int round = 0; round < 500; ++round) {
    // Polling sees a batch before waiting subscribers are woken for it.
    while (subscription.poll().value().empty()) std::this_thread::yield();
    ASSERT_FALSE(subscription.next().value().empty()) << "round " << round;
  }
}

TEST_F(EngineThreads, StoppingWakesThoseWhoWait) {
  open();
  ASSERT_TRUE(engine->create<counter>("c"));
  auto subscription = engine->subscribe("").value();
  std::jthread subscriber([&] { EXPECT_EQ(subscription.next().error().code(), Code::stopped); });
  engine.reset();
}

TEST_F(EngineThreads, CompetingPromotionsLeaveOneLeader) {
  open();
  for (const auto* key : {"a", "b", "c", "d"})
    ASSERT_TRUE(engine->create<member>(key, {}, {.partition = "g"}));
  std::vector<std::jthread> candidates;
  for (const auto* key : {"a", "b", "c", "d"}) {
    candidates.emplace_back([&, key] {
      const auto done = engine->atomically("g", [&](Atomic& group) -> Result<void> {
        if (group.all<member>(Role::leader).empty()) group.send<member>(key, Promote{});
        return {};
      });
      EXPECT_TRUE(done);
    });
  }
  candidates.clear();
  EXPECT_EQ(engine->counts().at("member").at("leader"), 1U);
}

TEST_F(EngineThreads, WorkRunsBesideEachOther) {
  open();
  for (int i = 0; i < 20; ++i) {
    const auto key = "o" + std::to_string(i);
    ASSERT_TRUE(engine->create<order>(key, {.cents = i}));
    ASSERT_TRUE(engine->send<order>(key, Place{}));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(engine->wait<order>("o" + std::to_string(i), std::nullopt, Order::paid).value().data.receipt,
              std::to_string(i));
  }
}

TEST_F(EngineThreads, StoppingAnswersEverybody) {
  open();
  ASSERT_TRUE(engine->create<counter>("c"));
  std::atomic<int> answered = 0;
  for (int i = 0; i < 200; ++i) {
    engine->submit(Transaction{}.send<counter>("c", Add{1}), [&](const auto& outcome) {
      answered += outcome || outcome.error().code() == Code::stopped ? 1 : 0;
    });
  }
  engine.reset();
  EXPECT_EQ(answered, 200);
}

/// Once `failing` is set, a commit blocks until the engine closes and then fails.
class FailsAtClose final : public StoreAround {
 public:
  FailsAtClose(std::unique_ptr<Store> inside, std::atomic<bool>& failing)
      : StoreAround(std::move(inside)), failing_(failing) {}

  Result<void> commit() override {
    if (!failing_) return StoreAround::commit();
    closing_.wait();
    StoreAround::discard();
    return fail(Code::store_io, "the disk failed");
  }
  void stop_queries() override {
    StoreAround::stop_queries();
    closing_.count_down();
  }

 private:
  std::latch closing_{1};
  std::atomic<bool>& failing_;
};

TEST_F(EngineThreads, AStoreThatFailsWhileTheEngineClosesEndsEveryWaitOnce) {
  std::atomic<bool> failing = false;
  Machines machines;
  machines.add<counter>();
  engine =
      open_engine(runtime, std::move(machines), {.store = "sqlite:" + (directory / "engine.db").string()},
                  [&](Runtime& of, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
                    PAWL_TRY(auto store, open_store(of, options));
                    return std::make_unique<FailsAtClose>(std::move(store), failing);
                  })
          .value();
  ASSERT_TRUE(engine->create<counter>("c"));
  std::atomic<int> told = 0;
  engine->wait_for("counter", "c", {"closed"}, 1h, [&](const auto&) { ++told; });
  failing = true;
  engine->submit(Transaction{}.send<counter>("c", Add{1}), [&](const auto&) { ++told; });
  engine.reset();
  EXPECT_EQ(told, 2);
}

TEST_F(EngineThreads, WhoIsAloneDoesTheWorkOnTheirOwnThread) {
  open();
  ASSERT_TRUE(engine->create<counter>("c"));
  const auto here = std::this_thread::get_id();
  bool was_here = false;
  // The engine may be busy with background work at first.
  for (int i = 0; i < 1000 && !was_here; ++i) {
    Gate done;
    submit_inline(*engine, Transaction{}.send<counter>("c", Add{1}), [&](const auto& outcome) {
      EXPECT_TRUE(outcome);
      was_here = std::this_thread::get_id() == here;
      done.open();
    });
    runtime.wait(done);
  }
  EXPECT_TRUE(was_here);
}

TEST_F(EngineThreads, ASecondOwnerIsRefusedWithTheFirst) {
  open();
  const auto second =
      Engine::open(runtime, Machines{}, {.store = "sqlite:" + (directory / "engine.db").string()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::store_locked);
}

}  // namespace
}  // namespace pawl::test
