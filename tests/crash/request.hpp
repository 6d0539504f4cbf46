// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the driver asks of the worker, one line each way.
///
///     {"number":17,"kind":"increment","key":"counter-3","also":"timer","after_ms":20}
///     {"number":17,"outcome":"done","version":9,"seq":1234}

#include <cstdint>
#include <string>

#include "tests/crash/machines.hpp"

namespace pawl::crash {

inline constexpr std::int64_t kOpeningBalance = 1000;

enum class Kind { create_counter, create_inbox, create_account, increment, transfer };

struct Request {
  std::int64_t number = 0;  // also its request id
  Kind kind = Kind::increment;
  std::string key;
  std::string to{};         // the account or inbox at the other end
  std::string partition{};  // of a new account
  Also also = Also::nothing;
  std::int64_t after_ms = 0;
  std::int64_t amount = 0;
};

/// `unknown`: the store went away or to another owner. The request may have happened or not; it is repeated.
/// `reopen`: the same, and this worker will not get over it.
enum class Outcome { done, refused, unknown, reopen, failed };

struct Answer {
  std::int64_t number = 0;
  Outcome outcome = Outcome::done;
  std::int64_t version = 0;  // of the first instance
  std::int64_t seq = 0;
  std::string error{};
};

/// The worker says this once its engine is open.
inline constexpr const char* kReady = "ready";

}  // namespace pawl::crash
