// SPDX-License-Identifier: Apache-2.0
// A store whose lease runs out: what waits for its return, and what ends when another owner has taken over.
#include <gmock/gmock.h>

#include <atomic>

#include "server/serve.hpp"
#include "tests/engine/broken_store.hpp"
#include "tests/server/reader.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using testing::StartsWith;

enum class Owner { present, lapsed, replaced };

/// One that loses its lease when it is told to.
class LeasedStore final : public StoreAround {
 public:
  LeasedStore(std::unique_ptr<Store> inside, const std::atomic<Owner>& owner)
      : StoreAround(std::move(inside)), owner_(owner) {}

  Result<void> still_owner() const override {
    if (owner_ == Owner::lapsed)
      return fail(Code::store_fenced, "the lease has run out", {{"lease", "lapsed"}});
    if (owner_ == Owner::replaced) return fail(Code::store_fenced, "another owner has taken the store over");
    return {};
  }

 private:
  const std::atomic<Owner>& owner_;
};

class LapseTest : public testing::Test {
 protected:
  std::atomic<Owner> owner_ = Owner::present;
  World world_{
      {}, {}, [this](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
        PAWL_TRY(auto store, open_store(runtime, options));
        return std::make_unique<LeasedStore>(std::move(store), owner_);
      }};
};

TEST_F(LapseTest, AStreamEndsWithTheLeaseAndTheNextOneGoesOnBehindItOnceTheLeaseIsBack) {
  world_.engine->create<door>("first").value();
  Reader reader(world_, "?after=begin");
  const auto seen = reader.next();
  owner_ = Owner::lapsed;
  const auto end = reader.next();
  EXPECT_EQ(end.kind, "end");
  EXPECT_EQ(member(end.data, "code"), "\"store_fenced\"");
  EXPECT_THAT(Reader(world_, "?after=" + seen.id).head, StartsWith("HTTP/1.1 503"));
  owner_ = Owner::present;
  world_.engine->create<door>("second").value();
  while (true) {
    Reader again(world_, "?after=" + seen.id);
    if (!again.head.starts_with("HTTP/1.1 200")) continue;
    EXPECT_EQ(member(again.next().data, "key"), "\"second\"");
    break;
  }
}

TEST_F(LapseTest, AStreamEndsForGoodWhenAnotherOwnerHasTakenOver) {
  world_.engine->create<door>("first").value();
  Reader reader(world_, "?after=begin");
  reader.next();
  owner_ = Owner::replaced;
  EXPECT_EQ(member(reader.next().data, "code"), "\"store_fenced\"");
  owner_ = Owner::present;  // nobody asks any more
  EXPECT_THAT(Reader(world_, "").head, StartsWith("HTTP/1.1 503"));
}

TEST_F(LapseTest, TheProcessOutlivesALeaseThatHasRunOutAndEndsWhenAnotherOwnerHasTakenOver) {
  EXPECT_TRUE(server::check_engine(*world_.engine));
  owner_ = Owner::lapsed;
  const auto lapsed = server::check_engine(*world_.engine);
  EXPECT_TRUE(lapsed) << lapsed.error().to_string();
  EXPECT_EQ(world_.call("GET", "/readyz").status, 503);
  EXPECT_EQ(world_.call("GET", "/healthz").status, 200);
  owner_ = Owner::replaced;
  const auto replaced = server::check_engine(*world_.engine);
  ASSERT_FALSE(replaced);
  EXPECT_EQ(replaced.error().code(), Code::store_fenced);
  owner_ = Owner::present;
  EXPECT_EQ(world_.call("GET", "/readyz").status, 200);
}

}  // namespace
}  // namespace pawl::test
