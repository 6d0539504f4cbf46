// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Migrates the application's tables to the form that the newest release of their owner needs.

#include <map>
#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/sql.hpp"
#include "store/store.hpp"

namespace pawl {

/// Applies the migrations that the store has not seen, owner by owner and in order, each in one transaction
/// with its record. Error: `store_newer` if the store has seen more than are given; then it applies none.
Result<void> migrate(Store& store, const std::map<std::string, std::vector<Migration>>& by_owner);

}  // namespace pawl
