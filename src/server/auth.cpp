// SPDX-License-Identifier: Apache-2.0
#include "pawl/auth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "server/auth_machines.hpp"
#include "server/auth_sessions.hpp"
#include "server/auth_users.hpp"
#include "server/body.hpp"
#include "server/routes.hpp"
#include "server/secrets.hpp"

namespace pawl {
namespace server::auth {
namespace {

constexpr std::string_view kFirstUser = "admin";
constexpr std::string_view kCookie = "pawl_session";
constexpr std::string_view kCsrfHeader = "X-Pawl-CSRF";
constexpr std::string_view kTokenPrefix = "pawl_";
constexpr std::size_t kLeastPassword = 12;
constexpr std::size_t kMostPassword = 256;
constexpr std::size_t kMostListed = 1000;
constexpr Duration kCodeLife = std::chrono::hours(1);

/// The value of the login cookie; empty if absent.
std::string_view cookie_of(const http::Request& request) {
  auto rest = request.header("Cookie");
  while (!rest.empty()) {
    const auto end = std::min(rest.find(';'), rest.size());
    auto item = rest.substr(0, end);
    rest = rest.substr(std::min(end + 1, rest.size()));
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    if (item.starts_with(kCookie) && item.substr(kCookie.size()).starts_with('=')) {
      return item.substr(kCookie.size() + 1);
    }
  }
  return {};
}

std::string set_cookie(std::string_view value, bool secure, std::int64_t seconds) {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", kCookie, value, seconds,
                     secure ? "; Secure" : "");
}

Result<void> check_password(const std::string& password) {
  if (password.size() >= kLeastPassword && password.size() <= kMostPassword) return {};
  return fail(Code::invalid_argument,
              fmt::format("a password has {} to {} bytes", kLeastPassword, kMostPassword));
}

Error wrong_login() { return {Code::unauthenticated, "the user or the password is wrong"}; }

class AuthSystem final : public Auth {
 public:
  explicit AuthSystem(AuthOptions options) : options_(options), failures_(options.failures, options.window) {}

  std::string name() const override { return "auth"; }
  std::string summary() const override { return "users, tokens and roles"; }
  void add_machines(Machines& machines) override { machines.add<user>().add<token>(); }

  Result<void> start(Runtime& runtime, Engine& engine) override;
  std::optional<FirstLogin> first_login() const override { return first_; }
  std::optional<std::string> make_login_code() override;
  Result<void> authenticate(http::Request& request, const http::Route& route) override;
  Result<void> authenticate_again(http::Request& request, const http::Route& route) override;
  void on_change(std::function<void()> changed) override;
  std::vector<http::Route> routes(Engine&) override;

 private:
  Result<void> by_token(http::Request& request, std::string_view given);
  Result<void> by_cookie(http::Request& request, const http::Route& route, std::string_view cookie);
  Result<UserData> active_user(std::string_view name) const { return auth::active_user(*engine_, name); }
  void tell_change();

  Result<http::Response> log_in(const http::Request& request);
  Result<http::Response> log_in_with_code(const http::Request& request);
  Result<http::Response> logged_in(const http::Request& request, Login login, const UserData& known);
  Result<http::Response> log_out(const http::Request& request);
  Result<http::Response> who_am_i(const http::Request& request);
  Result<http::Response> change_password(const http::Request& request);
  Result<http::Response> list_users() const;
  Result<http::Response> put_user(const http::Request& request);
  Result<http::Response> remove_user(const http::Request& request);
  Result<http::Response> list_tokens() const;
  Result<http::Response> make_token(const http::Request& request);
  Result<http::Response> revoke_token(const http::Request& request);
  std::vector<http::Route> own_routes();
  std::vector<http::Route> user_routes();
  std::vector<http::Route> token_routes();

  const AuthOptions options_;
  Runtime* runtime_ = nullptr;
  Engine* engine_ = nullptr;
  std::optional<FirstLogin> first_;
  std::string decoy_;  // checked for unknown users, so that the response time does not reveal them
  Logins logins_;
  Failures failures_;
  std::mutex users_mutex_;  // held from the check for another administrator until the change is durable
  std::mutex code_mutex_;
  std::string code_digest_;  // empty: no valid code
  Instant code_until_{};
  std::mutex change_mutex_;  // held while `changed_` runs, so that it does not run after it is reset
  std::function<void()> changed_;
};

/// Until the first administrator has chosen a password, each start generates a new one.
Result<void> AuthSystem::start(Runtime& runtime, Engine& engine) {
  runtime_ = &runtime;
  engine_ = &engine;
  PAWL_TRY(decoy_, hash_password(random_secret(), options_.cheap_passwords));
  PAWL_TRY(const auto users, engine.list({.machine = "pawl_user", .limit = 2}));
  const auto first = engine.get<user>(kFirstUser);
  const bool untouched = users.instances.size() == 1 && first && !first->finished && first->data.one_time &&
                         !first->data.recovered;
  if (!users.instances.empty() && !untouched) return {};
  auto password = random_secret().substr(0, 20);
  PAWL_TRY(auto hash, hash_password(password, options_.cheap_passwords));
  if (users.instances.empty()) {
    PAWL_CHECK(
        engine.create<user>(std::string(kFirstUser), {.role = "admin", .password = hash, .one_time = true}));
  } else {
    PAWL_CHECK(engine.send<user>(std::string(kFirstUser), SetPassword{hash, true, "start"}));
  }
  first_ = FirstLogin{std::string(kFirstUser), std::move(password)};
  return {};
}

/// Only failures are limited: a caller with a valid token behind the same proxy as an attacker is not locked
/// out. Tokens of 256 bits cannot be guessed.
Result<void> AuthSystem::authenticate(http::Request& request, const http::Route& route) {
  auto known = authenticate_again(request, route);
  if (known || request.header("Authorization").empty()) return known;
  if (failures_.blocked(request.remote, runtime_->instant())) {
    return fail(Code::rate_limited, "too many failed attempts from this address; wait a minute");
  }
  failures_.note(request.remote, runtime_->instant());
  return known;
}

Result<void> AuthSystem::authenticate_again(http::Request& request, const http::Route& route) {
  request.user = "anonymous";
  request.identity.clear();
  request.role = http::Role::anyone;
  const auto authorization = request.header("Authorization");
  const auto cookie = cookie_of(request);
  if (!authorization.empty()) return by_token(request, authorization);
  if (!cookie.empty()) return by_cookie(request, route, cookie);
  if (route.role == http::Role::anyone) return {};
  return fail(Code::unauthenticated, "send a token (Authorization: Bearer …) or log in at /v1/login");
}

void AuthSystem::on_change(std::function<void()> changed) {
  const std::lock_guard lock(change_mutex_);
  changed_ = std::move(changed);
}

void AuthSystem::tell_change() {
  const std::lock_guard lock(change_mutex_);
  if (changed_) changed_();
}

/// pawl_<id>_<secret>
Result<void> AuthSystem::by_token(http::Request& request, std::string_view given) {
  const Error unknown(Code::unauthenticated, "the token is unknown, expired or revoked");
  constexpr std::string_view kBearer = "Bearer ";
  if (!given.starts_with(kBearer)) return fail(unknown);
  given.remove_prefix(kBearer.size());
  if (!given.starts_with(kTokenPrefix)) return fail(unknown);
  given.remove_prefix(kTokenPrefix.size());
  const auto dash = given.find('_');
  if (dash == std::string_view::npos) return fail(unknown);
  const auto found = engine_->get<token>(given.substr(0, dash));
  if (!found || found->finished || !same_text(found->data.hash, digest(given.substr(dash + 1))))
    return fail(unknown);
  if (found->data.expires && *found->data.expires <= runtime_->now()) return fail(unknown);
  PAWL_TRY(request.role, http::parse_role(found->data.role));
  request.user = "token:" + found->data.name;
  request.identity = "token:" + found->key;
  return {};
}

Result<void> AuthSystem::by_cookie(http::Request& request, const http::Route& route,
                                   std::string_view cookie) {
  const auto login = logins_.find(cookie, runtime_->instant());
  const auto known = login ? active_user(login->user) : fail(Code::unauthenticated, "");
  if (!login || !known) {
    // An expired cookie must not prevent a new login.
    if (route.role == http::Role::anyone) return {};
    return fail(Code::unauthenticated, "the login has ended; log in again at /v1/login");
  }
  request.user = login->user;
  // A one-time password only allows choosing a password.
  const bool must_change = known->one_time && !login->by_code;
  if (!must_change) {
    PAWL_TRY(request.role, http::parse_role(known->role));
  }
  if (route.method != http::Method::get && route.id != "log_in" && route.id != "log_in_with_code" &&
      !same_text(login->csrf, request.header(kCsrfHeader))) {
    return fail(Code::forbidden,
                fmt::format("a request with a login cookie needs the header {} that the login "
                            "returned",
                            kCsrfHeader));
  }
  if (must_change && route.role != http::Role::anyone) {
    return fail(Code::forbidden, "the one-time password must be changed first, at /v1/password");
  }
  return {};
}

Result<http::Response> AuthSystem::log_in(const http::Request& request) {
  if (failures_.blocked(request.remote, runtime_->instant())) {
    return fail(Code::rate_limited, "too many failed attempts from this address; wait a minute");
  }
  PAWL_TRY(const auto body, Body::parse(request, {"user", "password"}));
  PAWL_TRY(const auto name, body.text("user"));
  PAWL_TRY(const auto password, body.text("password"));
  const auto known = active_user(name);
  const bool right = verify_password(known ? known->password : decoy_, password.substr(0, kMostPassword));
  if (!known || !right) {
    failures_.note(request.remote, runtime_->instant());
    auto refused = http::problem(wrong_login());
    // Not for unknown users: people type passwords into the wrong field.
    if (known) refused.audit.emplace_back("tried", name);
    return refused;
  }
  return logged_in(request, {.user = name}, *known);
}

std::optional<std::string> AuthSystem::make_login_code() {
  const auto first = active_user(kFirstUser);
  if (!first || first->role != "admin") return std::nullopt;
  auto code = random_secret();
  const std::lock_guard lock(code_mutex_);
  code_digest_ = digest(code);
  code_until_ = runtime_->instant() + kCodeLife;
  return code;
}

Result<http::Response> AuthSystem::log_in_with_code(const http::Request& request) {
  if (failures_.blocked(request.remote, runtime_->instant())) {
    return fail(Code::rate_limited, "too many failed attempts from this address; wait a minute");
  }
  PAWL_TRY(const auto body, Body::parse(request, {"code"}));
  PAWL_TRY(const auto code, body.text("code"));
  {
    const std::lock_guard lock(code_mutex_);
    const bool right =
        !code_digest_.empty() && runtime_->instant() < code_until_ && same_text(code_digest_, digest(code));
    if (!right) {
      failures_.note(request.remote, runtime_->instant());
      return fail(Code::unauthenticated, "the login link is unknown, used or expired");
    }
    code_digest_.clear();
  }
  PAWL_TRY(const auto known, active_user(kFirstUser));
  return logged_in(request, {.user = std::string(kFirstUser), .by_code = true}, known);
}

Result<http::Response> AuthSystem::logged_in(const http::Request& request, Login login,
                                             const UserData& known) {
  login.csrf = random_secret();
  login.until = runtime_->instant() + options_.session;
  const auto cookie = logins_.add(login);
  JsonWriter out;
  out.begin_object().key("user").string(login.user).key("role").string(known.role);
  out.key("csrf").string(login.csrf).key("must_change_password").boolean(known.one_time && !login.by_code);
  out.end_object();
  PAWL_TRY(auto response, http::json(out.take()));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.session).count();
  response.headers.emplace_back("Set-Cookie", set_cookie(cookie, request.secure, seconds));
  response.audit.emplace_back("user", login.user);
  return response;
}

Result<http::Response> AuthSystem::log_out(const http::Request& request) {
  logins_.remove(cookie_of(request));
  tell_change();
  return http::Response{.body = R"({"status":"logged out"})",
                        .headers = {{"Set-Cookie", set_cookie("", request.secure, 0)}}};
}

Result<http::Response> AuthSystem::who_am_i(const http::Request& request) {
  const auto login = logins_.find(cookie_of(request), runtime_->instant());
  JsonWriter out;
  out.begin_object().key("user").string(request.user).key("role").string(http::name(request.role));
  if (login) out.key("csrf").string(login->csrf);
  out.end_object();
  return http::json(out.take());
}

Result<http::Response> AuthSystem::change_password(const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"old", "new"}));
  PAWL_TRY(const auto old, body.text("old"));
  PAWL_TRY(const auto fresh, body.text("new"));
  PAWL_CHECK(check_password(fresh));
  const auto known = active_user(request.user);
  if (!known) return fail(Code::unauthenticated, "log in at /v1/login first");
  if (failures_.blocked(request.remote, runtime_->instant())) {
    return fail(Code::rate_limited, "too many failed attempts from this address; wait a minute");
  }
  if (!verify_password(known->password, old.substr(0, kMostPassword))) {
    failures_.note(request.remote, runtime_->instant());
    return fail(wrong_login());
  }
  PAWL_TRY(auto hash, hash_password(fresh, options_.cheap_passwords));
  PAWL_CHECK(engine_->send<user>(request.user, SetPassword{std::move(hash), false, request.user}));
  // Ends every session of the user, this one included.
  logins_.remove_user(request.user);
  tell_change();
  return http::Response{.body = R"({"status":"changed"})",
                        .headers = {{"Set-Cookie", set_cookie("", request.secure, 0)}}};
}

Result<http::Response> AuthSystem::list_users() const {
  PAWL_TRY(const auto page, engine_->list({.machine = "pawl_user", .finished = false, .limit = kMostListed}));
  JsonWriter out;
  out.begin_object().key("users").begin_array();
  for (const auto& instance : page.instances) {
    PAWL_TRY(const auto data, decode<UserData>(instance.data));
    out.begin_object().key("user").string(instance.key).key("role").string(data.role);
    out.key("one_time").boolean(data.one_time).key("at").string(to_string(instance.at)).end_object();
  }
  out.end_array().end_object();
  return http::json(out.take());
}

/// Creates a user, or changes the role or password of one.
Result<http::Response> AuthSystem::put_user(const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"role", "password"}));
  PAWL_TRY(const auto role, body.text("role"));
  PAWL_CHECK(http::parse_role(role));
  PAWL_TRY(const auto password, body.text_or("password", ""));
  const auto& name = request.parameter("user");
  const auto known = active_user(name);
  if (!known) PAWL_CHECK(check_name(name));
  std::string hash;
  if (!password.empty() || !known) {
    PAWL_CHECK(check_password(password));
    PAWL_TRY(hash, hash_password(password, options_.cheap_passwords));
  }
  // Two people know a password that an administrator chose, so its owner must change it.
  if (!known) {
    PAWL_CHECK(engine_->create<user>(name, {.role = role, .password = hash, .one_time = true}));
  } else {
    if (name == request.user && role != "admin") {
      return fail(Code::invalid_argument, "administrators cannot demote themselves");
    }
    const std::lock_guard lock(users_mutex_);
    if (role != "admin") PAWL_CHECK(check_other_administrator(*engine_, name));
    // In one commit, so that the new role never goes with the old password.
    PAWL_CHECK(engine_->send<user>(name, SetRole{role, request.user, hash}));
    logins_.remove_user(name);
    tell_change();
  }
  JsonWriter out;
  out.begin_object().key("user").string(name).key("role").string(role).end_object();
  PAWL_TRY(auto response, http::json(out.take()));
  response.audit = {{"role", role}, {"new_login", hash.empty() ? "no" : "yes"}};
  return response;
}

Result<http::Response> AuthSystem::remove_user(const http::Request& request) {
  const auto& name = request.parameter("user");
  if (name == request.user) return fail(Code::invalid_argument, "administrators cannot remove themselves");
  {
    const std::lock_guard lock(users_mutex_);
    PAWL_CHECK(check_other_administrator(*engine_, name));
    PAWL_CHECK(engine_->send<user>(name, RemoveUser{request.user}));
  }
  logins_.remove_user(name);
  tell_change();
  return http::Response{.status = 204};
}

Result<http::Response> AuthSystem::list_tokens() const {
  PAWL_TRY(const auto page,
           engine_->list({.machine = "pawl_token", .finished = false, .limit = kMostListed}));
  JsonWriter out;
  out.begin_object().key("tokens").begin_array();
  for (const auto& instance : page.instances) {
    PAWL_TRY(const auto data, decode<TokenData>(instance.data));
    out.begin_object().key("id").string(instance.key).key("name").string(data.name);
    out.key("role").string(data.role).key("by").string(data.by);
    out.key("created_at").string(to_string(instance.created_at));
    if (data.expires) out.key("expires").string(to_string(*data.expires));
    out.end_object();
  }
  out.end_array().end_object();
  return http::json(out.take());
}

/// The token itself is in this answer and nowhere else.
Result<http::Response> AuthSystem::make_token(const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"name", "role", "expires"}));
  TokenData data{.by = request.user};
  PAWL_TRY(data.name, body.text("name"));
  PAWL_TRY(data.role, body.text("role"));
  PAWL_CHECK(http::parse_role(data.role));
  PAWL_TRY(const auto expires, body.text_or("expires", ""));
  if (!expires.empty()) {
    PAWL_TRY(data.expires, parse_time(expires));
  }
  PAWL_CHECK(check_name(data.name));
  const auto id = random_id();
  const auto secret = random_secret();
  data.hash = digest(secret);
  PAWL_CHECK(engine_->create<token>(id, data));
  JsonWriter out;
  out.begin_object().key("id").string(id).key("name").string(data.name).key("role").string(data.role);
  out.key("token").string(fmt::format("{}{}_{}", kTokenPrefix, id, secret)).end_object();
  PAWL_TRY(auto response, http::json(out.take(), 201));
  response.audit = {{"id", id}, {"role", data.role}};
  return response;
}

Result<http::Response> AuthSystem::revoke_token(const http::Request& request) {
  PAWL_CHECK(engine_->send<token>(request.parameter("token"), Revoke{request.user}));
  tell_change();
  return http::Response{.status = 204};
}

std::vector<http::Route> AuthSystem::own_routes() {
  return {
      {.method = http::Method::post,
       .path = "/v1/login",
       .id = "log_in",
       .summary = "Log in with a password; sets a cookie and returns the CSRF token for writes",
       .role = http::Role::anyone,
       .request = schema_ref("LogIn"),
       .response = schema_ref("LoggedIn"),
       .errors = {Code::unauthenticated, Code::rate_limited},
       .run = [this](const http::Request& request) { return log_in(request); }},
      {.method = http::Method::post,
       .path = "/v1/login/code",
       .id = "log_in_with_code",
       .summary = "Log in with the one-time code of a login link",
       .role = http::Role::anyone,
       .request = schema_ref("LogInWithCode"),
       .response = schema_ref("LoggedIn"),
       .errors = {Code::unauthenticated, Code::rate_limited},
       .run = [this](const http::Request& request) { return log_in_with_code(request); }},
      {.method = http::Method::post,
       .path = "/v1/logout",
       .id = "log_out",
       .summary = "End the login of the cookie",
       .role = http::Role::anyone,
       .response = schema_ref("Status"),
       .run = [this](const http::Request& request) { return log_out(request); }},
      {.path = "/v1/me",
       .id = "who_am_i",
       .summary = "The caller's user and role",
       .role = http::Role::anyone,
       .response = schema_ref("Identity"),
       .run = [this](const http::Request& request) { return who_am_i(request); }},
      {.method = http::Method::post,
       .path = "/v1/password",
       .id = "change_password",
       .summary = "Change the password; ends every login of the user",
       .role = http::Role::anyone,
       .request = schema_ref("PasswordChange"),
       .response = schema_ref("Status"),
       .errors = {Code::unauthenticated, Code::rate_limited, Code::invalid_argument},
       .run = [this](const http::Request& request) { return change_password(request); }},
  };
}

std::vector<http::Route> AuthSystem::user_routes() {
  return {
      {.path = "/v1/users",
       .id = "list_users",
       .summary = "All users",
       .role = http::Role::admin,
       .response = schema_ref("Users"),
       .run = [this](const http::Request&) { return list_users(); }},
      {.method = http::Method::put,
       .path = "/v1/users/{user}",
       .id = "put_user",
       .summary =
           "Create a user, or change the role or password of one; the password must be changed at first use",
       .role = http::Role::admin,
       .request = schema_ref("UserChange"),
       .response = schema_ref("User"),
       .errors = {Code::invalid_argument, Code::guard_refused},
       .run = [this](const http::Request& request) { return put_user(request); }},
      {.method = http::Method::remove,
       .path = "/v1/users/{user}",
       .id = "remove_user",
       .summary = "Remove a user",
       .role = http::Role::admin,
       .success = 204,
       .errors = {Code::unknown_instance, Code::invalid_argument, Code::guard_refused},
       .run = [this](const http::Request& request) { return remove_user(request); }},
  };
}

std::vector<http::Route> AuthSystem::token_routes() {
  return {
      {.path = "/v1/tokens",
       .id = "list_tokens",
       .summary = "Tokens that are not revoked, without their secrets",
       .role = http::Role::admin,
       .response = schema_ref("Tokens"),
       .run = [this](const http::Request&) { return list_tokens(); }},
      {.method = http::Method::post,
       .path = "/v1/tokens",
       .id = "make_token",
       .summary = "Create a token; it is shown once",
       .role = http::Role::admin,
       .request = schema_ref("TokenRequest"),
       .response = schema_ref("NewToken"),
       .success = 201,
       .errors = {Code::invalid_argument},
       .run = [this](const http::Request& request) { return make_token(request); }},
      {.method = http::Method::remove,
       .path = "/v1/tokens/{token}",
       .id = "revoke_token",
       .summary = "Revoke a token, at once",
       .role = http::Role::admin,
       .success = 204,
       .errors = {Code::unknown_instance, Code::finished_instance},
       .run = [this](const http::Request& request) { return revoke_token(request); }},
  };
}

std::vector<http::Route> AuthSystem::routes(Engine&) {
  auto all = own_routes();
  for (auto& more : {user_routes(), token_routes()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace
}  // namespace server::auth

std::unique_ptr<Auth> make_auth(AuthOptions options) {
  return std::make_unique<server::auth::AuthSystem>(options);
}

}  // namespace pawl
