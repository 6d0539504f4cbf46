// SPDX-License-Identifier: Apache-2.0
#include "server/auth_sessions.hpp"

#include "server/secrets.hpp"

namespace pawl::server::auth {

std::string Logins::add(Login login) {
  auto cookie = random_secret();
  auto name = digest(cookie);
  const std::lock_guard lock(mutex_);
  if (order_.size() >= kMost) {
    by_digest_.erase(order_.front());
    order_.pop_front();
  }
  order_.push_back(name);
  by_digest_.emplace(std::move(name), std::move(login));
  return cookie;
}

std::optional<Login> Logins::find(std::string_view cookie, Instant now) {
  const auto name = digest(cookie);
  const std::lock_guard lock(mutex_);
  const auto found = by_digest_.find(name);
  if (found == by_digest_.end()) return std::nullopt;
  if (found->second.until > now) return found->second;
  std::erase(order_, name);
  by_digest_.erase(found);
  return std::nullopt;
}

void Logins::remove(std::string_view cookie) {
  const auto name = digest(cookie);
  const std::lock_guard lock(mutex_);
  by_digest_.erase(name);
  std::erase(order_, name);
}

void Logins::remove_user(std::string_view user) {
  const std::lock_guard lock(mutex_);
  std::erase_if(by_digest_, [&](const auto& entry) { return entry.second.user == user; });
  std::erase_if(order_, [&](const std::string& name) { return !by_digest_.contains(name); });
}

bool Failures::blocked(const std::string& address, Instant now) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(address);
  return found != by_address_.end() && now < found->second.started + window_ &&
         found->second.failures >= most_;
}

void Failures::note(const std::string& address, Instant now) {
  const std::lock_guard lock(mutex_);
  if (by_address_.size() >= kMostAddresses) {
    std::erase_if(by_address_, [&](const auto& entry) { return now >= entry.second.started + window_; });
    // So many addresses at once are an attack, which limits per address cannot stop.
    if (by_address_.size() >= kMostAddresses) by_address_.clear();
  }
  auto& count = by_address_[address];
  if (now >= count.started + window_) count = {.started = now, .failures = 0};
  ++count.failures;
}

}  // namespace pawl::server::auth
