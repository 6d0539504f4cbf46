// SPDX-License-Identifier: Apache-2.0
// pawl token, user and login.
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "cli/credentials.hpp"
#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"
#include "pawl/auth.hpp"
#include "pawl/engine.hpp"
#include "pawl/http.hpp"
#include "store/store.hpp"

namespace pawl::cli {
namespace {

/// Prompted for twice, or the first line of the file or of standard input. Never an argument: every user of
/// the machine can see those.
Result<std::string> new_password(const std::string& file, std::string_view what) {
  if (!file.empty() && file != "-") {
    std::ifstream in(file);
    std::string line;
    if (!std::getline(in, line)) {
      return fail(Code::invalid_argument, fmt::format("{} cannot be read or is empty", printable(file)));
    }
    return line;
  }
  PAWL_TRY(auto password, read_secret(what));
  if (::isatty(STDIN_FILENO) == 1) {
    PAWL_TRY(const auto again, read_secret("once more"));
    if (again != password)
      return fail(Code::invalid_argument, "the two passwords differ; nothing was changed");
  }
  return password;
}

std::string user_path(const std::string& user) { return "/v1/users/" + http::encode_percent(user); }

int put_user(const Common& common, Client& client, const std::string& user, const std::string& role,
             const std::string& password) {
  JsonWriter out;
  out.begin_object().key("role").string(role);
  if (!password.empty()) out.key("password").string(password);
  auto body = out.end_object().take();
  if (!body) return report(body.error());
  const auto answer = client.call({.method = "PUT", .target = user_path(user), .body = *std::move(body)});
  return present(answer ? parse_answer(*answer) : fail(answer.error()), common.json, [&](JsonValue changed) {
    fmt::print("{} is {}\n", printable(text_of(changed, "user")), printable(text_of(changed, "role")));
    if (!password.empty()) note("the password must be changed at its first use");
  });
}

/// The present role of a user; the API requires it with every change.
Result<std::string> role_of(Client& client, const std::string& user) {
  PAWL_TRY(const auto body, client.get("/v1/users"));
  PAWL_TRY(const auto document, parse_answer(body));
  const auto users = document.root().find("users");
  for (std::size_t i = 0; users && i < users->size(); ++i) {
    if (text_of(users->at(i), "user") == user) return text_of(users->at(i), "role");
  }
  return fail(Code::unknown_instance,
              fmt::format("there is no user \"{}\"; `pawl user ls` lists them", user));
}

struct Session {
  std::string cookie;
  std::string csrf;
  bool must_change = false;
};

Result<Session> log_in(Client& client, const std::string& user, const std::string& password) {
  JsonWriter out;
  PAWL_TRY(auto body,
           out.begin_object().key("user").string(user).key("password").string(password).end_object().take());
  PAWL_TRY(const auto answer,
           client.exchange({.method = "POST", .target = "/v1/login", .body = std::move(body)}));
  if (answer.status != 200) return fail(to_error(answer, client.url()));
  PAWL_TRY(const auto document, parse_answer(answer.body));
  const auto must = document.root().find("must_change_password");
  return Session{.cookie = answer.cookie,
                 .csrf = text_of(document.root(), "csrf"),
                 .must_change = must && must->as_boolean().value_or(false)};
}

Result<std::string> call_as(Client& client, const Session& session, std::string target, std::string body) {
  return client.call({.method = "POST",
                      .target = std::move(target),
                      .headers = {{"Cookie", session.cookie}, {"X-Pawl-CSRF", session.csrf}},
                      .body = std::move(body)});
}

/// Changes a one-time password, then logs in with the new one.
Result<Session> choose_password(Client& client, const Session& session, const std::string& user,
                                const std::string& old) {
  note("the password must be changed first; a new one has 12 to 256 bytes");
  PAWL_TRY(const auto fresh, new_password("", "new password"));
  JsonWriter out;
  PAWL_TRY(auto body, out.begin_object().key("old").string(old).key("new").string(fresh).end_object().take());
  PAWL_CHECK(call_as(client, session, "/v1/password", std::move(body)));
  return log_in(client, user, fresh);
}

Result<void> get_token(const Common& common, const LoginArguments& arguments) {
  PAWL_TRY(const auto known, open_client(common.source));
  // Without the stored token, which this replaces.
  Client client({.url = known.url(), .ca = known.ca()});
  PAWL_TRY(const auto password, read_secret(fmt::format("password of {}", arguments.user)));
  PAWL_TRY(auto session, log_in(client, arguments.user, password));
  if (session.must_change) {
    PAWL_TRY(session, choose_password(client, session, arguments.user, password));
  }
  std::array<char, 65> host{};
  ::gethostname(host.data(), host.size() - 1);
  JsonWriter out;
  out.begin_object().key("name").string(fmt::format("{}@{}", arguments.user, host.data()).substr(0, 64));
  PAWL_TRY(auto body, out.key("role").string("admin").end_object().take());
  PAWL_TRY(const auto answer, call_as(client, session, "/v1/tokens", std::move(body)));
  PAWL_TRY(const auto document, parse_answer(answer));
  return keep_token(client.url(), text_of(document.root(), "token"));
}

/// Opens the store as its owner, which fails while a server runs on it.
Result<FirstLogin> recover(const RecoverArguments& arguments) {
  const auto where = store_address(arguments.store);
  // Opening as the owner would create an absent store.
  PAWL_CHECK(open_store_at({.where = where, .read_only = true, .create = false}));
  ThreadRuntime runtime;
  Machines machines;
  make_auth()->add_machines(machines);
  PAWL_TRY(const auto engine,
           Engine::open(runtime, std::move(machines), {.store = where, .work_threads = 1}));
  return recover_login(*engine, arguments.user);
}

}  // namespace

int run_token_create(const Common& common, const TokenArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  JsonWriter out;
  out.begin_object().key("name").string(arguments.name).key("role").string(arguments.role);
  if (!arguments.expires.empty()) out.key("expires").string(arguments.expires);
  auto body = out.end_object().take();
  if (!body) return report(body.error());
  const auto answer = client->call({.method = "POST", .target = "/v1/tokens", .body = *std::move(body)});
  return present(answer ? parse_answer(*answer) : fail(answer.error()), common.json, [](JsonValue token) {
    fmt::print("{}\n", printable(text_of(token, "token")));
    note(fmt::format("the token {} ({}, {}) is shown only once", text_of(token, "id"), text_of(token, "name"),
                     text_of(token, "role")));
  });
}

int run_token_ls(const Common& common) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer = client->get("/v1/tokens");
  return present(answer ? parse_answer(*answer) : fail(answer.error()), common.json, [](JsonValue root) {
    Table table({"ID", "NAME", "ROLE", "BY", "CREATED", "AGE", "EXPIRES"});
    const auto tokens = root.find("tokens");
    for (std::size_t i = 0; tokens && i < tokens->size(); ++i) {
      const auto token = tokens->at(i);
      const auto created = text_of(token, "created_at");
      table.add({Cell(text_of(token, "id"), Style::key), text_of(token, "name"), text_of(token, "role"),
                 text_of(token, "by"), to_seconds(created), ago(created), when(text_of(token, "expires"))});
    }
    table.print();
  });
}

int run_token_revoke(const Common& common, const TokenArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer =
      client->call({.method = "DELETE", .target = "/v1/tokens/" + http::encode_percent(arguments.id)});
  if (!answer) return report(answer.error());
  note(fmt::format("the token {} is revoked", arguments.id));
  return kOk;
}

int run_user_add(const Common& common, const UserArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto known = role_of(*client, arguments.user);
  if (!known && known.error().code() != Code::unknown_instance) return report(known.error());
  if (known) {
    return report(
        {Code::duplicate_instance, fmt::format("the user \"{}\" exists; `pawl user role` and `pawl user "
                                               "password` change one",
                                               arguments.user)});
  }
  const auto password = new_password(arguments.password_file, "password of " + arguments.user);
  if (!password) return report(password.error());
  return put_user(common, *client, arguments.user, arguments.role, *password);
}

int run_user_ls(const Common& common) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer = client->get("/v1/users");
  return present(answer ? parse_answer(*answer) : fail(answer.error()), common.json, [](JsonValue root) {
    Table table({"USER", "ROLE", "CHANGED", "AGE", "PASSWORD"});
    const auto users = root.find("users");
    for (std::size_t i = 0; users && i < users->size(); ++i) {
      const auto user = users->at(i);
      const auto one_time = user.find("one_time");
      const auto at = text_of(user, "at");
      table.add({Cell(text_of(user, "user"), Style::key), text_of(user, "role"), to_seconds(at), ago(at),
                 one_time && one_time->as_boolean().value_or(false) ? "one-time" : "chosen"});
    }
    table.print();
  });
}

int run_user_password(const Common& common, const UserArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto role = role_of(*client, arguments.user);
  if (!role) return report(role.error());
  const auto password = new_password(arguments.password_file, "new password of " + arguments.user);
  if (!password) return report(password.error());
  return put_user(common, *client, arguments.user, *role, *password);
}

int run_user_role(const Common& common, const UserArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  if (const auto known = role_of(*client, arguments.user); !known) return report(known.error());
  return put_user(common, *client, arguments.user, arguments.role, "");
}

int run_user_rm(const Common& common, const UserArguments& arguments) {
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer = client->call({.method = "DELETE", .target = user_path(arguments.user)});
  if (!answer) return report(answer.error());
  note(fmt::format("the user {} is removed", arguments.user));
  return kOk;
}

int run_user_recover(bool json, const RecoverArguments& arguments) {
  const auto login = recover(arguments);
  if (!login) return report(login.error());
  if (json) {
    JsonWriter out;
    out.begin_object().key("user").string(login->user).key("password").string(login->password).end_object();
    return print_json(out.take());
  }
  fmt::print("{}\n", login->password);
  note(fmt::format("{} is admin; this one-time password must be changed at its first use", login->user));
  return kOk;
}

int run_login(const Common& common, const LoginArguments& arguments) {
  if (const auto got = get_token(common, arguments); !got) return report(got.error());
  note(fmt::format("the token is stored in {}", credentials_path()));
  return kOk;
}

}  // namespace pawl::cli
