// SPDX-License-Identifier: Apache-2.0
// A machine draws itself: the text below is a Mermaid diagram, with the number of instances in some states.
#include <iostream>

#include "pawl/definition.hpp"

enum class Order { placed, paid, shipped, cancelled };
struct Pay {
  int cents = 0;
};
struct Ship {};
struct Cancel {};
struct AddNote {};
struct Invoice {
  int due = 0;
};

constexpr auto order =
    pawl::machine<Order, Invoice>("order")
        .initial(Order::placed)
        .on<Pay>(Order::placed, Order::paid,
                 pawl::when([](const Invoice& invoice, const Pay& pay) { return pay.cents >= invoice.due; }))
        .on<Ship>(Order::paid, Order::shipped)
        .on<Cancel>(pawl::from(Order::placed, Order::paid), Order::cancelled)
        .stay<AddNote>(Order::placed)
        .terminal(Order::shipped, Order::cancelled);
static_assert(pawl::verified<order>);

int main() { std::cout << pawl::to_mermaid(pawl::define<order>(), {{"placed", 3}}); }

// prints: stateDiagram-v2
// prints:     placed: placed (3)
// prints:     [*] --> placed
// prints:     placed --> paid: Pay [guarded]
// prints:     paid --> shipped: Ship
// prints:     placed --> cancelled: Cancel
// prints:     paid --> cancelled: Cancel
// prints:     placed --> placed: AddNote (stays)
// prints:     shipped --> [*]
// prints:     cancelled --> [*]
