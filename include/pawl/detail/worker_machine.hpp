// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The kernel machine of a worker: its states are the worker's and `removed`, its edges are read from what
/// the states may answer. All worker machines share their data and their events; only the edges differ.
/// Included by `pawl/worker_types.hpp`; not for users.

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/codec.hpp"
#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/time.hpp"
#include "pawl/verify.hpp"
#include "pawl/worker.hpp"

namespace pawl {

/// What somebody wants of a worker. A parked one is there, at rest.
enum class Intent : std::uint8_t { run, park, remove };

/// An action that was ordered and has not ended.
struct WorkerOrder {
  std::string action;
  bool stops = false;        ///< it was ordered on the way to rest
  bool interrupted = false;  ///< it was asked to stop
  bool operator==(const WorkerOrder&) const = default;
};

/// Actions that failed in a row, or succeeded without effect, in the present state.
struct WorkerTrouble {
  std::string action;
  std::uint32_t failures = 0;
  std::uint32_t repeats = 0;  ///< ended well, but were needed again
  std::string error{};
  Time at{};  ///< when the last of them ended
};

/// Everything durable about a worker: who it is, what is desired of it, what was observed.
struct WorkerData {
  std::string name;
  std::string type;
  std::string parent{};
  Time made_at{};                      ///< the engine's own time is that of the first worker of this path
  std::int64_t desired_version = 1;    ///< one more with each change of what is desired
  UserSpec spec{};                     ///< with what it inherits
  std::optional<Time> specified_at{};  ///< when `spec` was changed last; none: as it was made
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;
  std::optional<Intent> asked{};   ///< by people
  std::optional<Intent> mapped{};  ///< by the parent's state
  std::optional<Json> observed{};  ///< what was observed last; not when
  std::string reason{};            ///< of the last step
  std::optional<WorkerOrder> order{};
  std::optional<WorkerTrouble> trouble{};
  std::uint32_t incarnation = 1;
  std::optional<std::string> restart{};  ///< why it is being built afresh
  std::optional<std::string> retired{};  ///< why it removed itself; it is not made again from the same spec
};

namespace worker_event {

/// Another state; one of those that the present one leads to. With the observation that led to it, where that
/// is not stored yet.
struct Moved {
  std::string to;
  std::string reason;
  std::optional<Json> observed{};
};
/// An action is ordered.
struct Ordered {
  std::string action;
  std::string reason;
  bool stops = false;
  std::optional<Json> observed{};
};
/// It has ended, well or with an error.
struct Ended {
  std::string action;
  std::optional<std::string> error{};
  bool cancelled = false;
};
/// The running action is asked to stop.
struct Interrupted {};
struct Observed {
  Json content;
};
/// Something else is desired, if nobody else has changed it since that version.
struct Desired {
  std::int64_t expected_version = 0;
  UserSpec spec{};
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;
};
struct Asked {
  std::optional<Intent> intent{};
};
struct Mapped {
  std::optional<Intent> intent{};
};
struct RestartAsked {
  std::string reason;
};
/// A fresh instance begins.
struct Restarted {
  std::string reason;
};
struct Removed {
  std::string reason;
  bool retired = false;  ///< by its own decision
};

}  // namespace worker_event

namespace detail {

void apply(WorkerData& data, const worker_event::Moved& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Ordered& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Ended& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Interrupted& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Observed& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Desired& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Asked& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Mapped& event, Effects& effects);
void apply(WorkerData& data, const worker_event::RestartAsked& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Restarted& event, Effects& effects);
void apply(WorkerData& data, const worker_event::Removed& event, Effects& effects);

// Guards and updates are not lambdas: where rows are added one after the other, the name of each lambda would
// contain the whole type of the table before it, and compiling would take twice as long with every row.

template <class E>
struct Apply {
  void operator()(WorkerData& data, const E& event, Effects& effects) const { apply(data, event, effects); }
};
struct NothingIsOrdered {
  bool operator()(const WorkerData& data) const { return !data.order; }
};
struct IsTheOrdered {
  bool operator()(const WorkerData& data, const worker_event::Ended& event) const {
    return data.order && data.order->action == event.action;
  }
};
struct CanBeInterrupted {
  bool operator()(const WorkerData& data) const { return data.order && !data.order->interrupted; }
};
struct IsExpectedVersion {
  bool operator()(const WorkerData& data, const worker_event::Desired& event) const {
    return data.desired_version == event.expected_version;
  }
};

template <class W>
constexpr auto make_machine_name() {
  constexpr std::string_view prefix = "worker_";
  constexpr auto type = worker_type_name<W>();
  std::array<char, prefix.size() + type.size()> name{};
  std::ranges::copy(prefix, name.begin());
  std::ranges::copy(type, name.begin() + prefix.size());
  return name;
}

/// Holds the machine of a worker.
template <class W, class = typename W::States>
struct WorkerMachine;

template <class W, class... S>
struct WorkerMachine<W, States<S...>> {
  static constexpr std::size_t kStates = sizeof...(S);
  enum class State : std::uint8_t {};
  friend constexpr auto enumerators_of(State) {
    return std::array<std::string_view, kStates + 1>{type_name<S>()..., "removed"};
  }
  static constexpr std::array<std::string_view, kStates> kNames{type_name<S>()...};
  static constexpr auto kName = make_machine_name<W>();
  static constexpr std::string_view name() { return {kName.data(), kName.size()}; }

  template <std::size_t I>
  struct GoesTo {
    bool operator()(const WorkerData&, const worker_event::Moved& moved) const {
      return moved.to == kNames[I];
    }
  };

  /// A row per edge, one after the other: from state Edge / kStates to Edge % kStates.
  template <std::size_t Edge, class M>
  static consteval auto with_edges(M machine) {
    if constexpr (Edge == kStates * kStates) {
      return machine;
    } else {
      constexpr auto from = Edge / kStates;
      constexpr auto to = Edge % kStates;
      if constexpr (((kEdges<W>[from] >> to) & 1) != 0) {
        return with_edges<Edge + 1>(
            machine.template on<worker_event::Moved>(static_cast<State>(from), static_cast<State>(to),
                                                     when(GoesTo<to>{}), Apply<worker_event::Moved>{}));
      } else {
        return with_edges<Edge + 1>(machine);
      }
    }
  }

  static consteval auto build() {
    using namespace worker_event;
    constexpr auto all = []<std::size_t... I>(std::index_sequence<I...>) {
      return pawl::from(static_cast<State>(I)...);
    }(std::make_index_sequence<kStates>{});
    constexpr auto gone = static_cast<State>(kStates);
    return with_edges<0>(machine<State, WorkerData>(name()).initial(static_cast<State>(0)))
        .template stay<Ordered>(all, when(NothingIsOrdered{}), Apply<Ordered>{})
        .template stay<Ended>(all, when(IsTheOrdered{}), Apply<Ended>{})
        .template stay<Interrupted>(all, when(CanBeInterrupted{}), Apply<Interrupted>{})
        .template stay<Observed>(all, Apply<Observed>{})
        .template stay<Desired>(all, when(IsExpectedVersion{}), Apply<Desired>{})
        .template stay<Asked>(all, Apply<Asked>{})
        .template stay<Mapped>(all, Apply<Mapped>{})
        .template stay<RestartAsked>(all, Apply<RestartAsked>{})
        .template on<Restarted>(all, static_cast<State>(0), Apply<Restarted>{})
        .template on<Removed>(all, gone, Apply<Removed>{})
        .terminal(gone)
        .generations();
  }
};

}  // namespace detail

/// The kernel machine of a worker, made by the compiler.
template <class W>
inline constexpr auto worker_machine = detail::WorkerMachine<W>::build();

}  // namespace pawl
