// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The switch of the mutants; see docs/testing.md. The preset `mutants` includes this file into every
/// source of the copy that `make mutants` builds; no source of Pawl itself knows it.

#include <cstdlib>

namespace pawl {

/// Whether this process runs with the mutant of this number, which the variable PAWL_MUTANT names.
inline bool mutant(int number) {
  static const int chosen = [] {
    const char* text = std::getenv("PAWL_MUTANT");
    return text == nullptr ? 0 : std::atoi(text);
  }();
  return chosen == number;
}

}  // namespace pawl
