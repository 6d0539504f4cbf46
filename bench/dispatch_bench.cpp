// SPDX-License-Identifier: Apache-2.0
// Nanoseconds per event of pawl::fire, of a hand-written switch and of Boost.MSM without its queue, on the
// same random legal walk in the same run.
#include <fmt/format.h>

#include <boost/preprocessor/repetition/repeat.hpp>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/dispatch_machine.hpp"
#include "bench/report.hpp"
#include "pawl/fire.hpp"

namespace bench {
namespace {

constexpr std::size_t kSteps = 1 << 16;
constexpr int kPasses = 8;
constexpr int kRepetitions = 21;

// The enumerators need names, because a machine's states have names.
#define BENCH_STATE(z, index, prefix) BOOST_PP_CAT(prefix, index),
enum class SmallState { BOOST_PP_REPEAT(5, BENCH_STATE, s) };
enum class LargeState { BOOST_PP_REPEAT(25, BENCH_STATE, s) };
#undef BENCH_STATE

template <class Shape, class State, int Index = 0>
consteval auto with_rows(auto machine) {
  if constexpr (Index == Shape::kRows) {
    return machine;
  } else {
    constexpr Row row = Shape::row(Index);
    using E = Event<row.event>;
    constexpr auto from = static_cast<State>(row.from);
    constexpr auto to = static_cast<State>(row.to);
    constexpr auto guard =
        pawl::when([](const Data& data, const E& event) { return allowed(data, event.amount); });
    constexpr auto update = [](Data& data, const E& event) { apply<Index>(data, event.amount); };
    if constexpr (row.guarded && row.updates) {
      return with_rows<Shape, State, Index + 1>(machine.template on<E>(from, to, guard, update));
    } else if constexpr (row.guarded) {
      return with_rows<Shape, State, Index + 1>(machine.template on<E>(from, to, guard));
    } else if constexpr (row.updates) {
      return with_rows<Shape, State, Index + 1>(machine.template on<E>(from, to, update));
    } else {
      return with_rows<Shape, State, Index + 1>(machine.template on<E>(from, to));
    }
  }
}

template <class Shape, class State>
inline constexpr auto kMachine =
    with_rows<Shape, State>(pawl::machine<State, Data>("bench").initial(static_cast<State>(0)).endless());
constexpr auto& kSmall = kMachine<Small, SmallState>;
constexpr auto& kLarge = kMachine<Large, LargeState>;
static_assert(pawl::verified<kSmall>);
static_assert(pawl::verified<kLarge>);

template <class Shape, const auto& M>
End walk_pawl(const Walk& walk) {
  pawl::StateOf<M> state{};
  Data data;
  follow<Shape>(walk, [&](const auto& event) { (void)pawl::fire<M>(state, data, event); });
  return {static_cast<int>(state), data};
}

/// What a case of the hand-written switch does.
template <class Shape, int Index>
void make_transition(int& state, Data& data, int amount) {
  constexpr Row row = Shape::row(Index);
  if constexpr (row.guarded) {
    if (!allowed(data, amount)) return make_transition<Shape, Index + Shape::kStates>(state, data, amount);
  }
  if constexpr (row.updates) apply<Index>(data, amount);
  state = row.to;
}

/// One function per event that switches over the state, as one writes it by hand. Rows of other events, and
/// fallbacks, which the guarded row handles, get a label that no state has.
template <class Shape, int Index, int Id>
constexpr int label() {
  constexpr Row row = Shape::row(Index);
  return row.event == Id && !row.fallback ? row.from : 1000 + Index;
}
#define BENCH_ROW(z, index, unused)                                    \
  case label<Shape, index, Id>():                                      \
    if constexpr (label<Shape, index, Id>() < 1000) {                  \
      return make_transition<Shape, index>(state, data, event.amount); \
    }                                                                  \
    break;
template <class Shape, int Id>
void fire_by_switch(int& state, Data& data, const Event<Id>& event) {
  if constexpr (Shape::kRows == 14) {
    switch (state) { BOOST_PP_REPEAT(14, BENCH_ROW, ~) }
  } else {
    switch (state) { BOOST_PP_REPEAT(100, BENCH_ROW, ~) }
  }
}
#undef BENCH_ROW

template <class Shape>
End go_on_by_switch(End at, const Walk& walk) {
  follow<Shape>(walk, [&](const auto& event) { fire_by_switch<Shape>(at.state, at.data, event); });
  return at;
}

template <class Shape>
End walk_switch(const Walk& walk) {
  return go_on_by_switch<Shape>({}, walk);
}

/// A walk of legal events, chosen by following the table itself.
template <class Shape>
Walk legal_walk() {
  std::mt19937 random(1);
  End at;
  Walk walk;
  while (walk.size() < kSteps) {
    const auto index = static_cast<int>(random() % Shape::kRows);
    const auto amount = static_cast<int>(random() % 100);
    const Row row = Shape::row(index);
    if (row.from != at.state) continue;
    walk.push_back({row.event, amount});
    at = go_on_by_switch<Shape>(at, {walk.back()});
  }
  return walk;
}

struct Candidate {
  std::string name;
  End (*walk)(const Walk& walk);
  std::vector<double> nanoseconds{};
};

/// Runs the candidates in turn, so that all of them see the same disturbances. False where they disagree.
bool measure(const Walk& walk, std::vector<Candidate>& candidates) {
  const End expected = candidates.front().walk(walk);
  for (auto& candidate : candidates) {
    if (candidate.walk(walk) == expected) continue;
    fmt::print(stderr, "{} ended in another state or with other data\n", candidate.name);
    return false;
  }
  std::int64_t used = 0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    for (auto& candidate : candidates) {
      const double begin = thread_cpu_seconds();
      for (int pass = 0; pass < kPasses; ++pass) used += candidate.walk(walk).data.total;
      const double taken = thread_cpu_seconds() - begin;
      candidate.nanoseconds.push_back(taken * 1e9 / (static_cast<double>(kSteps) * kPasses));
    }
  }
  return used != 1;  // used, so that no pass is optimised away
}

template <class Shape, const auto& M>
bool run(std::string_view rows, End (*walk_msm)(const Walk&)) {
  std::vector<Candidate> candidates{
      {"pawl", &walk_pawl<Shape, M>}, {"switch", &walk_switch<Shape>}, {"msm", walk_msm}};
  if (!measure(legal_walk<Shape>(), candidates)) return false;
  const double baseline = median(candidates[2].nanoseconds);
  report(fmt::format("dispatch.{}", rows), median(candidates[0].nanoseconds), "ns", baseline);
  report(fmt::format("dispatch.switch.{}", rows), median(candidates[1].nanoseconds), "ns", baseline);
  return true;
}

}  // namespace
}  // namespace bench

int main() {
  using namespace bench;
  const bool ok = run<Small, kSmall>("14", &walk_msm_small) && run<Large, kLarge>("100", &walk_msm_large);
  return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
