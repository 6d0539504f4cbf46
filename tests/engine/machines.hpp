// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Small machines that the engine's tests share.

#include <chrono>
#include <string>

#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/verify.hpp"

namespace pawl::test {

using namespace std::chrono_literals;

// A counter that can be closed: the smallest useful machine.
enum class Count { open, closed };
struct Add {
  int amount = 1;
};
struct Close {};
struct Total {
  int sum = 0;
};
inline constexpr auto counter =
    machine<Count, Total>("counter")
        .initial(Count::open)
        .stay<Add>(Count::open, when([](const Total&, const Add& add) { return add.amount > 0; }),
                   [](Total& total, const Add& add) { total.sum += add.amount; })
        .on<Close>(Count::open, Count::closed)
        .terminal(Count::closed)
        .generations();
static_assert(verified<counter>);

// An order: timer, work, message, application rows.
enum class Order { cart, placed, paid, shipped, failed, expired };
struct Place {};
struct Charge {
  int cents = 0;
};
struct Charged {
  std::string receipt;
};
struct ChargeFailed {
  std::string reason;
};
struct Expire {};
struct Ship {};
struct Cart {
  int cents = 0;
  std::string receipt;
  std::string tell;  // the counter that is told about the payment
  std::string why;
};
inline constexpr auto order =
    machine<Order, Cart>("order")
        .initial(Order::cart)
        .on<Place>(Order::cart, Order::placed,
                   [](Cart& cart, const Place&, Effects& effects) {
                     effects.set_timer("unpaid", 30min, Expire{});
                     effects.work("charge", Charge{cart.cents});
                   })
        .on<Charged>(
            Order::placed, Order::paid,
            [](Cart& cart, const Charged& charged, Effects& effects) {
              cart.receipt = charged.receipt;
              effects.clear_timer("unpaid");
              effects.sql(
                  {.text = "INSERT INTO paid(receipt) VALUES(?1)", .rows = {{charged.receipt}}, .expect = 1});
              if (!cart.tell.empty()) effects.send<counter>(cart.tell, Add{cart.cents});
            })
        .on<ChargeFailed>(Order::placed, Order::failed,
                          [](Cart& cart, const ChargeFailed& failed) { cart.why = failed.reason; })
        .on<Expire>(Order::placed, Order::expired)
        .on<Ship>(Order::paid, Order::shipped)
        .terminal(Order::shipped, Order::failed, Order::expired);
static_assert(verified<order>);

// Members of a group with one leader.
enum class Role { follower, leader, gone };
struct Promote {};
struct Demote {};
struct Leave {};
struct Member {
  int term = 0;
};
inline constexpr auto member = machine<Role, Member>("member")
                                   .initial(Role::follower)
                                   .on<Promote>(Role::follower, Role::leader, [](Member& it) { ++it.term; })
                                   .on<Demote>(Role::leader, Role::follower)
                                   .on<Leave>(from(Role::follower, Role::leader), Role::gone)
                                   .terminal(Role::gone)
                                   .recover(Role::leader, Role::follower);
static_assert(verified<member>);

}  // namespace pawl::test
