// SPDX-License-Identifier: Apache-2.0
// Whether an error means that the request was decided.
#include "kernel/engine/error_class.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace pawl::test {
namespace {

constexpr auto kRefusal = ErrorClass::refusal;
constexpr auto kTransient = ErrorClass::transient;
constexpr auto kFatal = ErrorClass::fatal;

TEST(ErrorClasses, AnErrorOfTheStoreIsARefusalOnlyWhereTheRequestIsAtFault) {
  const std::map<Code, ErrorClass> expected = {
      {Code::store_poisoned, kFatal},  {Code::outcome_unknown, kFatal},
      {Code::disk_full, kTransient},   {Code::store_locked, kFatal},
      {Code::store_newer, kFatal},     {Code::store_corrupt, kFatal},
      {Code::store_read_only, kFatal}, {Code::store_fenced, kTransient},
      {Code::store_io, kTransient},    {Code::sql_refused, kRefusal},
      {Code::sql_failed, kRefusal},    {Code::row_expectation_failed, kRefusal},
      {Code::rolled_back, kTransient}, {Code::store_unsafe, kFatal},
      {Code::store_diverged, kFatal},
  };
  std::map<Code, ErrorClass> found;
  for (const auto& code : all_codes()) {
    if (std::to_underlying(code.code) / 1000 == 3) found[code.code] = classify(code.code);
  }
  EXPECT_THAT(found, testing::ContainerEq(expected));
}

TEST(ErrorClasses, OtherErrorsAreDecisionsUnlessTheEngineItselfIsAtFault) {
  for (const auto& code : all_codes()) {
    if (std::to_underlying(code.code) / 1000 == 3) continue;
    const bool fatal = code.code == Code::stopped || code.code == Code::internal;
    const bool transient = code.code == Code::overloaded;
    EXPECT_EQ(classify(code.code), fatal ? kFatal : transient ? kTransient : kRefusal) << code.name;
  }
}

}  // namespace
}  // namespace pawl::test
