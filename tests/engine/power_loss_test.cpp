// SPDX-License-Identifier: Apache-2.0
// The engine on a disk that loses power at every sync of a run, before and after it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "tests/engine/broken_store.hpp"
#include "tests/engine/ledger.hpp"
#include "tests/engine/lying_disk.hpp"
#include "tests/engine/world.hpp"

namespace pawl::test {
namespace {

using sim::Unsynced;
using testing::ElementsAre;
using testing::IsEmpty;

/// Optimized builds try every boundary, slow ones (sanitizers) some of them.
#ifdef NDEBUG
constexpr std::size_t kStride = 1;
#else
constexpr std::size_t kStride = 23;
#endif
constexpr std::uint64_t kTransitions = 1000;

/// The disk before or after one sync, and the number of acknowledgements at that time.
struct Boundary {
  std::size_t nth = 0;
  sim::DiskImage image;
  std::size_t acknowledged = 0;
};

/// Runs the ledger and calls `visit` with every boundary, soon after it was passed.
template <class Visit>
std::size_t at_every_boundary(const StoreOpener& opener, const Visit& visit) {
  Ledger ledger;
  std::vector<Boundary> passed;
  std::size_t boundaries = 0;
  const auto watch = [&](sim::Disk& disk) {
    disk.on_sync([&](const sim::SyncPoint& point) {
      if (boundaries++ % kStride == 0)
        passed.push_back({point.nth, disk.snapshot(), ledger.acknowledged().size()});
    });
  };
  World world(ledger_machines, ledger_options(), {.prepare = watch, .opener = opener});
  const auto visit_passed = [&] {
    for (const auto& boundary : std::exchange(passed, {})) visit(boundary, ledger);
  };
  ledger.begin(world);
  while (world->stats().transitions < kTransitions && !testing::Test::HasFailure()) {
    ledger.burst(world, 1 + world.simulation().draw(20));
    world.simulation().run_for(world.simulation().draw(4) == 0 ? Duration(20min) : Duration(20ms));
    visit_passed();
  }
  world.stop();
  world.disk().on_sync({});
  visit_passed();
  return boundaries;
}

/// Cuts the power at the boundary and opens the engine again.
std::unique_ptr<World> cut(const Boundary& boundary, Unsynced unsynced, std::uint64_t seed) {
  const auto prepare = [&](sim::Disk& disk) {
    disk.restore(boundary.image);
    disk.power_cut(unsynced);
  };
  return std::make_unique<World>(ledger_machines, ledger_options(),
                                 Beginning{.seed = seed, .prepare = prepare});
}

struct Policy {
  const char* name;
  Unsynced unsynced;
  std::uint64_t seeds;
};

class EnginePowerLoss : public testing::TestWithParam<Policy> {};

TEST_P(EnginePowerLoss, WhatWasAcknowledgedSurvivesACutAtEverySyncAndTheEngineGoesOn) {
  std::size_t cuts = 0;
  const auto boundaries = at_every_boundary(open_store, [&](const Boundary& boundary, const Ledger& ledger) {
    if (HasFailure()) return;
    for (std::uint64_t seed = 1; seed <= GetParam().seeds; ++seed) {
      SCOPED_TRACE(testing::Message() << "sync " << boundary.nth << " seed " << seed);
      ++cuts;
      const auto world = cut(boundary, GetParam().unsynced, boundary.nth * 100 + seed);
      ASSERT_FALSE(HasFailure());
      const auto found = audit_ledger(*world, ledger.acknowledged(), boundary.acknowledged);
      ASSERT_THAT(found.problems, IsEmpty());
      ASSERT_TRUE((*world)->create<counter>("after"));
      ASSERT_TRUE((*world)->send<counter>("after", Close{}));
      ASSERT_THAT(settle_ledger(*world), IsEmpty());
    }
  });
  RecordProperty("boundaries", static_cast<int>(boundaries));
  RecordProperty("cuts", static_cast<int>(cuts));
  std::printf("power cut with %s: %zu boundaries, 1 of %zu tried, %zu cuts\n", GetParam().name, boundaries,
              kStride, cuts);
  EXPECT_GT(boundaries, 200U);
}

INSTANTIATE_TEST_SUITE_P(Policies, EnginePowerLoss,
                         testing::Values(Policy{"keep_none", Unsynced::keep_none, 1},
                                         Policy{"keep_all", Unsynced::keep_all, 1},
                                         Policy{"random", Unsynced::random, 3}),
                         [](const auto& policy) { return std::string(policy.param.name); });

/// Runs the ledger briefly on a faulty store, cuts the power and counts lost acknowledgements.
std::size_t lost_on(const StoreOpener& opener, Unsynced unsynced, std::uint64_t seed) {
  Ledger ledger;
  World world(ledger_machines, ledger_options(), {.seed = seed, .opener = opener});
  ledger.begin(world);
  for (int i = 0; i < 3; ++i) ledger.burst(world, 5);
  const Boundary boundary{0, world.disk().snapshot(), ledger.acknowledged().size()};
  const auto prepare = [&](sim::Disk& disk) {
    disk.restore(boundary.image);
    disk.power_cut(unsynced);
  };
  World after(ledger_machines, ledger_options(), {.seed = seed, .prepare = prepare});
  return audit_ledger(after, ledger.acknowledged(), boundary.acknowledged).lost;
}

TEST(EnginePowerLossAudit, FindsNothingOnASoundStore) {
  EXPECT_EQ(lost_on(open_store, Unsynced::keep_none, 1), 0U);
}

TEST(EnginePowerLossAudit, FindsAcknowledgementsBeforeTheSync) {
  // The engine commits, but its syncs do nothing: a kill would not notice, a power cut does.
  std::optional<LyingVfs> lying;
  const StoreOpener opener = [&](Runtime& runtime, const EngineOptions& options) {
    auto with = options;
    with.vfs = lying.emplace(options.vfs).name();
    return open_store(runtime, with);
  };
  EXPECT_GT(lost_on(opener, Unsynced::keep_none, 1), 0U);
  EXPECT_EQ(lost_on(opener, Unsynced::keep_all, 1), 0U) << "nothing is lost where the disk was lucky";
}

TEST(EnginePowerLossAudit, FindsAcknowledgementsBeforeTheCommit) {
  const StoreOpener opener = [](Runtime& runtime,
                                const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(runtime, options));
    return std::make_unique<AcknowledgesBeforeCommit>(std::move(store));
  };
  EXPECT_GT(lost_on(opener, Unsynced::keep_all, 1), 0U);
}

}  // namespace
}  // namespace pawl::test
