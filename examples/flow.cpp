// SPDX-License-Identifier: Apache-2.0
// A flow: an ordered list of durable steps. A run that must not go on is undone from its last step backwards.
#include <iostream>

#include "pawl/flows.hpp"

using namespace std::chrono_literals;

// excerpt: flow
struct Order {
  std::string sku;
  int cents = 0;
};
struct Shipment {
  std::string charge;
  std::string parcel;
};

// The bank is busy at first. An error means: try again, as the step's retry policy says.
static pawl::Outcome charge(pawl::Step& step, const Order& order, Shipment& shipment) {
  if (step.attempt() == 1) return pawl::Error(pawl::Code::timed_out, "the bank is busy");
  if (order.cents > 100'000) return pawl::Outcome::abort("over the limit");
  shipment.charge = "paid " + std::to_string(order.cents);  // give step.request_id() to a real bank
  return pawl::Outcome::done();
}

static pawl::Outcome refund(pawl::Step&, const Order& order, Shipment& shipment) {
  if (!shipment.charge.empty()) std::cout << "refund of " << order.cents << '\n';
  return pawl::Outcome::done();
}

static pawl::Outcome pack(pawl::Step&, const Order& order, Shipment& shipment) {
  if (order.sku == "anvil") return pawl::Outcome::unrecoverable("no box is strong enough");
  shipment.parcel = "a box with a " + order.sku;
  return pawl::Outcome::done();
}

static const auto ship = pawl::flow<Order, Shipment>("ship")
                             .start("charge", charge, {.retry = {.retries = 5, .first = 1ms}, .timeout = 10s})
                             .undo(refund)
                             .to("pack", pack)
                             .end();
// excerpt end

static void show(const pawl::Run& run) {
  const auto shipment = pawl::Flows::response(ship, run).value();
  std::cout << run.id << (run.state == pawl::RunState::done ? " is done: " : " has failed: ")
            << (run.error.empty() ? shipment.charge + ", " + shipment.parcel : run.error) << '\n';
}

int main() {
  // excerpt: run
  pawl::ThreadRuntime runtime;
  pawl::Flows flows(runtime);
  flows.add(ship);
  pawl::Machines machines;
  flows.add_machines(machines);
  const auto engine =
      pawl::Engine::open(runtime, std::move(machines), {.store = "sqlite:ship.db", .pools = {{"packers", 2}}})
          .value();
  flows.attach(*engine).value();

  flows.start(ship, Order{.sku = "lamp", .cents = 1200}, {.id = "order-17", .queue = "packers"}).value();
  show(flows.wait("ship", "order-17", 1min).value());
  flows.start(ship, Order{.sku = "anvil", .cents = 900}, {.id = "order-18"}).value();
  show(flows.wait("ship", "order-18", 1min).value());
  flows.detach();
  // excerpt end
}

// prints: order-17 is done: paid 1200, a box with a lamp
// prints: refund of 900
// prints: order-18 has failed: no box is strong enough
