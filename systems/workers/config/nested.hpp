// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The configuration of a worker whose children stand below its key `children`: it is made of them alone.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/worker_spec.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

inline constexpr std::string_view kChildrenKey = "children";

/// Whether workers of this type take such children.
bool takes_children(const WorkerType& type);

/// No template, whatever the configurations of the children are.
std::string config_of_children(const std::vector<ChildSpec>& children);

/// The children, where the configuration is one that `config_of_children` has made.
std::optional<std::vector<ChildSpec>> children_of_config(std::string_view config);

}  // namespace pawl::workers
