// SPDX-License-Identifier: Apache-2.0
// Two replicas want to be primary at the same moment; the first one succeeds.
#include <atomic>
#include <iostream>
#include <latch>
#include <thread>

#include "pawl/atomic.hpp"
#include "pawl/sim_disk.hpp"

enum class Role { standby, primary };
struct Promote {};
struct Demote {};
struct Replica {
  int promotions = 0;
};

constexpr auto replica =
    pawl::machine<Role, Replica>("replica")
        .initial(Role::standby)
        .on<Promote>(Role::standby, Role::primary, [](Replica& replica) { ++replica.promotions; })
        .on<Demote>(Role::primary, Role::standby)
        .endless();
static_assert(pawl::verified<replica>);

// excerpt: promote
static bool promote(pawl::Engine& engine, const std::string& key) {
  const auto done = engine.atomically("group-7", [&](pawl::Atomic& group) -> pawl::Result<void> {
    if (!group.all<replica>(Role::primary).empty()) {
      return pawl::fail(pawl::Code::guard_refused, "group-7 has a primary already");
    }
    group.send<replica>(key, Promote{});  // together with everything read above, or not at all
    return {};
  });
  return done.has_value();
}
// excerpt end

int main() {
  pawl::ThreadRuntime runtime;
  pawl::sim::Disk disk{1};  // in memory; leave out `vfs` for a real file
  const auto engine = pawl::Engine::open(runtime, pawl::Machines().add<replica>(),
                                         {.store = "sqlite:group.db", .vfs = disk.vfs_name()})
                          .value();
  for (const auto* key : {"a", "b"}) engine->create<replica>(key, {}, {.partition = "group-7"}).value();

  std::atomic<int> lost = 0;
  std::latch start{2};
  const auto compete = [&](const std::string& key) {
    start.arrive_and_wait();
    if (!promote(*engine, key)) ++lost;
  };
  std::thread a(compete, "a"), b(compete, "b");
  a.join();
  b.join();
  std::cout << "primaries: " << engine->counts()["replica"]["primary"] << ", attempts lost: " << lost << '\n';
}

// prints: primaries: 1, attempts lost: 1
