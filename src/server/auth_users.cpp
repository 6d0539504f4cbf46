// SPDX-License-Identifier: Apache-2.0
#include "server/auth_users.hpp"

#include <fmt/format.h>

#include "kernel/code_point.hpp"
#include "pawl/auth.hpp"
#include "server/secrets.hpp"

namespace pawl {
namespace server::auth {
namespace {

constexpr std::string_view kAdministrator = "admin";
constexpr std::size_t kMostName = 64;

}  // namespace

Result<UserData> active_user(const Engine& engine, std::string_view name) {
  PAWL_TRY(const auto found, engine.get<user>(name));
  if (found.finished) return fail(Code::unknown_instance, fmt::format("there is no user \"{}\"", name));
  return found.data;
}

Result<void> check_name(std::string_view name) {
  bool is_plain = !name.empty() && name.size() <= kMostName;
  for (auto rest = name; is_plain && !rest.empty();) {
    const auto [value, size] = first_code_point(rest);
    const bool is_control = value < 0x20 || (value >= 0x7F && value < 0xA0);
    is_plain = size > 0 && !is_control && !is_format_character(value);
    rest.remove_prefix(size);
  }
  if (is_plain) return {};
  return fail(
      Code::invalid_argument,
      fmt::format("a name has 1 to {} bytes of UTF-8 without control and format characters", kMostName));
}

Result<void> check_other_administrator(const Engine& engine, std::string_view name) {
  PAWL_TRY(const auto known, active_user(engine, name));
  if (known.role != kAdministrator) return {};
  ListQuery query{.machine = "pawl_user", .finished = false, .limit = 1000};
  do {
    PAWL_TRY(const auto page, engine.list(query));
    for (const auto& instance : page.instances) {
      PAWL_TRY(const auto data, decode<UserData>(instance.data));
      if (instance.key != name && data.role == kAdministrator) return {};
    }
    query.cursor = page.next;
  } while (!query.cursor.empty());
  return fail(Code::guard_refused,
              fmt::format("\"{}\" is the last administrator; give another user the role admin first", name));
}

}  // namespace server::auth

Result<FirstLogin> recover_login(Engine& engine, const std::string& name) {
  namespace auth = server::auth;
  FirstLogin login{.user = name, .password = server::random_secret().substr(0, 20)};
  PAWL_TRY(auto hash, server::hash_password(login.password, false));
  if (auth::active_user(engine, name)) {
    const auth::SetRole change{.role = std::string(auth::kAdministrator),
                               .by = "pawl user recover",
                               .hash = std::move(hash),
                               .recovered = true};
    PAWL_CHECK(engine.send<auth::user>(name, change));
  } else {
    PAWL_CHECK(auth::check_name(name));
    PAWL_CHECK(engine.create<auth::user>(name, {.role = std::string(auth::kAdministrator),
                                                .password = std::move(hash),
                                                .one_time = true,
                                                .recovered = true}));
  }
  return login;
}

}  // namespace pawl
