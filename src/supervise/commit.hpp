// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pawl/names.hpp"
#include "supervise/core.hpp"

namespace pawl {

/// Sends an event to a worker; `after` runs on the lane when it is durable.
template <class E>
void SupervisorCore::commit(Node& node, const E& event, After after) {
  send(node, type_name<E>(), encode(event), std::move(after));
}

}  // namespace pawl
