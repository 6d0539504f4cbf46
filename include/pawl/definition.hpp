// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A machine at run time: looked up by stored names, fired with JSON, drawn as a diagram.
///
///     const pawl::Definition door_definition = pawl::define<door>();
///     const auto open = door_definition.find_state("open").value();
///     door_definition.legal_events(open);                                // {"Pull"}
///     pawl::to_mermaid(door_definition);                                 // stateDiagram-v2 …

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/fire.hpp"
#include "pawl/machine.hpp"

namespace pawl {

/// Everything there is to know about one machine. A value; reading is safe concurrently.
class Definition {
 public:
  struct State {
    std::string name;
    std::vector<std::string> former_names{};
    bool terminal = false;
    std::optional<std::size_t> recovers_to{};
  };
  /// An instance's data: as text, and as the value itself where that is at hand, which then is not decoded.
  struct Data {
    std::string_view text;
    const void* value = nullptr;
  };
  /// What firing made of a state and its data.
  struct Step {
    Verdict verdict = Verdict::illegal;
    std::size_t state = 0;
    std::string data;
    std::shared_ptr<const void> value;  ///< what `data` is the text of
  };
  struct Event {
    std::string name;
    std::string_view type;  ///< the event type's full name in C++
    std::vector<std::string> former_names;
    Result<Step> (*fire)(std::size_t state, Data data, const void* event, Effects* effects) = nullptr;
    Result<Step> (*fire_json)(std::size_t state, Data data, std::string_view payload,
                              Effects* effects) = nullptr;
    /// Decodes strictly: for payloads that people write.
    Result<void> (*check_payload)(std::string_view payload) = nullptr;
  };
  struct Transition {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t event = 0;
    bool guarded = false;
    bool internal = false;
  };

  std::string name;
  std::vector<std::string> former_names;
  std::vector<State> states;            ///< in the order of the enum
  std::vector<Event> events;            ///< in the order of their first appearance
  std::vector<Transition> transitions;  ///< one per source state, in the order of the table
  std::size_t initial = 0;
  int schema = 1;
  bool endless = false;
  bool generations = false;
  /// Who begins and changes its instances, where nobody else may, for people; empty: anybody.
  std::string steered_by;
  Readers readers = Readers::viewers;  ///< who sees data and payloads; see `Machine::confidential`
  /// Reads data of the newest schema and writes it back, with defaults filled in.
  Result<std::string> (*normalise)(std::string_view data) = nullptr;
  /// Decodes strictly: for data that people write.
  Result<void> (*check_data)(std::string_view data) = nullptr;
  std::vector<Result<std::string> (*)(std::string_view data)>
      upgrades;  ///< [0] from schema 1 to 2, and so on

  /// By present or former stored name. Errors: `unknown_state`, `unknown_event`, with the known names.
  Result<std::size_t> find_state(std::string_view stored_name) const;
  Result<std::size_t> find_event(std::string_view stored_name) const;

  std::vector<std::string_view> legal_events(std::size_t state) const;

  /// The error for an event that did not fire.
  Error refuse(Verdict verdict, std::string_view key, std::size_t state, std::size_t event) const;

  /// Brings stored data to the newest schema. Error: `unsupported_schema`, or what an upgrade's codec says.
  Result<std::string> upgrade(std::string data, int from_schema) const;
};

/// Mermaid's stateDiagram-v2. With `counts` by state name, each state shows its number of instances.
std::string to_mermaid(const Definition& definition, const std::map<std::string, std::size_t>& counts = {});

/// Graphviz.
std::string to_dot(const Definition& definition);

/// {"name":…,"initial":…,"states":[…],"events":[…],"transitions":[…]}, for programs.
std::string to_json(const Definition& definition);

namespace detail {

template <const auto& M>
constexpr std::size_t state_index(StateOf<M> state) {
  std::size_t index = 0;
  while (enum_values<StateOf<M>>[index] != state) ++index;
  return index;
}

/// Runs user code that decides; what it throws becomes an error.
template <class F>
auto deciding(std::string_view machine, F decide) -> decltype(decide()) {
  try {
    return decide();
  } catch (const std::exception& thrown) {
    return fail(Code::decision_threw,
                std::string(machine) + ": a guard or an update threw: " + thrown.what());
  }
}

template <const auto& M>
Result<DataOf<M>> value_of(Definition::Data data) {
  if (data.value != nullptr) return *static_cast<const DataOf<M>*>(data.value);
  return decode<DataOf<M>>(data.text);
}

template <const auto& M, class E>
Result<Definition::Step> fire_event(std::size_t state, Definition::Data before, const E& event,
                                    Effects* effects) {
  PAWL_TRY(auto data, value_of<M>(before));
  return deciding(M.traits.name, [&]() -> Result<Definition::Step> {
    auto next = enum_values<StateOf<M>>[state];
    const auto verdict = detail::fire<M>(next, data, event, effects);
    if (verdict != Verdict::fired) return Definition::Step{verdict, state, {}, {}};
    PAWL_TRY(auto text, encode(data));
    return Definition::Step{verdict, state_index<M>(next), std::move(text),
                            std::make_shared<const DataOf<M>>(std::move(data))};
  });
}

template <class T>
Result<void> check_strictly(std::string_view text) {
  PAWL_CHECK(decode_strictly<T>(text));
  return {};
}

template <const auto& M, class E>
Definition::Event define_event() {
  Definition::Event event;
  event.name = event_name<M, E>();
  event.type = pretty_type<E>();
  for (const auto& former : M.traits.former_events) {
    if (former.type == pretty_type<E>()) event.former_names.emplace_back(former.text);
  }
  event.fire = [](std::size_t state, Definition::Data data, const void* payload, Effects* effects) {
    return fire_event<M>(state, data, *static_cast<const E*>(payload), effects);
  };
  event.fire_json = [](std::size_t state, Definition::Data data, std::string_view payload,
                       Effects* effects) -> Result<Definition::Step> {
    PAWL_TRY(const auto decoded, decode<E>(payload));
    return fire_event<M>(state, data, decoded, effects);
  };
  event.check_payload = &check_strictly<E>;
  return event;
}

template <class Signature, class Fn>
struct UpgradeTypes;
template <class Fn, class Old, class New>
struct UpgradeTypes<New (Fn::*)(const Old&) const, Fn> {
  static Result<std::string> run(std::string_view text) {
    PAWL_TRY(const auto old, decode<Old>(text));
    return deciding("upgrade", [&]() -> Result<std::string> { return encode(Fn{}(old)); });
  }
};

template <const auto& M>
void define_rows(Definition& definition) {
  constexpr auto names = row_event_names<M>();
  for (std::size_t row = 0; row < M.rows.size(); ++row) {
    const auto event = definition.find_event(names[row]).value();
    for (const auto state : enum_values<StateOf<M>>) {
      if (!M.rows[row].from.contains(state)) continue;
      const auto from = state_index<M>(state);
      const auto to = M.rows[row].internal ? from : state_index<M>(M.rows[row].to);
      definition.transitions.push_back({from, to, event, M.rows[row].guarded, M.rows[row].internal});
    }
  }
}

}  // namespace detail

/// The run-time form of a machine. Its data and events must be encodable (`pawl/codec.hpp`).
template <const auto& M>
Definition define() {
  static_assert(verified<M>);
  Definition made;
  made.name = M.traits.name;
  made.former_names.assign(M.traits.former_names.begin(), M.traits.former_names.end());
  for (const auto state : enum_values<StateOf<M>>) {
    Definition::State entry{.name = std::string(state_name<M>(state)), .terminal = is_terminal<M>(state)};
    for (const auto& former : M.traits.former_states) {
      if (former.state == state) entry.former_names.emplace_back(former.text);
    }
    for (const auto& recovery : M.traits.recoveries) {
      if (recovery.from == state) entry.recovers_to = detail::state_index<M>(recovery.to);
    }
    made.states.push_back(std::move(entry));
  }
  [&]<class... Es>(detail::List<Es...>) {
    (made.events.push_back(detail::define_event<M, Es>()), ...);
  }(typename MachineOf<M>::Events{});
  detail::define_rows<M>(made);
  made.initial = detail::state_index<M>(M.traits.initial.items[0]);
  made.schema = MachineOf<M>::kSchema;
  made.endless = M.traits.endless;
  made.generations = M.traits.generations;
  made.readers = M.traits.readers;
  made.normalise = [](std::string_view text) -> Result<std::string> {
    PAWL_TRY(const auto data, decode<DataOf<M>>(text));
    return encode(data);
  };
  made.check_data = &detail::check_strictly<DataOf<M>>;
  [&]<class... Us>(detail::List<Us...>) {
    (made.upgrades.push_back(&detail::UpgradeTypes<decltype(&Us::operator()), Us>::run), ...);
  }(typename MachineOf<M>::Upgrades{});
  return made;
}

}  // namespace pawl
