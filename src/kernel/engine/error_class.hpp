// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an error means for the request: the only place that decides this.

#include <cstdint>
#include <optional>
#include <utility>

#include "pawl/error.hpp"

namespace pawl {

enum class ErrorClass : std::uint8_t {
  refusal,    ///< decided: this request cannot be carried out; other requests are not affected
  transient,  ///< not decided: the same request may succeed later
  fatal,      ///< not decided: nothing succeeds until the store is opened again
};

/// Empty for a code of another range, and for one that is missing here.
constexpr std::optional<ErrorClass> class_of_store_error(Code code) {
  switch (code) {
    case Code::sql_refused:
    case Code::sql_failed:
    case Code::row_expectation_failed:
      return ErrorClass::refusal;
    case Code::store_io:
    case Code::disk_full:
    case Code::rolled_back:
    case Code::store_fenced:  // an expired lease may still be renewed
      return ErrorClass::transient;
    case Code::store_poisoned:
    case Code::outcome_unknown:
    case Code::store_corrupt:
    case Code::store_locked:
    case Code::store_newer:
    case Code::store_read_only:
    case Code::store_unsafe:
    case Code::store_diverged:
      return ErrorClass::fatal;
    default:
      return std::nullopt;
  }
}

#define PAWL_CHECK_STORE_CODE(number, name, summary)                      \
  static_assert((number) / 1000 != 3 || class_of_store_error(Code::name), \
                "an error of the store needs a class: " #name);
PAWL_ERROR_CODES(PAWL_CHECK_STORE_CODE)
#undef PAWL_CHECK_STORE_CODE

constexpr ErrorClass classify(Code code) {
  if (const auto store = class_of_store_error(code)) return *store;
  switch (code) {
    case Code::overloaded:
      return ErrorClass::transient;
    case Code::stopped:
    case Code::internal:
      return ErrorClass::fatal;
    default:
      return ErrorClass::refusal;
  }
}

}  // namespace pawl
