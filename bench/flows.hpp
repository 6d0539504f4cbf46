// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Flows whose steps do nothing, for every benchmark that runs some.
///
///     flows.add(bench::make_flow(4));
///     auto measured = bench::drive_flows(flows, 4, {.outstanding = 64});

#include <fmt/format.h>

#include <string>
#include <utility>

#include "bench/load.hpp"
#include "pawl/flows.hpp"

namespace bench {

struct Order {
  std::string item = "lamp";
  std::string city = "Oslo";
  int cents = 1200;
};
struct Shipment {
  std::string charge;
  std::string parcel;
  int steps = 0;
};

/// "flow1" or "flow4", with so many steps.
inline pawl::Flow<Order, Shipment> make_flow(int steps) {
  const auto nothing = [](pawl::Step&, const Order&, Shipment& shipment) {
    ++shipment.steps;
    return pawl::Outcome::done();
  };
  auto builder = pawl::flow<Order, Shipment>(fmt::format("flow{}", steps)).start("step1", nothing);
  for (int step = 2; step <= steps; ++step)
    builder = std::move(builder).to(fmt::format("step{}", step), nothing);
  return std::move(builder).end();
}

/// Starts runs and awaits them.
inline Measured drive_flows(pawl::Flows& flows, int steps, LoadOptions options) {
  const auto name = fmt::format("flow{}", steps);
  const auto request = pawl::encode(Order{}).value();
  return drive(options, [&](std::size_t, Answered answered) {
    flows.start(name, request, {},
                [&flows, name, answered = std::move(answered)](pawl::Result<pawl::Run> run) mutable {
                  if (!run) return answered(false);
                  flows.wait(name, run->id, std::nullopt,
                             [answered = std::move(answered)](const auto& ended) mutable {
                               answered(ended && ended->state == pawl::RunState::done);
                             });
                });
  });
}

}  // namespace bench
