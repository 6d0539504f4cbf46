// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pawl/worker_types.hpp"

namespace pawl::workers {

/// Types that have nothing but what a configuration is checked against.
inline WorkerTypes types_for_config() {
  WorkerTypes types;
  WorkerType pump;
  pump.name = "pump";
  pump.states = {{"Stopped", Phase::stopped},
                 {"TryingToStart", Phase::starting},
                 {"Running", Phase::running},
                 {"Degraded", Phase::degraded},
                 {"TryingToStop", Phase::stopping}};
  WorkerType client;
  client.name = "mqtt_client";
  client.states = {{"Stopped", Phase::stopped},
                   {"TryingToConnect", Phase::starting},
                   {"Connected", Phase::running},
                   {"TryingToStop", Phase::stopping}};
  types.add(std::move(pump));
  types.add(std::move(client));
  return types;
}

}  // namespace pawl::workers
