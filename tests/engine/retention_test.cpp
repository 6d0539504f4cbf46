// SPDX-License-Identifier: Apache-2.0
// What retention may forget: the engine alone decides, and the store keeps every head that the engine keeps.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "tests/engine/broken_store.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

// A sale that ends by telling a counter about itself.
enum class Sale { open, sold };
struct Sell {
  int amount = 0;
};
struct Till {
  std::string counter;
};
constexpr auto sale = machine<Sale, Till>("sale")
                          .initial(Sale::open)
                          .on<Sell>(Sale::open, Sale::sold,
                                    [](Till& till, const Sell& sell, Effects& effects) {
                                      effects.send<counter>(till.counter, Add{sell.amount});
                                    })
                          .terminal(Sale::sold);
static_assert(verified<sale>);

Machines sales() {
  Machines machines;
  machines.add<sale>().add<counter>();
  return machines;
}

/// Has no room for entries of counters while `full` is set, so that messages to them wait.
class FullForCounters final : public StoreAround {
 public:
  FullForCounters(std::unique_ptr<Store> inside, const bool& full)
      : StoreAround(std::move(inside)), full_(full) {}

  Result<Seq> apply(const Write& write) override {
    const bool counts =
        std::ranges::any_of(write.entries, [](const auto& entry) { return entry.machine == "counter"; });
    if (full_ && counts) {
      inside_->discard();
      return fail(Code::disk_full, "no room for counters");
    }
    return inside_->apply(write);
  }

 private:
  const bool& full_;
};

StoreOpener full_for_counters(const bool& full) {
  return [&full](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(runtime, options));
    return std::make_unique<FullForCounters>(std::move(store), full);
  };
}

/// How often the counter "c" was told.
std::ptrdiff_t times_told(World& world) {
  const auto history = world->history("counter", "c").value();
  return std::ranges::count_if(history.events, [](const auto& event) { return event.event == "Add"; });
}

class UnsentMessage : public testing::TestWithParam<bool> {};

TEST_P(UnsentMessage, KeepsItsFinishedSenderAndIsDeliveredOnce) {
  bool full = false;
  World world(sales, {.forget_finished = 1h}, {.opener = full_for_counters(full)});
  ASSERT_TRUE(world->create<counter>("c"));
  ASSERT_TRUE(world->create<sale>("s", {.counter = "c"}));
  full = true;
  ASSERT_TRUE(world->send<sale>("s", Sell{5}));
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  ASSERT_TRUE(world->get<sale>("s")) << "its message was not delivered yet";
  const bool restarts_first = GetParam();
  if (restarts_first) world.restart();
  full = false;
  world.simulation().run_for(5s);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 5);
  world.stop();
  world.start();
  world.simulation().run_for(5s);
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 5);
  EXPECT_EQ(times_told(world), 1);
  EXPECT_THAT(world->check().value(), testing::IsEmpty());
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->retain());
  EXPECT_EQ(code_of(world->get<sale>("s")), Code::unknown_instance) << "nothing holds it any more";
}

INSTANTIATE_TEST_SUITE_P(EngineRetention, UnsentMessage, testing::Bool(),
                         [](const auto& info) { return info.param ? "AfterACrash" : "InOneRun"; });

TEST(EngineRetention, KeepsFinishedInstancesOfMachinesItDoesNotKnow) {
  bool reduced = false;
  World world(
      [&] {
        Machines machines;
        machines.add<member>();
        if (!reduced) machines.add<counter>();
        return machines;
      },
      {.forget_finished = 1h});
  ASSERT_TRUE(world->create<counter>("c", {.sum = 9}));
  ASSERT_TRUE(world->send<counter>("c", Close{}));
  reduced = true;
  world.restart();
  world.simulation().run_for(2h);
  ASSERT_TRUE(world->create<member>("m"));
  ASSERT_TRUE(world->retain());
  reduced = false;
  world.restart();
  EXPECT_EQ(world->get<counter>("c").value().data.sum, 9);
}

}  // namespace
}  // namespace pawl::test
