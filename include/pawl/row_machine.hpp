// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A machine for the status column of a table: its rows are not instances, but their status follows the
/// machine.
///
///     constexpr pawl::RowMachine<upstream_vuln> rows{
///         {.table = "upstream_vuln", .column = "status", .key = "id"}};
///     rows.update<Publish>({"v-1", "v-2"});
///     // UPDATE "upstream_vuln" SET "status" = 'published' WHERE "id" = ?1 AND "status" IN ('analyzing')
///     rows.refusal<Publish>("v-1", "published");
///     // upstream_vuln "v-1" is published, which is final: …
///
/// The update is a compare-and-set: a row with another status is not changed, and `expect` makes the
/// transaction fail. A database cannot run guards and updates of data, so the machine must not have any.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/fire.hpp"
#include "pawl/machine.hpp"
#include "pawl/sql.hpp"

namespace pawl {

/// The status column. Names are quoted as identifiers.
struct StatusColumn {
  std::string_view table;
  std::string_view column;
  std::string_view key;  ///< the column that identifies a row
};

namespace detail {

struct StatusMove {
  std::string_view from;
  std::string_view to;
};

/// The text of the compare-and-set; `null_state` is the state that the column stores as NULL, or empty.
std::string status_update(const StatusColumn& where, const std::vector<StatusMove>& moves,
                          std::string_view null_state);

/// The errors of `RowMachine::refusal` that need the column.
Error moved_meanwhile(std::string_view machine, std::string_view key, std::string_view state,
                      std::string_view event);
Error unknown_status(std::string_view machine, std::string_view state);

template <const auto& M>
consteval bool decides_nothing() {
  for (const auto& row : M.rows) {
    if (row.guarded || row.updates) return false;
  }
  return true;
}

}  // namespace detail

/// The legal updates of one status column. Immutable; safe from any thread.
template <const auto& M>
class RowMachine {
  static_assert(verified<M>);
  static_assert(detail::decides_nothing<M>(),
                "a row machine has no guards and no updates: a database cannot run them");

 public:
  /// `null_state` is the state that the column stores as NULL.
  constexpr explicit RowMachine(StatusColumn where, std::optional<StateOf<M>> null_state = std::nullopt)
      : where_(where), null_state_(null_state) {}

  /// Applies E to the rows of these keys. If one of them is in a state that does not accept E, the
  /// transaction fails.
  template <class E>
  Sql update(std::vector<SqlValue> keys) const {
    static_assert(detail::knows_event<M, E>, "no transition of this machine takes an event of this type");
    std::vector<detail::StatusMove> moves;
    for (const auto state : enum_values<StateOf<M>>) {
      const auto cell = detail::cells<M, E>[static_cast<std::size_t>(state)];
      if (cell.row == detail::kNone) continue;
      moves.push_back({state_name<M>(state), state_name<M>(static_cast<StateOf<M>>(cell.target))});
    }
    const auto null_name = null_state_ ? state_name<M>(*null_state_) : std::string_view{};
    Sql made{.text = detail::status_update(where_, moves, null_name), .rows = {}};
    made.expect = static_cast<std::int64_t>(keys.size());
    for (auto& key : keys) made.rows.push_back({std::move(key)});
    return made;
  }

  /// Why E was not applied to a row in the state `stored_name`. Codes: `illegal_event`, `finished_instance`,
  /// `unknown_state`, or `version_conflict` if the state accepts E, because the row has changed meanwhile.
  template <class E>
  Error refusal(std::string_view key, std::string_view stored_name) const {
    for (const auto state : enum_values<StateOf<M>>) {
      if (state_name<M>(state) != stored_name) continue;
      if (detail::cells<M, E>[static_cast<std::size_t>(state)].row != detail::kNone) {
        return detail::moved_meanwhile(M.traits.name, key, stored_name, event_name<M, E>());
      }
      const auto legal = legal_events<M>(state);
      return pawl::refusal(Verdict::illegal, {.machine = M.traits.name,
                                              .key = key,
                                              .state = stored_name,
                                              .finished = is_terminal<M>(state),
                                              .event = event_name<M, E>(),
                                              .legal = legal});
    }
    return detail::unknown_status(M.traits.name, stored_name);
  }

 private:
  StatusColumn where_;
  std::optional<StateOf<M>> null_state_;
};

}  // namespace pawl
