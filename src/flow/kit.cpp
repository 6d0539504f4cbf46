// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "pawl/assert.hpp"
#include "pawl/flow_kit.hpp"

namespace pawl {

FlowKit::FlowKit(Setup setup, FlowKitOptions options)
    : simulation_(options.simulation),
      disk_(options.simulation.seed),
      options_(std::move(options)),
      setup_(std::move(setup)) {
  options_.engine.store = "sqlite:flows.db";
  options_.engine.vfs = disk_.vfs_name();
  const auto started = survive([](Flows&) -> Result<void> { return {}; });
  PAWL_ASSERT(started.has_value(), "the program starts", started.error().to_string());
}

FlowKit::~FlowKit() { stop(); }

Result<void> FlowKit::start() {
  process_ = &simulation_.spawn("program");
  Result<void> opened;
  const bool alive = process_->attempt([&] {
    opened = [&]() -> Result<void> {
      flows_ = std::make_unique<Flows>(*process_, options_.flows);
      setup_(*flows_);
      Machines machines;
      flows_->add_machines(machines);
      PAWL_CHECK(flows_->validate());
      PAWL_TRY(engine_, Engine::open(*process_, std::move(machines), options_.engine));
      PAWL_TRY(found_, flows_->attach(*engine_));
      return {};
    }();
  });
  if (alive && opened) return {};
  stop();
  if (alive) return opened;
  return fail(Code::stopped, "crashed while it started");
}

void FlowKit::stop() {
  if (flows_) flows_->detach();
  engine_.reset();
  flows_.reset();
}

void FlowKit::crash() {
  process_->crash();
  disk_.process_kill();
  stop();
  const auto started = start();
  PAWL_ASSERT(started.has_value(), "the program starts again", started.error().to_string());
}

void FlowKit::crash_and_change(Setup setup) {
  setup_ = std::move(setup);
  crash();
}

void FlowKit::restart() {
  stop();
  const auto started = start();
  PAWL_ASSERT(started.has_value(), "the program starts again", started.error().to_string());
}

Result<void> FlowKit::survive(const std::function<Result<void>(Flows&)>& work) {
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
    if (process_->attempt([&] { outcome = work(*flows_); }) && !process_->crashed()) return outcome;
  }
  return fail(Code::internal, fmt::format("the program crashed {} times", kStarts));
}

CrashReport crash_everywhere(const CrashTest& test) {
  CrashReport report;
  std::uint64_t places = 0;
  const auto run = [&](std::uint64_t place) {
    test.reset();
    auto options = test.options;
    options.simulation.crash_at = place;
    FlowKit kit(test.setup, std::move(options));
    const auto driven = kit.survive(test.drive);
    places = kit.simulation().hits();
    return driven ? test.observe() : "the run did not end: " + driven.error().to_string();
  };
  report.undisturbed = run(0);
  report.places = places;
  for (std::uint64_t place = 1; place <= report.places; ++place) {
    auto seen = run(place);
    if (seen == report.undisturbed) continue;
    report.violations.push_back(fmt::format("crashed at place {}: {}", place, seen));
  }
  return report;
}

}  // namespace pawl
