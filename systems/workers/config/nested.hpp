// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The configuration of a worker whose children are below its key `children`: it contains nothing else.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/worker_spec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

inline constexpr std::string_view kChildrenKey = "children";

/// A `ChildSpec` in the configuration of its parent. Its own children are values, too: as text within text
/// each level would escape the quotes of all levels below, and double them.
struct NestedChild {
  std::string name{};
  std::string worker_type{};
  std::string config{};
  Variables variables{};
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;
  std::optional<std::vector<NestedChild>> children{};  ///< if set, `config` is empty
};

/// Whether workers of this type take such children.
bool takes_children(const WorkerType& type);

/// As long as the children are, plus one pair of quotes for each text, at any depth. It contains no template
/// expressions, whatever the configurations of the children contain. Error: `unencodable`.
Result<std::string> config_of_children(const std::vector<ChildSpec>& children);

/// The children if `config_of_children` made this configuration.
std::optional<std::vector<ChildSpec>> children_of_config(std::string_view config);

/// The specifications of the children. Errors: `spec_invalid` for a child with `config` and `children`;
/// `unencodable`.
Result<std::vector<ChildSpec>> to_specs(const std::vector<NestedChild>& children);

}  // namespace pawl::workers
