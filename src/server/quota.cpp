// SPDX-License-Identifier: Apache-2.0
#include "server/quota.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::server {
namespace {

void count_down(std::unordered_map<std::string, std::size_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

QuotaLimits clamped(QuotaLimits limits) {
  limits.reserved = std::min(limits.reserved, limits.all / 4);
  return limits;
}

}  // namespace

QuotaSlot::QuotaSlot(std::shared_ptr<Quota> quota, std::string address, bool reserved)
    : quota_(std::move(quota)), address_(std::move(address)), reserved_(reserved) {}

QuotaSlot::~QuotaSlot() { quota_->release(*this); }

Quota::Quota(std::string what, QuotaLimits limits) : what_(std::move(what)), limits_(clamped(limits)) {}

Result<std::shared_ptr<QuotaSlot>> Quota::acquire(std::string address) {
  const std::lock_guard lock(mutex_);
  if (used_ >= limits_.all) return fail(refuse(Limit::all));
  auto& of_address = by_address_[address];
  if (of_address >= limits_.per_address) return fail(refuse(Limit::address));
  ++of_address;
  ++used_;
  return std::make_shared<QuotaSlot>(shared_from_this(), std::move(address), only_reserved_left());
}

Result<void> Quota::assign(QuotaSlot& slot, const std::string& user, bool is_operator) {
  slot.is_operator_ = is_operator;
  slot.refused_ = true;
  const auto admit = [&slot]() -> Result<void> {
    slot.refused_ = false;
    return {};
  };
  if (slot.user_ == user && !slot.needs_operator()) return admit();
  const std::lock_guard lock(mutex_);
  if (slot.user_ != user) {
    if (!user.empty()) {
      auto& of_user = by_user_[user];
      if (of_user >= limits_.per_user) return fail(refuse(Limit::user));
      ++of_user;
    }
    count_down(by_user_, std::exchange(slot.user_, user));
  }
  if (!slot.needs_operator()) return admit();
  if (only_reserved_left()) return fail(refuse(Limit::reserved));
  slot.reserved_ = false;  // unreserved slots have been released since
  return admit();
}

void Quota::release(const QuotaSlot& slot) {
  const std::lock_guard lock(mutex_);
  --used_;
  count_down(by_address_, slot.address_);
  count_down(by_user_, slot.user_);
}

Error Quota::refuse(Limit limit) {
  ++refused_[static_cast<std::size_t>(limit)];
  switch (limit) {
    case Limit::address:
      return {Code::rate_limited,
              fmt::format("this address already has {} {} open", limits_.per_address, what_)};
    case Limit::user:
      return {Code::rate_limited, fmt::format("this user already has {} {} open", limits_.per_user, what_)};
    case Limit::reserved:
      return {Code::overloaded, fmt::format("{} {} are open already; the last {} are for operators",
                                            limits_.all - limits_.reserved, what_, limits_.reserved)};
    case Limit::all:
      break;
  }
  return {Code::overloaded, fmt::format("{} {} are open already", limits_.all, what_)};
}

}  // namespace pawl::server
