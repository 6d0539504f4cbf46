// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Who takes how many of something that is limited, connections or event streams, so that no address and no
/// user takes all of them, and the last ones are left for operators.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pawl/error.hpp"

namespace pawl::server {

/// Each at least 1.
struct ConnectionLimits {
  std::size_t all = 1;
  std::size_t per_address = 1;
  std::size_t per_user = 1;
  std::size_t reserved = 0;  ///< of `all`, for operators and administrators; a quarter of them at most
};

class Places;

/// One that is taken; given back when it is destroyed. Used by one thread at a time.
class Place {
 public:
  Place(std::shared_ptr<Places> places, std::string address, bool reserved);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  const std::string& address() const { return address_; }
  /// It is among the last ones, and who took it is not known as an operator.
  bool on_probation() const { return reserved_ && !is_operator_; }
  /// It is not to be used for another request.
  bool must_close() const { return refused_ || on_probation(); }

 private:
  friend class Places;
  std::shared_ptr<Places> places_;
  std::string address_;
  std::string user_;
  bool reserved_;  // it was among the last ones when it was taken
  bool is_operator_ = false;
  bool refused_ = false;
};

/// Thread-safe.
class Places : public std::enable_shared_from_this<Places> {
 public:
  enum class Limit : std::uint8_t { all, address, user, reserved };
  static constexpr std::array<std::string_view, 4> kLimitNames{"all", "address", "user", "reserved"};

  /// `what` is counted, for messages: "connections".
  Places(std::string what, ConnectionLimits limits);

  /// Errors: `overloaded` where all are taken, `rate_limited` where the address has its part already.
  Result<std::shared_ptr<Place>> take(std::string address);

  /// Now it is known whose it is. An empty name counts for nobody. Errors: `rate_limited` where the user has
  /// their part already, `overloaded` where only reserved ones are left and the user is no operator.
  Result<void> assign(Place& place, const std::string& user, bool is_operator);

  /// How often this limit was the reason of a refusal.
  std::uint64_t refused(Limit limit) const { return refused_[static_cast<std::size_t>(limit)]; }

 private:
  friend class Place;
  void give_back(const Place& place);
  Error refuse(Limit limit);
  bool only_reserved_left() const { return taken_ > limits_.all - limits_.reserved; }

  const std::string what_;
  const ConnectionLimits limits_;
  std::mutex mutex_;
  std::size_t taken_ = 0;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::unordered_map<std::string, std::size_t> by_user_;
  std::array<std::atomic<std::uint64_t>, kLimitNames.size()> refused_{};
};

}  // namespace pawl::server
