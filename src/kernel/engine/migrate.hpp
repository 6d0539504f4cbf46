// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The tables of whoever uses the store, brought to the form that their owner's newest release wants.

#include <map>
#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/sql.hpp"
#include "store/store.hpp"

namespace pawl {

/// Applies, owner by owner and in their order, the migrations that the store has not seen; each in one
/// transaction with the note that it was applied. Error: `store_newer`, where the store has seen more than
/// are given; then nothing is applied.
Result<void> migrate(Store& store, const std::map<std::string, std::vector<Migration>>& by_owner);

}  // namespace pawl
