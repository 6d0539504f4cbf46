// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "pawl/supervisor_kit.hpp"

namespace pawl {

SupervisorKit::SupervisorKit(Setup setup, SupervisorKitOptions options)
    : Program(options.simulation), options_(std::move(options)), setup_(std::move(setup)) {
  options_.engine.store = "sqlite:workers.db";
  options_.engine.vfs = disk().vfs_name();
  options_.engine.pools.emplace(Supervisor::kPool, options_.supervisor.actions);
  begin();
}

SupervisorKit::~SupervisorKit() { close(); }

Result<void> SupervisorKit::open(sim::Process& process) {
  supervisor_ = std::make_unique<Supervisor>(process, setup_(process), options_.supervisor);
  Machines machines;
  supervisor_->add_machines(machines);
  PAWL_TRY(engine_, Engine::open(process, std::move(machines), options_.engine));
  PAWL_TRY(found_, supervisor_->attach(*engine_));
  return {};
}

void SupervisorKit::close() {
  if (supervisor_) supervisor_->detach();
  engine_.reset();
  supervisor_.reset();
}

bool SupervisorKit::wait_until(const std::function<bool()>& holds, Duration limit) {
  const auto end = simulation().elapsed() + limit;
  while (!holds()) {
    if (simulation().elapsed() >= end) return false;
    simulation().run_for(options_.supervisor.tick);
  }
  return true;
}

bool SupervisorKit::wait_for(std::string_view path, std::string_view state, Duration limit) {
  return wait_until([&] { return this->state(path) == state; }, limit);
}

std::string SupervisorKit::state(std::string_view path) {
  const auto found = supervisor_->show(path);
  return found ? found->state : std::string();
}

std::vector<std::string> SupervisorKit::moves(std::string_view path) {
  std::vector<std::string> found;
  for (const auto& type : supervisor_->types().all()) {
    const auto instance = engine_->read(type->machine.name, path);
    if (!instance) continue;
    const auto history = engine_->history(type->machine.name, path, 0, 10'000);
    if (!history) continue;
    for (const auto& event : history->events) {
      if (event.generation == instance->generation && event.event == "Moved") found.push_back(event.state);
    }
  }
  std::ranges::reverse(found);
  return found;
}

void SupervisorKit::crash_and_change(Setup setup) {
  setup_ = std::move(setup);
  crash();
}

Result<void> SupervisorKit::survive(const std::function<Result<void>(Supervisor&)>& work) {
  return Program::survive([&] { return work(*supervisor_); });
}

}  // namespace pawl
