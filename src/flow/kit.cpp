// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "pawl/flow_kit.hpp"

namespace pawl {

FlowKit::FlowKit(Setup setup, FlowKitOptions options)
    : Program(options.simulation), options_(std::move(options)), setup_(std::move(setup)) {
  options_.engine.store = "sqlite:flows.db";
  options_.engine.vfs = disk().vfs_name();
  begin();
}

FlowKit::~FlowKit() { close(); }

Result<void> FlowKit::open(sim::Process& process) {
  flows_ = std::make_unique<Flows>(process, options_.flows);
  setup_(*flows_);
  Machines machines;
  flows_->add_machines(machines);
  PAWL_CHECK(flows_->validate());
  PAWL_TRY(engine_, Engine::open(process, std::move(machines), options_.engine));
  PAWL_TRY(found_, flows_->attach(*engine_));
  return {};
}

void FlowKit::close() {
  if (flows_) flows_->detach();
  engine_.reset();
  flows_.reset();
}

void FlowKit::crash_and_change(Setup setup) {
  setup_ = std::move(setup);
  crash();
}

Result<void> FlowKit::survive(const std::function<Result<void>(Flows&)>& work) {
  return Program::survive([&] { return work(*flows_); });
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
