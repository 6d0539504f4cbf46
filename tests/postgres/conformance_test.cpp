// SPDX-License-Identifier: Apache-2.0
// The conformance suite of tests/store on PostgreSQL.
#include "tests/postgres/postgres_place.hpp"

namespace pawl::test {
namespace {

const auto kPlaces =
    testing::Values([] { return std::unique_ptr<Place>(std::make_unique<PostgresPlace>()); });

std::string place_name(const testing::TestParamInfo<MakePlace>&) { return "Server"; }

}  // namespace

INSTANTIATE_TEST_SUITE_P(Postgres, Conformance, kPlaces, place_name);
INSTANTIATE_TEST_SUITE_P(Postgres, StoreSql, kPlaces, place_name);

}  // namespace pawl::test
