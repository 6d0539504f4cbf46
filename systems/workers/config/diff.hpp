// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The changes that applying a tree would make.
///
///     const auto changes = pawl::workers::diff(supervisor.applied().value().first, wanted);
///     fmt::print("{}", pawl::workers::to_text(changes));
///
///     ~ global.site: "north" -> "south"
///     - fan-1 (fan)
///     + pump-2 (pump)
///     ~ pump-1 (pump)
///         config:
///           - rpm: 100
///           + rpm: 200
///             mode: eco
///
/// Children are told apart by their names; their order does not matter. Values without state.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/worker_spec.hpp"

namespace pawl::workers {

/// A named value that was added (no `before`), removed (no `after`) or changed.
struct ValueChange {
  std::string name{};  ///< of a variable as templates write it: `IP`, `global.site`
  std::optional<std::string> before{};
  std::optional<std::string> after{};  ///< of a variable its JSON
  bool operator==(const ValueChange&) const = default;
};

/// One line of a text: unchanged, removed or added.
struct LineChange {
  enum class Kind : std::uint8_t { same, removed, added };
  Kind kind = Kind::same;
  std::string text{};
  bool operator==(const LineChange&) const = default;
};

struct ChildChange {
  std::string name{};
  std::string worker_type{};          ///< the wanted one
  std::optional<ValueChange> type{};  ///< empty if unchanged, like the following
  std::optional<ValueChange> enabled{};
  std::vector<LineChange> config{};  ///< all lines of the text, where it has changed
  std::vector<ValueChange> variables{};
  std::vector<ValueChange> state_mapping{};
  bool operator==(const ChildChange&) const = default;
};

struct TreeDiff {
  std::vector<ValueChange> variables{};  ///< of the tree
  std::vector<ChildSpec> removed{};
  std::vector<ChildSpec> added{};
  std::vector<ChildChange> changed{};

  bool empty() const { return variables.empty() && removed.empty() && added.empty() && changed.empty(); }
};

TreeDiff diff(const TreeSpec& now, const TreeSpec& wanted);

/// For terminals, without colours, each line with its line end; empty if nothing changes. Leaves out
/// unchanged lines far from changes. Control characters are shown as \xNN.
std::string to_text(const TreeDiff& diff);

/// The lines of two texts, matched so that few of them differ.
std::vector<LineChange> diff_lines(std::string_view before, std::string_view after);

}  // namespace pawl::workers
