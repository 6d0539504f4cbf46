// SPDX-License-Identifier: Apache-2.0
// The conformance suite on SQLite.
#include "tests/store/sqlite_place.hpp"

namespace pawl::test {

INSTANTIATE_TEST_SUITE_P(Sqlite, Conformance, testing::Values([] { return std::make_unique<SqlitePlace>(); }),
                         [](const auto&) { return std::string("File"); });

}  // namespace pawl::test
