// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "kernel/sim_core.hpp"
#include "pawl/assert.hpp"

namespace pawl::sim {

Simulation::Simulation(Options options) : core_(std::make_unique<detail::Core>(options)) {}

Simulation::~Simulation() {
  // The failure of a task that a destructor ran would be lost here, unless another one is on its way already.
  if (!core_->held_back() || std::uncaught_exceptions() > 0) return;
  fmt::print(stderr, "a task failed while workers were destroyed, seed {}\n{}", seed(), trace());
  std::rethrow_exception(core_->held_back());  // out of a destructor: ends the test, as it would the process
}

Process& Simulation::spawn(std::string name) {
  core_->processes.push_back(std::unique_ptr<Process>(new Process(core_->add_node(std::move(name)))));
  return *core_->processes.back();
}

bool Simulation::step() {
  core_->enter();
  return core_->step();
}

void Simulation::run_until_idle() {
  core_->enter();
  core_->run([] { return false; });
}

void Simulation::run_for(Duration time) {
  core_->enter();
  const auto end = core_->time + time;
  core_->run([] { return false; }, end);
  core_->advance(end);
}

void Simulation::run_until(const std::function<bool()>& done) {
  core_->enter();
  if (!core_->run(done)) core_->stuck("deadlock: nothing is left to do, and the awaited condition is false");
}

void Simulation::arm(std::string_view point, Fault fault) { core_->arm(point, fault); }
void Simulation::disarm(std::string_view point) { core_->disarm(point); }
std::uint64_t Simulation::hits(std::string_view point) const { return core_->hits(point); }
std::uint64_t Simulation::hits() const noexcept { return core_->total_hits; }
void Simulation::crash_at(std::uint64_t nth) noexcept { core_->crash_at = nth; }
std::uint64_t Simulation::crashes() const noexcept { return core_->crashes; }

std::uint64_t Simulation::draw(std::uint64_t bound) { return core_->scenario.below(bound); }
Duration Simulation::elapsed() const noexcept { return core_->time; }
std::uint64_t Simulation::steps() const noexcept { return core_->steps; }
std::uint64_t Simulation::seed() const noexcept { return core_->options.seed; }

void Simulation::note(std::string_view text) { core_->note("{}", text); }

void Simulation::require(bool holds, std::string_view text) {
  if (!holds) core_->violated(text);
}

std::string Simulation::trace() const { return core_->trace.text(core_->trace.kept()); }
std::uint64_t Simulation::trace_hash() const noexcept { return core_->trace.hash(); }

}  // namespace pawl::sim
