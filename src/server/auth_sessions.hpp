// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Browser logins and failed attempts, in memory: a restart logs browsers out and forgets failures.

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "pawl/http.hpp"
#include "pawl/time.hpp"

namespace pawl::server::auth {

struct Login {
  std::string user;
  std::string csrf;
  Instant until{};
  bool by_code = false;  // not by the password, which may be a one-time password that must be changed
};

/// Thread-safe. Kept by digest, so that memory does not hold what a browser sends.
class Logins {
 public:
  static constexpr std::size_t kMost = 10'000;

  /// Returns the cookie's value. Removes the oldest login if there are too many.
  std::string add(Login login);
  std::optional<Login> find(std::string_view cookie, Instant now);
  void remove(std::string_view cookie);
  void remove_user(std::string_view user);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Login> by_digest_;
  std::deque<std::string> order_;
};

/// Thread-safe. Counts failures by address within a window.
class Failures {
 public:
  Failures(std::size_t most, Duration window) : most_(most), window_(window) {}

  /// Whether this address has reached its limit of failures.
  bool blocked(const std::string& address, Instant now);
  void note(const std::string& address, Instant now);

 private:
  static constexpr std::size_t kMostAddresses = 10'000;
  struct Count {
    Instant started{};
    std::size_t failures = 0;
  };
  const std::size_t most_;
  const Duration window_;
  std::mutex mutex_;
  std::unordered_map<std::string, Count> by_address_;
};

}  // namespace pawl::server::auth
