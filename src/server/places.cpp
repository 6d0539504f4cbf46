// SPDX-License-Identifier: Apache-2.0
#include "server/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pawl::server {
namespace {

void count_down(std::unordered_map<std::string, std::size_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  if (found != counts.end() && --found->second == 0) counts.erase(found);
}

ConnectionLimits sensible(ConnectionLimits limits) {
  limits.reserved = std::min(limits.reserved, limits.all / 4);
  return limits;
}

}  // namespace

Place::Place(std::shared_ptr<Places> places, std::string address, bool reserved)
    : places_(std::move(places)), address_(std::move(address)), reserved_(reserved) {}

Place::~Place() { places_->give_back(*this); }

Places::Places(std::string what, ConnectionLimits limits)
    : what_(std::move(what)), limits_(sensible(limits)) {}

Result<std::shared_ptr<Place>> Places::take(std::string address) {
  const std::lock_guard lock(mutex_);
  if (taken_ >= limits_.all) return fail(refuse(Limit::all));
  auto& of_address = by_address_[address];
  if (of_address >= limits_.per_address) return fail(refuse(Limit::address));
  ++of_address;
  ++taken_;
  return std::make_shared<Place>(shared_from_this(), std::move(address), only_reserved_left());
}

Result<void> Places::assign(Place& place, const std::string& user, bool is_operator) {
  place.is_operator_ = is_operator;
  place.refused_ = true;
  const auto admit = [&place]() -> Result<void> {
    place.refused_ = false;
    return {};
  };
  if (place.user_ == user && !place.on_probation()) return admit();
  const std::lock_guard lock(mutex_);
  if (place.user_ != user) {
    if (!user.empty()) {
      auto& of_user = by_user_[user];
      if (of_user >= limits_.per_user) return fail(refuse(Limit::user));
      ++of_user;
    }
    count_down(by_user_, std::exchange(place.user_, user));
  }
  if (!place.on_probation()) return admit();
  if (only_reserved_left()) return fail(refuse(Limit::reserved));
  place.reserved_ = false;  // others have gone meanwhile
  return admit();
}

void Places::give_back(const Place& place) {
  const std::lock_guard lock(mutex_);
  --taken_;
  count_down(by_address_, place.address_);
  count_down(by_user_, place.user_);
}

Error Places::refuse(Limit limit) {
  ++refused_[static_cast<std::size_t>(limit)];
  switch (limit) {
    case Limit::address:
      return {Code::rate_limited,
              fmt::format("{} {} from this address are open already", limits_.per_address, what_)};
    case Limit::user:
      return {Code::rate_limited,
              fmt::format("{} {} of this user are open already", limits_.per_user, what_)};
    case Limit::reserved:
      return {Code::overloaded, fmt::format("{} {} are open already; the last {} are for operators",
                                            limits_.all - limits_.reserved, what_, limits_.reserved)};
    case Limit::all:
      break;
  }
  return {Code::overloaded, fmt::format("{} {} are open already", limits_.all, what_)};
}

}  // namespace pawl::server
