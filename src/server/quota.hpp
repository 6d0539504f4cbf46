// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Limits connections or event streams: in total, per address and per user. The last slots are reserved for
/// operators.

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

/// Each limit is at least 1.
struct QuotaLimits {
  std::size_t all = 1;
  std::size_t per_address = 1;
  std::size_t per_user = 1;
  std::size_t reserved = 0;  ///< of `all`, for operators and administrators; at most a quarter of `all`
};

class Quota;

/// One slot of a quota, released on destruction. Used by one thread at a time.
class QuotaSlot {
 public:
  QuotaSlot(std::shared_ptr<Quota> quota, std::string address, bool reserved);
  ~QuotaSlot();
  QuotaSlot(const QuotaSlot&) = delete;
  QuotaSlot& operator=(const QuotaSlot&) = delete;

  const std::string& address() const { return address_; }
  /// It is a reserved slot, and its user is not known to be an operator.
  bool needs_operator() const { return reserved_ && !is_operator_; }
  /// The connection must not serve another request.
  bool must_close() const { return refused_ || needs_operator(); }

 private:
  friend class Quota;
  std::shared_ptr<Quota> quota_;
  std::string address_;
  std::string user_;
  bool reserved_;  // only reserved slots were left when it was acquired
  bool is_operator_ = false;
  bool refused_ = false;
};

/// Thread-safe.
class Quota : public std::enable_shared_from_this<Quota> {
 public:
  enum class Limit : std::uint8_t { all, address, user, reserved };
  static constexpr std::array<std::string_view, 4> kLimitNames{"all", "address", "user", "reserved"};

  /// `what` names the counted things in messages: "connections".
  Quota(std::string what, QuotaLimits limits);

  /// Errors: `overloaded` if every slot is in use, `rate_limited` if the address has reached its limit.
  Result<std::shared_ptr<QuotaSlot>> acquire(std::string address);

  /// Counts the slot for a user; an empty name is not counted. Errors: `rate_limited` if the user has reached
  /// their limit, `overloaded` if only reserved slots are left and the user is no operator.
  Result<void> assign(QuotaSlot& slot, const std::string& user, bool is_operator);

  /// Number of refusals because of this limit.
  std::uint64_t refused(Limit limit) const { return refused_[static_cast<std::size_t>(limit)]; }

 private:
  friend class QuotaSlot;
  void release(const QuotaSlot& slot);
  Error refuse(Limit limit);
  bool only_reserved_left() const { return used_ > limits_.all - limits_.reserved; }

  const std::string what_;
  const QuotaLimits limits_;
  std::mutex mutex_;
  std::size_t used_ = 0;
  std::unordered_map<std::string, std::size_t> by_address_;
  std::unordered_map<std::string, std::size_t> by_user_;
  std::array<std::atomic<std::uint64_t>, kLimitNames.size()> refused_{};
};

}  // namespace pawl::server
