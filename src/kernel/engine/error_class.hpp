// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What an error says about a request: this is asked in many places and answered here alone.

#include <cstdint>

#include "pawl/error.hpp"

namespace pawl {

enum class ErrorClass : std::uint8_t {
  refusal,    ///< it was decided: the request cannot be carried out, and concerns nobody else
  transient,  ///< nothing was decided; the same request may succeed later
  fatal,      ///< nothing is decided any more until the store is opened again
};

constexpr ErrorClass classify(Code code) {
  switch (code) {
    case Code::store_io:
    case Code::disk_full:
    case Code::rolled_back:
    case Code::store_fenced:  // a lease that has run out may be prolonged yet
      return ErrorClass::transient;
    case Code::store_corrupt:
    case Code::store_poisoned:
    case Code::outcome_unknown:
    case Code::stopped:
      return ErrorClass::fatal;
    default:
      return ErrorClass::refusal;
  }
}

}  // namespace pawl
