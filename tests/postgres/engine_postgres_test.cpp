// SPDX-License-Identifier: Apache-2.0
// The engine on PostgreSQL: nothing about it is different, except that another process may become the owner.
#include <fmt/format.h>

#include "pawl/engine.hpp"
#include "pawl/machine.hpp"
#include "pawl/runtime.hpp"
#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/proxy.hpp"

namespace pawl::test {
namespace {

enum class Lamp { off, on };
struct Switch {};
struct Uses {
  int times = 0;
};
constexpr auto lamp = machine<Lamp, Uses>("lamp")
                          .initial(Lamp::off)
                          .on<Switch>(Lamp::off, Lamp::on, [](Uses& uses, const Switch&) { ++uses.times; })
                          .on<Switch>(Lamp::on, Lamp::off)
                          .endless();

class EngineOnPostgres : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }
  std::unique_ptr<Engine> open(bool take_over = false) {
    return Engine::open(runtime_, Machines().add<lamp>(),
                        {.store = place_->server().url(place_->database()), .take_over = take_over})
        .value();
  }

  std::optional<PostgresPlace> place_;
  ThreadRuntime runtime_;
};

TEST_F(EngineOnPostgres, ContinuesWhereTheLastOneEnded) {
  auto engine = open();
  ASSERT_EQ(engine->report().weakened_guarantees.size(), 1U) << "no synchronous standby";
  ASSERT_TRUE(engine->create<lamp>("hall"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine->send<lamp>("hall", Switch{}));
  engine.reset();
  engine = open();
  const auto hall = engine->get<lamp>("hall").value();
  EXPECT_EQ(hall.state, Lamp::on);
  EXPECT_EQ(hall.data.times, 3);
  EXPECT_EQ(engine->history("lamp", "hall").value().events.size(), 6U);
}

TEST_F(EngineOnPostgres, ThatWasFencedAnswersNothingAnyMore) {
  auto first = open();
  ASSERT_TRUE(first->create<lamp>("hall"));
  auto second = open(true);
  ASSERT_TRUE(second->send<lamp>("hall", Switch{}));
  EXPECT_EQ(code(first->send<lamp>("hall", Switch{})), Code::store_fenced);
  EXPECT_EQ(code(first->get<lamp>("hall")), Code::store_fenced);
  EXPECT_EQ(code(first->send<lamp>("nowhere", Switch{})), Code::store_fenced) << "not even a refusal";
  EXPECT_EQ(second->get<lamp>("hall").value().state, Lamp::on);
}

TEST_F(EngineOnPostgres, GoesOnAfterALostConnection) {
  Proxy proxy(place_->server());
  auto engine =
      Engine::open(runtime_, Machines().add<lamp>(), {.store = proxy.url(place_->database())}).value();
  ASSERT_TRUE(engine->create<lamp>("hall"));
  for (int i = 0; i < 6; ++i) {
    proxy.cut(Proxy::Cut::answer_to_commit);
    const auto sent = engine->send<lamp>("hall", Switch{});
    ASSERT_TRUE(sent) << sent.error().to_string();
  }
  EXPECT_EQ(proxy.cuts(), 6);
  EXPECT_EQ(engine->get<lamp>("hall").value().data.times, 3);
}

}  // namespace
}  // namespace pawl::test
