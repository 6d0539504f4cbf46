// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Users and tokens are instances like others, so that every change of them is durable and in the log.

#include <cstdint>
#include <optional>
#include <string>

#include "pawl/effects.hpp"
#include "pawl/machine.hpp"
#include "pawl/time.hpp"
#include "pawl/verify.hpp"

namespace pawl::server::auth {

enum class UserState { active, removed };
struct SetPassword {
  std::string hash;
  bool one_time = false;  // it must be changed before anything else is done
  std::string by;
};
struct SetRole {
  std::string role;
  std::string by;
  std::string hash{};  // of a one-time password with it; empty: the password stays
  bool recovered = false;
};
struct RemoveUser {
  std::string by;
};
struct UserData {
  std::string role;
  std::string password;  // argon2id
  bool one_time = false;
  bool recovered = false;  // the password is of `pawl user recover`: no start gives another
};

inline constexpr auto user =
    machine<UserState, UserData>("pawl_user")
        .initial(UserState::active)
        .generations()
        .stay<SetPassword>(UserState::active,
                           [](UserData& data, const SetPassword& set) {
                             data.password = set.hash;
                             data.one_time = set.one_time;
                             data.recovered = false;
                           })
        .stay<SetRole>(UserState::active,
                       [](UserData& data, const SetRole& set) {
                         data.role = set.role;
                         if (set.hash.empty()) return;
                         data.password = set.hash;
                         data.one_time = true;
                         data.recovered = set.recovered;
                       })
        .on<RemoveUser>(UserState::active, UserState::removed, [](UserData& data) { data.password.clear(); })
        .terminal(UserState::removed);
static_assert(verified<user>);

enum class TokenState { active, revoked };
struct Revoke {
  std::string by;
};
struct TokenData {
  std::string name;
  std::string role;
  std::string hash;  // SHA-256
  std::string by;
  std::optional<Time> expires{};
};

inline constexpr auto token = machine<TokenState, TokenData>("pawl_token")
                                  .initial(TokenState::active)
                                  .on<Revoke>(TokenState::active, TokenState::revoked)
                                  .terminal(TokenState::revoked);
static_assert(verified<token>);

}  // namespace pawl::server::auth
