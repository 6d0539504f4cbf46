// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "tests/server/world.hpp"

namespace pawl::test {

inline constexpr std::string_view kPassword = "correct horse battery";

inline std::string text_of(const std::string& json, std::string_view name) {
  const auto text = member(json, name);
  return text.size() < 2 ? std::string() : text.substr(1, text.size() - 2);
}

/// A server that asks who comes, and people who log in there.
class AuthTest : public testing::Test {
 protected:
  explicit AuthTest(AuthOptions options = cheap(), ServerOptions server = {})
      : auth_(make_auth(options)), world_(with(std::move(server), auth_.get())) {}

  static ServerOptions with(ServerOptions server, Auth* auth) {
    server.auth = auth;
    return server;
  }

  static AuthOptions cheap() {
    AuthOptions options;
    options.cheap_passwords = true;
    options.failures = 5;
    return options;
  }

  struct Browser {
    std::string cookie;
    std::string csrf;
    std::string headers(bool with_csrf = true) const {
      return fmt::format("Cookie: other=1; {}\r\n{}", cookie,
                         with_csrf ? fmt::format("X-Pawl-CSRF: {}\r\n", csrf) : std::string());
    }
  };

  Answer log_in_answer(std::string_view user, std::string_view password) {
    return world_.call("POST", "/v1/login",
                       fmt::format(R"({{"user":"{}","password":"{}"}})", user, password));
  }
  Browser log_in(std::string_view user, std::string_view password) {
    const auto answer = log_in_answer(user, password);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto cookie = answer.header("Set-Cookie");
    return {cookie.substr(0, cookie.find(';')), text_of(answer.body, "csrf")};
  }
  /// A user of this role with a password of their own, who can log in.
  void make_user(const Browser& by, std::string_view name, std::string_view role) {
    const auto path = fmt::format("/v1/users/{}", name);
    const auto body = fmt::format(R"({{"role":"{}","password":"chosen by another"}})", role);
    EXPECT_EQ(world_.call("PUT", path, body, by.headers()).status, 200);
    const auto once = log_in(name, "chosen by another");
    const auto change = fmt::format(R"({{"old":"chosen by another","new":"{}"}})", kPassword);
    EXPECT_EQ(world_.call("POST", "/v1/password", change, once.headers()).status, 200);
  }
  /// The first administrator with a password of their own.
  Browser admin() {
    const auto first = auth_->first_login().value();
    const auto once = log_in(first.user, first.password);
    const auto changed =
        world_.call("POST", "/v1/password",
                    fmt::format(R"({{"old":"{}","new":"{}"}})", first.password, kPassword), once.headers());
    EXPECT_EQ(changed.status, 200) << changed.body;
    return log_in(first.user, kPassword);
  }
  std::string token(const Browser& by, std::string_view role, std::string_view more = {}) {
    const auto made = world_.call(
        "POST", "/v1/tokens", fmt::format(R"({{"name":"{0}","role":"{0}"{1}}})", role, more), by.headers());
    EXPECT_EQ(made.status, 201) << made.body;
    return text_of(made.body, "token");
  }
  static std::string bearer(std::string_view token) {
    return fmt::format("Authorization: Bearer {}\r\n", token);
  }

  std::unique_ptr<Auth> auth_;
  World world_;
};

}  // namespace pawl::test
