// SPDX-License-Identifier: Apache-2.0
// A flow is crashed at every place where it can crash; the bank must not notice.
#include <iostream>
#include <map>

#include "pawl/flow_kit.hpp"
#include "pawl/names.hpp"

using namespace std::chrono_literals;

struct Order {
  int cents = 0;
};
struct Receipt {
  std::string number;
};

int main() {
  // excerpt: kit
  std::map<std::string, int> bank;  // charges by request id: a repeat is the same charge
  const auto pay =
      pawl::flow<Order, Receipt>("pay")
          .start("charge",
                 [&](pawl::Step& step, const Order& order, Receipt& receipt) {
                   bank[step.request_id()] = order.cents;
                   receipt.number = step.request_id();
                   return pawl::Outcome::done();
                 })
          .to("confirm", [](pawl::Step&, const Order&, Receipt&) { return pawl::Outcome::done(); })
          .end();
  const auto setup = [&](pawl::Flows& flows) { flows.add(pay); };

  // Virtual time: an hour passes at once, and a crash in the middle of it changes nothing.
  pawl::FlowKit kit(setup);
  kit.flows().start(pay, Order{.cents = 700}, {.id = "a", .delay = 1h}).value();
  kit.crash();
  std::cout << pawl::enum_name(kit.flows().wait("pay", "a").value().state) << '\n';

  const auto drive = [&](pawl::Flows& flows) -> pawl::Result<void> {
    // It is repeated after each crash, and a run that is finished would be begun anew.
    if (!flows.get("pay", "b")) PAWL_CHECK(flows.start(pay, Order{.cents = 900}, {.id = "b"}));
    PAWL_CHECK(flows.wait("pay", "b"));
    return {};
  };
  const auto charges = [&] {
    int sum = 0;
    for (const auto& [id, cents] : bank) sum += cents;
    return std::to_string(bank.size()) + " charge of " + std::to_string(sum);
  };
  const auto report = pawl::crash_everywhere(
      {.setup = setup, .drive = drive, .reset = [&] { bank.clear(); }, .observe = charges});
  std::cout << report.undisturbed << ", " << report.violations.size() << " violations\n";
  // excerpt end
}

// prints: done
// prints: 1 charge of 900, 0 violations
