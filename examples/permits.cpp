// SPDX-License-Identifier: Apache-2.0
// Six downloads, two at a time; then the pool grows while they run.
#include <iostream>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

using namespace std::chrono_literals;

enum class Download { waiting, running, done };
struct Start {};
struct Done {};
struct Nothing {};
constexpr auto download =
    pawl::machine<Download, Nothing>("download")
        .initial(Download::waiting)
        .on<Start>(Download::waiting, Download::running,
                   [](Nothing&, const Start& start, pawl::Effects& effects) { effects.work("fetch", start); })
        .on<Done>(Download::running, Download::done)
        .terminal(Download::done);

int main() {
  pawl::sim::Simulation simulation;
  pawl::sim::Disk disk{1};
  auto& process = simulation.spawn("node");
  const auto fetch = [&](const pawl::WorkContext&, const Start&) -> pawl::Result<pawl::Reply> {
    pawl::Gate never;
    process.wait(never, 10min);  // blocks this handler alone
    return pawl::reply(Done{});
  };
  // excerpt: pool
  auto machines = pawl::Machines().add<download>().work<download, Start>("fetch", fetch, {.pool = "uplink"});
  const auto engine =
      pawl::Engine::open(process, machines,
                         {.store = "sqlite:downloads.db", .vfs = disk.vfs_name(), .pools = {{"uplink", 2}}})
          .value();
  const auto show = [&] {
    for (const auto& pool : engine->pools()) {
      if (pool.name != "uplink") continue;
      std::cout << pool.granted << " of " << pool.size << " run, " << pool.waiting << " wait\n";
    }
  };
  for (const auto* key : {"a", "b", "c", "d", "e", "f"}) {
    engine->create<download>(key).value();
    engine->send<download>(key, Start{}).value();
  }
  show();
  engine->resize_pool("uplink", 3).value();
  simulation.run_for(1min);
  show();
  simulation.run_for(1h);
  show();
  // excerpt end
}

// prints: 2 of 2 run, 4 wait
// prints: 3 of 3 run, 3 wait
// prints: 0 of 3 run, 0 wait
