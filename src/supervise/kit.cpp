// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "pawl/assert.hpp"
#include "pawl/supervisor_kit.hpp"

namespace pawl {

SupervisorKit::SupervisorKit(Setup setup, SupervisorKitOptions options)
    : simulation_(options.simulation),
      disk_(options.simulation.seed),
      options_(std::move(options)),
      setup_(std::move(setup)) {
  options_.engine.store = "sqlite:workers.db";
  options_.engine.vfs = disk_.vfs_name();
  options_.engine.pools.emplace(Supervisor::kPool, options_.supervisor.actions);
  const auto started = survive([](Supervisor&) -> Result<void> { return {}; });
  PAWL_ASSERT(started.has_value(), "the program starts", started.error().to_string());
}

SupervisorKit::~SupervisorKit() { stop(); }

Result<void> SupervisorKit::start() {
  process_ = &simulation_.spawn("program");
  Result<void> opened;
  const bool alive = process_->attempt([&] {
    opened = [&]() -> Result<void> {
      supervisor_ = std::make_unique<Supervisor>(*process_, setup_(*process_), options_.supervisor);
      Machines machines;
      supervisor_->add_machines(machines);
      PAWL_TRY(engine_, Engine::open(*process_, std::move(machines), options_.engine));
      PAWL_TRY(found_, supervisor_->attach(*engine_));
      return {};
    }();
  });
  if (alive && opened) return {};
  stop();
  if (alive) return opened;
  return fail(Code::stopped, "crashed while it started");
}

void SupervisorKit::stop() {
  if (supervisor_) supervisor_->detach();
  engine_.reset();
  supervisor_.reset();
}

bool SupervisorKit::wait_until(const std::function<bool()>& holds, Duration limit) {
  const auto end = simulation_.elapsed() + limit;
  while (!holds()) {
    if (simulation_.elapsed() >= end) return false;
    simulation_.run_for(options_.supervisor.tick);
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

void SupervisorKit::crash() {
  process_->crash();
  disk_.process_kill();
  stop();
  const auto started = start();
  PAWL_ASSERT(started.has_value(), "the program starts again", started.error().to_string());
}

void SupervisorKit::crash_and_change(Setup setup) {
  setup_ = std::move(setup);
  crash();
}

void SupervisorKit::restart() {
  stop();
  const auto started = start();
  PAWL_ASSERT(started.has_value(), "the program starts again", started.error().to_string());
}

Result<void> SupervisorKit::survive(const std::function<Result<void>(Supervisor&)>& work) {
  constexpr int kStarts = 100;
  for (int starts = 0; starts < kStarts; ++starts) {
    if (process_ == nullptr || process_->crashed()) {
      disk_.process_kill();
      stop();
      const auto started = start();
      if (!started && process_->crashed()) continue;
      PAWL_CHECK(started);
    }
    Result<void> outcome;
    if (process_->attempt([&] { outcome = work(*supervisor_); }) && !process_->crashed()) return outcome;
  }
  return fail(Code::internal, fmt::format("the program crashed {} times", kStarts));
}

}  // namespace pawl
