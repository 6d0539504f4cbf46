// SPDX-License-Identifier: Apache-2.0
// Every route, those of the systems included, as everybody who may come: nobody, each role with a token, each
// role with a login, with and without its CSRF token. Who may do what stands here once more, so that a role
// that was changed by mistake is seen. Every write leaves a line of the audit, whatever the level of the log.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "images/system.hpp"
#include "tests/server/auth_world.hpp"
#include "workers/system.hpp"

namespace pawl::test {
namespace {

using http::Role;

/// Method and path by the least role that may use them.
const std::map<Role, std::vector<std::string>> kGolden{
    {Role::anyone,
     {"GET /healthz", "GET /readyz", "GET /v1/openapi.json", "POST /v1/login", "POST /v1/login/code",
      "POST /v1/logout", "GET /v1/me", "POST /v1/password"}},
    {Role::viewer,
     {"GET /metrics",
      "GET /systems/{system}/page.js",
      "GET /v1/events",
      "GET /v1/flows",
      "GET /v1/flows/{flow}/runs/{id}",
      "GET /v1/flows/{flow}/runs/{id}/timeline",
      "GET /v1/flows/{flow}/runs/{id}/wait",
      "GET /v1/image-doctor",
      "GET /v1/image-garbage",
      "GET /v1/image-pool",
      "GET /v1/images",
      "GET /v1/images/{image}",
      "GET /v1/instances",
      "GET /v1/instances/{machine}/{key}",
      "GET /v1/instances/{machine}/{key}/ephemerals",
      "GET /v1/instances/{machine}/{key}/history",
      "GET /v1/machines",
      "GET /v1/machines/{machine}",
      "GET /v1/machines/{machine}/diagram",
      "GET /v1/pools",
      "GET /v1/runs",
      "GET /v1/runs/{run}",
      "GET /v1/stats",
      "GET /v1/systems",
      "GET /v1/timers",
      "GET /v1/workers",
      "GET /v1/workers/{path}"}},
    {Role::operator_,
     {"DELETE /v1/images/{image}",
      "DELETE /v1/workers/{path}",
      "GET /v1/worker-tree",
      "GET /v1/workers/{path}/logs",
      "POST /v1/flows/{flow}/claim",
      "POST /v1/flows/{flow}/runs",
      "POST /v1/flows/{flow}/runs/{id}/cancel",
      "POST /v1/flows/{flow}/runs/{id}/pause",
      "POST /v1/flows/{flow}/runs/{id}/resume",
      "POST /v1/flows/{flow}/runs/{id}/retry",
      "POST /v1/image-garbage",
      "POST /v1/images",
      "POST /v1/images/{image}/activate",
      "POST /v1/images/{image}/deactivate",
      "POST /v1/instances/{machine}",
      "POST /v1/instances/{machine}/{key}/events",
      "POST /v1/leases/complete",
      "POST /v1/leases/heartbeat",
      "POST /v1/worker-tree/diff",
      "POST /v1/workers/{path}/park",
      "POST /v1/workers/{path}/restart",
      "POST /v1/workers/{path}/run",
      "PUT /v1/pools/{pool}"}},
    {Role::admin,
     {"DELETE /v1/tokens/{token}", "DELETE /v1/users/{user}", "GET /v1/backup", "GET /v1/tokens",
      "GET /v1/users", "POST /v1/backup", "POST /v1/image-pool", "POST /v1/image-pool/detach",
      "POST /v1/tokens", "PUT /v1/users/{user}", "PUT /v1/worker-tree"}},
};
/// Writes that change nothing which anybody asks about later.
const std::set<std::string> kUnaudited{"POST /v1/leases/heartbeat", "POST /v1/worker-tree/diff"};
/// Besides these, a login cookie needs its CSRF token for everything but GET.
const std::set<std::string> kLogins{"POST /v1/login", "POST /v1/login/code"};

struct Operation {
  std::string name;  // "GET /v1/machines/{machine}"
  std::string method;
  std::string path;  // each parameter is "x"
  std::string id;
  bool has_body = false;
};

std::vector<Operation> operations(const std::string& document) {
  std::vector<Operation> all;
  const auto parsed = JsonDocument::parse(document).value();
  const auto paths = *parsed.root().find("paths");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::string path(paths.key_at(i));
    for (auto brace = path.find('{'); brace != std::string::npos; brace = path.find('{')) {
      path.replace(brace, path.find('}') - brace + 1, "x");
    }
    for (std::size_t j = 0; j < paths.at(i).size(); ++j) {
      std::string method(paths.at(i).key_at(j));
      for (auto& letter : method) letter = static_cast<char>(letter & ~0x20);
      const auto operation = paths.at(i).at(j);
      all.push_back({.name = fmt::format("{} {}", method, paths.key_at(i)),
                     .method = method,
                     .path = path,
                     .id = std::string(*operation.find("operationId")->as_string()),
                     .has_body = operation.find("requestBody").has_value()});
    }
  }
  return all;
}

std::map<std::string, Role> golden() {
  std::map<std::string, Role> roles;
  for (const auto& [role, names] : kGolden) {
    for (const auto& name : names) roles.emplace(name, role);
  }
  return roles;
}

/// The lines of the audit, as field → text.
class AuditLines {
 public:
  using Line = std::map<std::string, std::string>;

  Logger logger(LogLevel level) {
    return {std::make_shared<CallbackSink>([this](const LogRecord& record) { keep(record); }),
            [] { return Time{}; }, level};
  }
  std::vector<Line> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  void keep(const LogRecord& record) {
    if (record.message != "audit") return;
    Line line;
    for (const auto& field : record.fields) {
      if (const auto* text = std::get_if<std::string_view>(&field.value.get()))
        line[std::string(field.key)] = *text;
      if (const auto* number = std::get_if<std::int64_t>(&field.value.get()))
        line[std::string(field.key)] = std::to_string(*number);
    }
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::mutex mutex_;
  std::vector<Line> lines_;
};

/// Before the server that uses them.
struct Parts {
  AuditLines audit;
  std::unique_ptr<System> images = images::make_images();
  std::unique_ptr<System> workers = workers::make_workers();
};

class Matrix : private Parts, public AuthTest {
 protected:
  Matrix() : AuthTest(cheap(), options(*this)), by_(admin()), all_(operations(document())) {}

  static ServerOptions options(Parts& parts) {
    ServerOptions made;
    made.systems = {parts.images.get(), parts.workers.get()};
    made.log = parts.audit.logger(LogLevel::error);  // less than which nothing else is logged
    return made;
  }
  std::string document() { return world_.call("GET", "/v1/openapi.json").body; }
  std::vector<AuditLines::Line> audited() { return audit.take(); }

  /// As it was answered, and what the audit says of it.
  void try_it(const Operation& operation, const std::string& headers, std::string_view user, bool allowed,
              int refused_with) {
    (void)audited();
    auto since = world_.engine->subscribe("").value();
    const auto answer =
        world_.call(operation.method, operation.path, operation.has_body ? "{}" : "", headers);
    if (allowed) {
      EXPECT_THAT(answer.status, testing::AllOf(testing::Ne(401), testing::Ne(403))) << answer.body;
    } else {
      world_.expect_problem(answer, refused_with, refused_with == 401 ? "unauthenticated" : "forbidden");
      EXPECT_EQ(answer.header("WWW-Authenticate"), refused_with == 401 ? "Bearer" : "");
      EXPECT_THAT(changed(since), testing::IsEmpty());
    }
    expect_audit(operation, user, answer.status);
  }
  /// What has changed; the collection of garbage, which goes on after its answer, apart.
  static std::vector<std::string> changed(Subscription& since) {
    std::vector<std::string> machines;
    while (true) {
      const auto events = since.poll().value();
      if (events.empty()) return machines;
      for (const auto& event : events) {
        if (event.machine != "collect-image-garbage") machines.push_back(event.machine);
      }
    }
  }
  void expect_audit(const Operation& operation, std::string_view user, int status) {
    const auto lines = audited();
    if (operation.method == "GET" || kUnaudited.contains(operation.name)) {
      EXPECT_TRUE(lines.empty());
      return;
    }
    ASSERT_EQ(lines.size(), 1);
    EXPECT_EQ(lines.front().at("did"), operation.id);
    EXPECT_EQ(lines.front().at("user"), user);
    EXPECT_EQ(lines.front().at("from"), "127.0.0.1");
    EXPECT_EQ(lines.front().at("path"), operation.path);
    EXPECT_EQ(lines.front().at("status"), std::to_string(status));
  }

  const std::map<std::string, Role> roles_ = golden();
  const Browser by_;
  const std::vector<Operation> all_;
};

TEST_F(Matrix, TheRoutesAndTheirRolesAreTheseAndNoOthers) {
  std::map<std::string, Role> documented;
  const auto text = document();
  const auto parsed = JsonDocument::parse(text).value();
  const auto paths = *parsed.root().find("paths");
  for (const auto& operation : all_) {
    const auto path = operation.name.substr(operation.method.size() + 1);
    auto method = operation.method;
    for (auto& letter : method) letter = static_cast<char>(letter | 0x20);
    const auto role = *paths.find(path)->find(method)->find("x-role")->as_string();
    documented.emplace(operation.name, role == "anyone" ? Role::anyone : http::parse_role(role).value());
  }
  EXPECT_EQ(documented, roles_);
}

TEST_F(Matrix, EveryRouteIsOpenToTheTokensOfItsRoleAndThoseAboveAndToNobodyElse) {
  const std::vector<std::pair<Role, std::string>> callers{{Role::anyone, ""},
                                                          {Role::viewer, bearer(token(by_, "viewer"))},
                                                          {Role::operator_, bearer(token(by_, "operator"))},
                                                          {Role::admin, bearer(token(by_, "admin"))}};
  for (const auto& operation : all_) {
    for (const auto& [role, headers] : callers) {
      SCOPED_TRACE(fmt::format("{} as {}", operation.name, name(role)));
      const auto user = role == Role::anyone ? "anonymous" : fmt::format("token:{}", name(role));
      try_it(operation, headers, user, role >= roles_.at(operation.name), role == Role::anyone ? 401 : 403);
    }
  }
}

TEST_F(Matrix, EveryRouteIsOpenToTheLoginsOfItsRoleAndThoseAboveButNoWriteWithoutTheCsrfToken) {
  for (const auto role : {Role::viewer, Role::operator_, Role::admin}) {
    const std::string user(name(role) == "admin" ? "root" : name(role));
    make_user(by_, user, name(role));
    for (const auto& operation : all_) {
      for (const bool with_csrf : {false, true}) {
        SCOPED_TRACE(fmt::format("{} as {}, CSRF token {}", operation.name, user, with_csrf));
        const auto browser = log_in(user, kPassword);  // afresh, because some of the routes end it
        const bool safe = with_csrf || operation.method == "GET" || kLogins.contains(operation.name);
        try_it(operation, browser.headers(with_csrf), user, safe && role >= roles_.at(operation.name), 403);
      }
    }
  }
}

TEST_F(Matrix, TheAuditNamesTheEventItsEntryAndWhoLoggedIn) {
  const auto headers = bearer(token(by_, "operator"));
  (void)audited();
  world_.call("POST", "/v1/instances/door", R"({"key":"front"})", headers);
  const auto created = audited();
  ASSERT_EQ(created.size(), 1);
  EXPECT_EQ(created.front().at("key"), "front");
  EXPECT_EQ(created.front().at("seq"), std::to_string(world_.last_seq()));
  world_.call("POST", "/v1/instances/door/front/events", R"({"event":"Push"})", headers);
  const auto sent = audited();
  ASSERT_EQ(sent.size(), 1);
  EXPECT_EQ(sent.front().at("user"), "token:operator");
  EXPECT_EQ(sent.front().at("event"), "Push");
  EXPECT_EQ(sent.front().at("seq"), std::to_string(world_.last_seq()));
  log_in("admin", kPassword);
  const auto logged_in = audited();
  ASSERT_EQ(logged_in.size(), 1);
  EXPECT_EQ(logged_in.front().at("user"), "admin");
}

TEST_F(Matrix, TheAuditOfAFailedLoginNamesAUserThatExistsAndNothingElseThatWasTyped) {
  (void)audited();
  log_in_answer("admin", "wrong");
  const auto tried = audited();
  ASSERT_EQ(tried.size(), 1);
  EXPECT_EQ(tried.front().at("user"), "anonymous");
  EXPECT_EQ(tried.front().at("tried"), "admin");
  log_in_answer("my password", "wrong");
  EXPECT_EQ(audited().front().count("tried"), 0);
}

}  // namespace
}  // namespace pawl::test
