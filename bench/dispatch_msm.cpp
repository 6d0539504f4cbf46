// SPDX-License-Identifier: Apache-2.0
// The baseline of dispatch_bench: Boost.MSM's functor front end, without its message queue and without its
// exception handling, which Pawl's dispatch does not have either.
#include <boost/msm/back/state_machine.hpp>
#include <boost/msm/front/functor_row.hpp>
#include <boost/msm/front/state_machine_def.hpp>
#include <utility>

#include "bench/dispatch_machine.hpp"

namespace bench {
namespace {

namespace front = boost::msm::front;
namespace mpl = boost::mpl;

template <int Id>
struct State : front::state<> {};

template <int Index>
struct Update {
  template <class E, class Machine, class From, class To>
  void operator()(const E& event, Machine& machine, From&, To&) const {
    apply<Index>(machine.data, event.amount);
  }
};

struct Guard {
  template <class E, class Machine, class From, class To>
  bool operator()(const E& event, Machine& machine, From&, To&) const {
    return allowed(machine.data, event.amount);
  }
};

template <bool Condition, class Then>
using if_or_none = std::conditional_t<Condition, Then, front::none>;

template <class Shape, int Index>
struct MsmRow {
  static constexpr Row row = Shape::row(Index);
  using type = front::Row<State<row.from>, Event<row.event>, State<row.to>,
                          if_or_none<row.updates, Update<Index>>, if_or_none<row.guarded, Guard>>;
};

/// MSM tries the rows of a (state, event) from the last to the first, so they are pushed to the front.
template <class Shape, int Index = 0, class Table = mpl::vector0<>>
struct Rows
    : Rows<Shape, Index + 1, typename mpl::push_front<Table, typename MsmRow<Shape, Index>::type>::type> {};
template <class Shape, class Table>
struct Rows<Shape, Shape::kRows, Table> {
  using type = Table;
};

template <class Shape>
struct Definition : front::state_machine_def<Definition<Shape>> {
  using no_message_queue = int;
  using no_exception_thrown = int;
  using initial_state = State<0>;
  using transition_table = typename Rows<Shape>::type;
  Data data;

  template <class E, class Machine>
  void no_transition(const E&, Machine&, int) {}
};

/// MSM numbers the states by their appearance; this asks it for the number of ours.
template <class Machine, int... Id>
int own_number(int msm_number, std::integer_sequence<int, Id...>) {
  using Table = typename Machine::stt;
  int found = -1;
  ((boost::msm::back::get_state_id<Table, State<Id>>::value == msm_number ? void(found = Id) : void()), ...);
  return found;
}

template <class Shape>
End walk_msm(const Walk& walk) {
  using Machine = boost::msm::back::state_machine<Definition<Shape>>;
  Machine machine;
  machine.start();
  follow<Shape>(walk, [&](const auto& event) { machine.process_event(event); });
  return {own_number<Machine>(machine.current_state()[0], std::make_integer_sequence<int, Shape::kStates>{}),
          machine.data};
}

}  // namespace

End walk_msm_small(const Walk& walk) { return walk_msm<Small>(walk); }
End walk_msm_large(const Walk& walk) { return walk_msm<Large>(walk); }

}  // namespace bench
