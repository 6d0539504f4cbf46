// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machines that are killed: every kind of effect, and in each payload the number of the request that
/// asked for it, so that the log alone tells what happened how often.

#include <chrono>
#include <cstdint>
#include <string>

#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/verify.hpp"

namespace pawl::crash {

/// What an increment asks for besides itself.
enum class Also { nothing, timer, work, message };

// A counter that writes an application row with each increment.
enum class Count { open, closed };
struct Increment {
  std::int64_t request = 0;
  Also also = Also::nothing;
  std::int64_t after_ms = 0;  // of the timer
  std::string tell;           // the inbox that gets the message
};
/// The timer has fired.
struct Rung {
  std::int64_t request = 0;
};
/// The work is done: `line` and `attempt` are what it wrote into the file outside.
struct Noted {
  std::int64_t request = 0;
  std::string line;
  std::int64_t attempt = 0;
};
struct Note {
  std::int64_t request = 0;
};
struct Close {};
struct Tally {
  std::int64_t sum = 0;
};

// The receiver of messages.
struct Posted {
  std::int64_t request = 0;
};
inline constexpr auto inbox = machine<Count, Tally>("inbox")
                                  .initial(Count::open)
                                  .stay<Posted>(Count::open, [](Tally& tally, const Posted&) { ++tally.sum; })
                                  .on<Close>(Count::open, Count::closed)
                                  .terminal(Count::closed);
static_assert(verified<inbox>);

inline constexpr auto counter =
    machine<Count, Tally>("counter")
        .initial(Count::open)
        .stay<Increment>(Count::open,
                         [](Tally& tally, const Increment& it, Effects& effects) {
                           ++tally.sum;
                           effects.sql({.text = "INSERT INTO increments(request) VALUES(?1)",
                                        .rows = {{it.request}},
                                        .expect = 1});
                           const auto name = "rung-" + std::to_string(it.request);
                           if (it.also == Also::timer)
                             effects.set_timer(name, std::chrono::milliseconds(it.after_ms),
                                               Rung{it.request});
                           if (it.also == Also::work) effects.work("note", Note{it.request});
                           if (it.also == Also::message) effects.send<inbox>(it.tell, Posted{it.request});
                         })
        .stay<Rung>(Count::open)
        .stay<Noted>(Count::open)
        .on<Close>(Count::open, Count::closed)
        .terminal(Count::closed);
static_assert(verified<counter>);

// Accounts of a bank are one partition; money moves in transactions, so the sum stays.
struct Balance {
  std::int64_t amount = 0;
};
struct Withdraw {
  std::int64_t request = 0;
  std::int64_t amount = 0;
};
struct Deposit {
  std::int64_t request = 0;
  std::int64_t amount = 0;
};
inline constexpr auto account =
    machine<Count, Balance>("account")
        .initial(Count::open)
        .stay<Withdraw>(Count::open,
                        when([](const Balance& has, const Withdraw& it) { return has.amount >= it.amount; }),
                        [](Balance& has, const Withdraw& it) { has.amount -= it.amount; })
        .stay<Deposit>(Count::open, [](Balance& has, const Deposit& it) { has.amount += it.amount; })
        .on<Close>(Count::open, Count::closed)
        .terminal(Count::closed);
static_assert(verified<account>);

}  // namespace pawl::crash
