// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machine that dispatch_bench gives to every candidate, as a function of its number of rows, so that all
/// of them are made of the same rows.
///
///     using Small = Shape<14, 5, 6>;
///     constexpr auto row = Small::row(3);     // {from, to, event, guarded, fallback}
///
/// State 0 is initial. Some (state, event) pairs have two rows: a guarded one and, behind it, its fallback.

#include <cstdint>
#include <vector>

namespace bench {

struct Row {
  int from = 0;
  int to = 0;
  int event = 0;
  bool guarded = false;   ///< asks `allowed`
  bool fallback = false;  ///< behind a guarded row, for what that one refuses
  bool updates = false;
};

template <int Rows, int States, int Events>
struct Shape {
  static_assert(Events <= 20, "`follow` has twenty cases");
  static constexpr int kRows = Rows;
  static constexpr int kStates = States;
  static constexpr int kEvents = Events;

  static constexpr Row row(int index) {
    const int from = index % States;
    const int place = index / States;  // the how-manieth row of its state
    const int last = (Rows - 1 - from) / States;
    const bool pair = from % 3 == 0 && place + 1 >= last;
    const int slot = pair ? last - 1 : place;
    return {.from = from,
            .to = place == 0 ? (from + 1) % States : (from * 5 + place * 3 + 1) % States,
            .event = (from * 7 + slot) % Events,
            .guarded = pair && place < last,
            .fallback = pair && place == last,
            .updates = index % 3 != 0};
  }
};

using Small = Shape<14, 5, 6>;
using Large = Shape<100, 25, 20>;

template <int Id>
struct Event {
  int amount = 0;
};

struct Data {
  std::int64_t total = 0;
  std::int64_t updates = 0;
  bool operator==(const Data&) const = default;
};

/// What the update of row `Index` does, and what every guard asks.
template <int Index>
constexpr void apply(Data& data, int amount) {
  data.total += std::int64_t{amount} * (Index + 1);
  ++data.updates;
}
constexpr bool allowed(const Data& data, int amount) { return ((data.updates + amount) & 1) != 0; }

/// One event of a walk.
struct Step {
  int event = 0;
  int amount = 0;
};
using Walk = std::vector<Step>;

/// Where a walk has led; the same for every candidate, or one of them is wrong.
struct End {
  int state = 0;
  Data data;
  bool operator==(const End&) const = default;
};

/// Fires each step of a walk, by a switch over its event that is the same for every candidate.
template <class Shape, class Fire>
void follow(const Walk& walk, Fire&& fire) {
#define BENCH_CASE(id)                                               \
  case id:                                                           \
    if constexpr (id < Shape::kEvents) fire(Event<id>{step.amount}); \
    break;
  for (const Step step : walk) {
    switch (step.event) {
      BENCH_CASE(0)
      BENCH_CASE(1)
      BENCH_CASE(2)
      BENCH_CASE(3)
      BENCH_CASE(4)
      BENCH_CASE(5)
      BENCH_CASE(6)
      BENCH_CASE(7)
      BENCH_CASE(8)
      BENCH_CASE(9)
      BENCH_CASE(10)
      BENCH_CASE(11)
      BENCH_CASE(12)
      BENCH_CASE(13)
      BENCH_CASE(14)
      BENCH_CASE(15)
      BENCH_CASE(16)
      BENCH_CASE(17)
      BENCH_CASE(18)
      BENCH_CASE(19)
    }
  }
#undef BENCH_CASE
}

/// Boost.MSM, in a file of its own because it compiles slowly.
End walk_msm_small(const Walk& walk);
End walk_msm_large(const Walk& walk);

}  // namespace bench
