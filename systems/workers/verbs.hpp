// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "pawl/system.hpp"

namespace pawl::workers {

/// `pawl workers tree|show|park|run|restart|remove|apply|diff|logs|scenario`.
std::vector<Verb> worker_verbs();

}  // namespace pawl::workers
