// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests need besides the public interface: an engine on a store of their own, and requests that are
/// committed by the calling thread.

#include <functional>
#include <memory>
#include <vector>

#include "pawl/engine.hpp"
#include "store/store.hpp"

namespace pawl {

using StoreOpener = std::function<Result<std::unique_ptr<Store>>(Runtime&, const EngineOptions&)>;

/// The store that the options name. Error: `invalid_argument`, and those of the store.
Result<std::unique_ptr<Store>> open_store(Runtime& runtime, const EngineOptions& options);

/// `Engine::open`, with the store that `opener` gives.
Result<std::unique_ptr<Engine>> open_engine(Runtime& runtime, Machines machines, EngineOptions options,
                                            const StoreOpener& opener);

/// `Engine::submit`, but as in `Engine::commit` the calling thread commits if the engine is idle.
void submit_inline(Engine& engine, Transaction transaction,
                   std::move_only_function<void(Result<std::vector<Instance>>)> done);

}  // namespace pawl
