// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Opening an engine on a given store: how the tests put a store of their own in place of the real one.

#include <functional>
#include <memory>

#include "pawl/engine.hpp"
#include "store/store.hpp"

namespace pawl {

using StoreOpener = std::function<Result<std::unique_ptr<Store>>(Runtime&, const EngineOptions&)>;

/// The store that the options name. Error: `invalid_argument`, and those of the store.
Result<std::unique_ptr<Store>> open_store(Runtime& runtime, const EngineOptions& options);

/// `Engine::open`, with the store that `opener` gives.
Result<std::unique_ptr<Engine>> open_engine(Runtime& runtime, Machines machines, EngineOptions options,
                                            const StoreOpener& opener);

}  // namespace pawl
