// SPDX-License-Identifier: Apache-2.0
// Old entries leave the log; the instance stays what it is, and a subscriber that was away too long is told.
#include <iostream>

#include "pawl/engine.hpp"
#include "pawl/sim.hpp"
#include "pawl/sim_disk.hpp"

using std::chrono::days;

enum class Meter { running, removed };
struct Read {
  int value = 0;
};
struct Remove {};
struct Reading {
  int value = 0;
};
constexpr auto meter =
    pawl::machine<Meter, Reading>("meter")
        .initial(Meter::running)
        .stay<Read>(Meter::running, [](Reading& last, const Read& now) { last.value = now.value; })
        .on<Remove>(Meter::running, Meter::removed)
        .terminal(Meter::removed);
static_assert(pawl::verified<meter>);

int main() {
  pawl::sim::Simulation simulation;
  pawl::sim::Disk disk{1};
  // excerpt: retain
  pawl::EngineOptions options{.store = "sqlite:meters.db", .vfs = disk.vfs_name()};
  options.keep = days(30);              // entries of the log
  options.forget_finished = days(365);  // finished instances
  const auto engine =
      pawl::Engine::open(simulation.spawn("node"), pawl::Machines().add<meter>(), options).value();
  engine->create<meter>("cellar").value();
  auto subscription = engine->subscribe("begin").value();
  for (const int value : {10, 20, 30}) engine->send<meter>("cellar", Read{value}).value();
  simulation.run_for(days(40));
  engine->send<meter>("cellar", Read{40}).value();
  engine->retain().value();  // at once; it also happens by itself

  const auto history = engine->history("meter", "cellar").value();
  std::cout << history.events.size() << " entry, " << (history.truncated ? "truncated" : "whole") << '\n';
  std::cout << "the last reading is " << engine->get<meter>("cellar").value().data.value << '\n';
  std::cout << subscription.poll().error().message() << '\n';
  // excerpt end
}

// prints: 1 entry, truncated
// prints: the last reading is 40
// prints: entries up to 4 have been cut away; 0 lies below. Read the heads, then follow the feed from 4
