// SPDX-License-Identifier: Apache-2.0
// Closing an engine answers every call that waits, once, and starts nothing new.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <latch>

#include "kernel/engine/open_engine.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::closing {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

/// Orders whose work waits for `release`, all in a pool of one permit, in a store whose lease may lapse.
class ClosingWorld : public testing::Test {
 protected:
  Machines machines() {
    Machines made;
    made.add<counter>().add<order>();
    made.work<order, Charge>("charge",
                             [this](const WorkContext& context, const Charge&) -> Result<Reply> {
                               ++calls;
                               world.process().wait(release);
                               return reply(Charged{std::string(context.key)});
                             },
                             {.pool = "one"});
    return made;
  }
  void place_orders(std::size_t count) {
    std::size_t answers = 0;
    const auto note = [&](const auto& outcome) { answers += outcome ? 1 : 0; };
    for (std::size_t i = 0; i < count; ++i) {
      const auto key = "o" + std::to_string(i);
      world->submit(Transaction{}.begin<order>(key, {}, Place{}), note);
    }
    world.simulation().run_until([&] { return answers == count; });
    world.simulation().run_until([&] { return calls == 1; });
  }

  LeaseFate fate;
  Gate release;
  int calls = 0;
  World world{[this] { return machines(); },
              {.pools = {{"one", 1}},
               .schema = {{.text = "CREATE TABLE IF NOT EXISTS paid(receipt TEXT PRIMARY KEY)"}}},
              {.opener = opens<Leased>(fate)}};
};

TEST_F(ClosingWorld, ThousandsThatWaitForAPermitDoNotGetOneAfterTheOtherWhenTheEngineCloses) {
  place_orders(20'000);
  // The work returns while the store accepts no commits: its end and the next start are postponed.
  fate.lapsed = true;
  release.open();
  world.simulation().run_for(100ms);
  world.stop();
  EXPECT_EQ(calls, 1);
}

TEST_F(ClosingWorld, ARequestThatWaitsForTheLeaseIsAnswered) {
  const auto elsewhere = [] {
    Machines machines;
    machines.add<order>();
    machines.work<order, Charge>("charge", [](const WorkContext&, const Charge&) { return no_reply(); },
                                 {.lease = 30s});
    return machines;
  };
  World remote{elsewhere, {}, {.opener = opens<Leased>(fate)}};
  ASSERT_TRUE(remote->commit(Transaction{}.begin<order>("o", {}, Place{})));
  const auto claimed = remote->claim("order", {"charge"}, 1s);
  ASSERT_TRUE(claimed && *claimed);
  fate.lapsed = true;
  std::vector<Code> codes;
  remote->complete((*claimed)->lease, reply(Charged{"r"}),
                   [&](const auto& outcome) { codes.push_back(code_of(outcome)); });
  remote.simulation().run_for(10s);
  EXPECT_THAT(codes, SizeIs(0));
  remote.stop();
  EXPECT_THAT(codes, ElementsAre(Code::stopped));
}

TEST_F(ClosingWorld, AClaimWhoseAttemptWaitsForTheLeaseIsToldThatTheEngineStopped) {
  const auto elsewhere = [] {
    Machines machines;
    machines.add<order>();
    machines.work<order, Charge>("charge", [](const WorkContext&, const Charge&) { return no_reply(); },
                                 {.lease = 30s});
    return machines;
  };
  World remote{elsewhere, {}, {.opener = opens<Leased>(fate)}};
  ASSERT_TRUE(remote->commit(Transaction{}.begin<order>("o", {}, Place{})));
  fate.lapsed = true;
  std::vector<Code> codes;
  remote->claim("order", {"charge"}, 1h, [&](const auto& outcome) { codes.push_back(code_of(outcome)); });
  remote.simulation().run_for(10s);
  remote.stop();
  EXPECT_THAT(codes, ElementsAre(Code::stopped));
}

TEST_F(ClosingWorld, EveryCallbackWhoseTurnHasNotComeIsToldThatTheEngineStopped) {
  ASSERT_TRUE(world->create<counter>("c"));
  std::vector<Code> codes;
  const auto note = [&](const auto& outcome) { codes.push_back(code_of(outcome)); };
  // The lane has run none of these tasks when it is destroyed.
  world->wait_for("counter", "c", {"open"}, std::nullopt, note);
  world->heartbeat({.machine = "order", .key = "o"}, note);
  world->complete({.machine = "order", .key = "o"}, no_reply(), note);
  world.stop();
  EXPECT_THAT(codes, SizeIs(3));
  EXPECT_THAT(codes, Each(Code::stopped));
}

/// Blocks retention until the engine closes.
class RetainsSlowly final : public StoreAround {
 public:
  RetainsSlowly(std::unique_ptr<Store> inside, Gate& retaining)
      : StoreAround(std::move(inside)), retaining_(retaining) {}

  Result<bool> retain(Seq) override {
    retaining_.open();
    closing_.wait();
    return false;  // there is more to do
  }
  void stop_queries() override {
    StoreAround::stop_queries();
    closing_.count_down();
  }

 private:
  Gate& retaining_;
  std::latch closing_{1};
};

TEST(ClosingThreads, AHandlerThatCutsTheLogDoesNotHoldUpTheEnd) {
  std::string pattern = (std::filesystem::temp_directory_path() / "pawl-close-XXXXXX").string();
  const std::filesystem::path directory = ::mkdtemp(pattern.data());
  ThreadRuntime runtime;
  Gate retaining;
  std::atomic<Engine*> known = nullptr;
  std::atomic<Code> told{};
  Machines machines;
  machines.add<order>();
  machines.work<order, Charge>("charge", [&](const WorkContext&, const Charge&) -> Result<Reply> {
    told = code_of(known.load()->retain());
    return no_reply();
  });
  auto engine = open_engine(runtime, std::move(machines),
                            {.store = "sqlite:" + (directory / "engine.db").string(), .keep = 1h},
                            [&](Runtime& of, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
                              PAWL_TRY(auto store, open_store(of, options));
                              return std::make_unique<RetainsSlowly>(std::move(store), retaining);
                            })
                    .value();
  known = engine.get();
  ASSERT_TRUE(engine->commit(Transaction{}.begin<order>("o", {}, Place{})));
  runtime.wait(retaining);
  engine.reset();
  EXPECT_EQ(told.load(), Code::stopped);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace pawl::test::closing
