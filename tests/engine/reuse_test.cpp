// SPDX-License-Identifier: Apache-2.0
// A key that was forgotten and created again: nothing of the former instance is mistaken for the new one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "pawl/engine.hpp"
#include "tests/engine/machines.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test::reuse {
namespace {

enum class Sale { open, sold };
struct Sell {
  int amount = 0;
};
struct Pack {};
struct PackTwice {};
struct Packed {};
struct Sold {};

constexpr auto sale = machine<Sale, Total>("sale")
                          .initial(Sale::open)
                          .on<Sell>(Sale::open, Sale::sold,
                                    [](Total&, const Sell& sell, Effects& effects) {
                                      effects.send<counter>("till", Add{sell.amount});
                                    })
                          .terminal(Sale::sold);
static_assert(verified<sale>);

constexpr auto parcel =
    machine<Sale, Total>("parcel")
        .initial(Sale::open)
        .stay<Pack>(Sale::open, [](Total&, const Pack&, Effects& effects) { effects.work("pack", Pack{}); })
        .stay<PackTwice>(Sale::open,
                         [](Total&, const PackTwice&, Effects& effects) {
                           effects.work("pack", Pack{});
                           effects.work("pack", Pack{});
                         })
        .on<Packed>(Sale::open, Sale::sold)
        .terminal(Sale::sold);
static_assert(verified<parcel>);

/// The same machine after a release that renamed it.
constexpr auto renamed_parcel =
    machine<Sale, Total>("shipment")
        .formerly("parcel")
        .initial(Sale::open)
        .stay<Pack>(Sale::open, [](Total&, const Pack&, Effects& effects) { effects.work("pack", Pack{}); })
        .on<Packed>(Sale::open, Sale::sold)
        .terminal(Sale::sold);
static_assert(verified<renamed_parcel>);

class ReuseTest : public testing::Test {
 protected:
  void begin() {
    world_.emplace(
        [this] {
          Machines machines;
          machines.add<counter>().add<sale>();
          const auto pack = [this](const WorkContext& context, const Pack&) -> Result<Reply> {
            requests_.push_back(context.request_id());
            if (fails_) return fail(Code::timed_out, "no tape");
            return reply(Packed{});
          };
          const WorkOptions options{.retry = {.retries = 3, .first = 1s, .jitter = Jitter::none}};
          if (renamed_) {
            machines.add<renamed_parcel>().work<renamed_parcel, Pack>("pack", pack, options);
          } else {
            machines.add<parcel>().work<parcel, Pack>("pack", pack, options);
          }
          return machines;
        },
        EngineOptions{.forget_finished = 1h});
  }
  void forget() {
    world().simulation().run_for(2h);
    ASSERT_TRUE(world()->retain());
  }
  World& world() { return *world_; }

  std::vector<std::string> requests_;
  bool fails_ = false;
  bool renamed_ = false;
  std::optional<World> world_;
};

TEST_F(ReuseTest, AMessageOfAKeyCreatedAgainIsDeliveredToo) {
  begin();
  ASSERT_TRUE(world()->create<counter>("till"));
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(world()->create<sale>("s"));
    ASSERT_TRUE(world()->send<sale>("s", Sell{7}));
    world().simulation().run_for(1s);
    forget();
    ASSERT_EQ(code_of(world()->read("sale", "s")), Code::unknown_instance);
  }
  EXPECT_EQ(world()->get<counter>("till").value().data.sum, 14);
}

TEST_F(ReuseTest, WorkOfAKeyCreatedAgainHasAnotherRequestId) {
  begin();
  for (int life = 0; life < 2; ++life) {
    ASSERT_TRUE(world()->create<parcel>("p"));
    ASSERT_TRUE(world()->send<parcel>("p", Pack{}));
    world().simulation().run_for(1s);
    forget();
    world().restart();
  }
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_NE(requests_[0], requests_[1]);
}

TEST_F(ReuseTest, WorkOfOneTransitionHasNumbersOfItsOwnAlsoWhenTheClockStandsStill) {
  begin();
  ASSERT_TRUE(world()->create<parcel>("p"));
  fails_ = true;  // so that all of it stays pending
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world()->send<parcel>("p", Pack{}));
  world().process().jump_clock(-24h);
  world().restart();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(world()->send<parcel>("p", PackTwice{}));
  std::set<std::int64_t> numbers;
  for (const auto& work : world()->read("parcel", "p").value().work) numbers.insert(work.number);
  EXPECT_EQ(numbers.size(), 15U);
  // Programs in other languages read them as doubles.
  EXPECT_LT(*numbers.rbegin(), std::int64_t{1} << 53);
}

TEST_F(ReuseTest, TheRequestIdOfPendingWorkOutlivesARenamedMachine) {
  begin();
  fails_ = true;
  ASSERT_TRUE(world()->create<parcel>("p"));
  ASSERT_TRUE(world()->send<parcel>("p", Pack{}));
  world().simulation().run_for(100ms);
  fails_ = false;
  renamed_ = true;
  world().restart();
  world().simulation().run_for(10s);
  ASSERT_GE(requests_.size(), 2U);
  EXPECT_EQ(requests_.front(), requests_.back());
}

}  // namespace
}  // namespace pawl::test::reuse
