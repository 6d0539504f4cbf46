// SPDX-License-Identifier: Apache-2.0
// Starts nothing; what counts is that an installed server library is found, links and runs.
#include <iostream>

#include "pawl/auth.hpp"

int main() { std::cout << pawl::make_auth()->summary() << '\n'; }
