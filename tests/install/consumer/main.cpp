// SPDX-License-Identifier: Apache-2.0
// Prints the first error code: enough to need the headers, the library and what the library links.
#include <iostream>

#include "pawl/error.hpp"

int main() {
  const auto& first = pawl::all_codes().front();
  std::cout << "PAWL-" << static_cast<int>(first.code) << ' ' << first.name << '\n';
}
