// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Authentication of a server: users with passwords, tokens for programs, roles.
///
///     auto auth = pawl::make_auth({});
///     auth->add_machines(machines);                       // users and tokens are instances of machines
///     auto engine = pawl::Engine::open(runtime, std::move(machines), …).value();
///     auth->start(runtime, *engine).value();
///     if (const auto first = auth->first_login()) show(first->user, first->password);
///     auto server = pawl::Server::start(runtime, *engine, {.auth = auth.get()}).value();
///
/// Passwords are kept as argon2id, tokens as SHA-256 of 256 random bits: neither can be read back.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/log.hpp"
#include "pawl/system.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// How it is run. Every field has a safe default.
struct AuthOptions {
  Duration session = std::chrono::hours(12);  ///< how long a browser stays logged in
  std::size_t failures = 10;                  ///< failed attempts of one address within `window`
  Duration window = std::chrono::minutes(1);
  bool cheap_passwords = false;  ///< for tests only: hashing that costs nothing
};

/// A login whose password must be changed at first use.
struct FirstLogin {
  std::string user;
  std::string password;
};

/// A system like others, which the server asks about every request. Thread-safe.
class Auth : public System {
 public:
  /// Fills in user, role and identity, or refuses. Errors: `unauthenticated`, `forbidden` (a login cookie
  /// without its CSRF token), `rate_limited`.
  virtual Result<void> authenticate(http::Request& request, const http::Route& route) = 0;

  /// The same for a caller that this request has admitted and that is still reading. A refusal does not count
  /// as a failed attempt.
  virtual Result<void> authenticate_again(http::Request& request, const http::Route& route) = 0;

  /// `changed` is called, on any thread but an I/O thread, after access was withdrawn: a token revoked, a
  /// user removed or changed, a login ended. For one server at a time; nullptr when it stops.
  virtual void on_change(std::function<void()> changed) = 0;

  /// After `start`: a new one-time password, until the first administrator has chosen a password.
  virtual std::optional<FirstLogin> first_login() const = 0;

  /// After `start`: a one-time code that logs the first administrator in within an hour and replaces the one
  /// before; for a link shown to the person who runs the server. nullopt if that user was removed.
  virtual std::optional<std::string> make_login_code() = 0;
};

std::unique_ptr<Auth> make_auth(AuthOptions options = {});

/// Recovers access for the machine's owner: makes this user, new or not, an administrator with a one-time
/// password. For an engine with the machines of `Auth` whose store no server has open.
Result<FirstLogin> recover_login(Engine& engine, const std::string& name);

}  // namespace pawl
