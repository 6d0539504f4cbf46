// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/replay.hpp"

#include <gtest/gtest.h>

#include "tests/engine/broken_store.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

/// One whose log says of data what it was told to say.
class AlteredLog final : public StoreAround {
 public:
  AlteredLog(std::unique_ptr<Store> inside, const std::optional<std::string>& data)
      : StoreAround(std::move(inside)), data_(data) {}

  Result<std::vector<Entry>> feed(Seq after, std::size_t limit) override {
    PAWL_TRY(auto entries, inside_->feed(after, limit));
    for (auto& entry : entries) entry.data = data_.value_or(entry.data);
    return entries;
  }

 private:
  const std::optional<std::string>& data_;
};

class ReplayTest : public testing::Test {
 protected:
  std::optional<std::string> data;
  World world{counters, {.keep = 1h, .retain_every = 24h}, {.opener = opens<AlteredLog>(data)}};
  scenarios::Replay replay{world.simulation()};
};

TEST_F(ReplayTest, FindsAnEntryThatTheMachineDoesNotExplain) {
  ASSERT_TRUE(world->create<counter>("a"));
  replay.check(world.engine());
  ASSERT_TRUE(world->send<counter>("a", Add{1}));
  data = R"({"sum":7})";
  EXPECT_THROW(replay.check(world.engine()), sim::Violation);
}

TEST_F(ReplayTest, GoesOnFromTheHeadsWhereTheLogWasCutBeforeItWasReplayed) {
  ASSERT_TRUE(world->create<counter>("a"));
  replay.check(world.engine());
  const auto cursor = world->cursor_before(0);
  ASSERT_TRUE(world->send<counter>("a", Add{1}));
  ASSERT_TRUE(world->create<counter>("b"));
  world.simulation().run_for(3h);
  ASSERT_TRUE(world->retain());
  ASSERT_EQ(code_of(world->subscribe(cursor)), Code::cursor_expired);
  replay.check(world.engine());
  ASSERT_TRUE(world->send<counter>("a", Add{1}));
  replay.check(world.engine());
  ASSERT_TRUE(world->send<counter>("b", Add{1}));
  data = R"({"sum":7})";
  EXPECT_THROW(replay.check(world.engine()), sim::Violation);
}

}  // namespace
}  // namespace pawl::test
