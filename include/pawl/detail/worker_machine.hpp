// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The kernel machine of a worker: the worker's states and `removed`, with an edge per `Go` that a state may
/// answer. All worker machines share their data and events; only the edges differ. Included by
/// `pawl/worker_types.hpp`; not for users.

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

/// What a worker should do. A parked worker exists, in a stopped state.
enum class Intent : std::uint8_t { run, park, remove };

/// An action that was ordered and has not ended.
struct WorkerOrder {
  std::string action;
  bool stops = false;        ///< it was ordered while the worker was stopping
  bool interrupted = false;  ///< it was asked to stop
  bool operator==(const WorkerOrder&) const = default;
};

/// Consecutive failures or ineffective successes of an action in the present state.
struct WorkerTrouble {
  std::string action;
  std::uint32_t failures = 0;
  std::uint32_t repeats = 0;  ///< consecutive successes after which it was needed again
  std::string error{};
  Time at{};  ///< when the last of them ended
};

/// The durable data of a worker: identity, desired state and observed state.
struct WorkerData {
  std::string name;
  std::string type;
  std::string parent{};
  Time made_at{};                      ///< differs from the instance's time if the path was used before
  std::int64_t desired_version = 1;    ///< grows with each change of the desired state
  UserSpec spec{};                     ///< including inherited variables
  std::optional<Time> specified_at{};  ///< when `spec` changed last; none if never
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;
  std::optional<Intent> asked{};   ///< by `park` or `run`
  std::optional<Intent> mapped{};  ///< by the parent's state mapping
  std::optional<Json> observed{};  ///< the last observation, without its time
  std::string reason{};            ///< of the last commit with a reason
  std::optional<WorkerOrder> order{};
  std::optional<WorkerTrouble> trouble{};
  std::uint32_t incarnation = 1;
  std::optional<std::string> restart{};  ///< why it is being restarted
  std::optional<std::string> retired{};  ///< why it removed itself; the same spec does not create it again
};

namespace worker_event {

/// The worker changes to another state. `observed` is the observation of this decision, if not stored yet.
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
/// The ordered action has ended, successfully or not.
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
/// The desired state changes. Refused if it is not at the expected version.
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
/// A new incarnation begins.
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

// Guards and updates are not lambdas: the name of each lambda would contain the whole type of the table
// before it, and compile time would double with every row.

template <class E>
struct Apply {
  void operator()(WorkerData& data, const E& event, Effects& effects) const { apply(data, event, effects); }
};
struct HasNoOrder {
  bool operator()(const WorkerData& data) const { return !data.order; }
};
struct IsOrdered {
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

/// Builds the machine of a worker.
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

  /// Adds a row per edge, from state Edge / kStates to Edge % kStates.
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
        .template stay<Ordered>(all, when(HasNoOrder{}), Apply<Ordered>{})
        .template stay<Ended>(all, when(IsOrdered{}), Apply<Ended>{})
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

/// The kernel machine of a worker.
template <class W>
inline constexpr auto worker_machine = detail::WorkerMachine<W>::build();

}  // namespace pawl
