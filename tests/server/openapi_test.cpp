// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document against the running server: every route and every documented refusal is exercised, and
// every answer is what its schema says.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/server/parcels.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

/// As much of JSON Schema as the document uses. Returns what is wrong; empty where nothing is.
class Schema {
 public:
  explicit Schema(JsonValue document) : document_(document) {}

  std::string check(JsonValue schema, JsonValue value, const std::string& path = "$") const {
    if (const auto reference = schema.find("$ref")) return check(resolve(*reference), value, path);
    if (const auto type = schema.find("type"); type && !is_of(*type, value)) {
      return fmt::format("{}: {} is not {}", path, value.to_text(), type->to_text());
    }
    if (const auto one_of = schema.find("enum")) {
      bool found = false;
      for (std::size_t i = 0; i < one_of->size(); ++i)
        found = found || one_of->at(i).to_text() == value.to_text();
      if (!found) return fmt::format("{}: {} is not one of {}", path, value.to_text(), one_of->to_text());
    }
    if (value.kind() == JsonKind::object) return check_object(schema, value, path);
    const auto items = schema.find("items");
    for (std::size_t i = 0; items && value.kind() == JsonKind::array && i < value.size(); ++i) {
      auto wrong = check(*items, value.at(i), fmt::format("{}[{}]", path, i));
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

 private:
  JsonValue resolve(JsonValue reference) const {
    const auto name = reference.as_string()->substr(std::string_view("#/components/schemas/").size());
    return *document_.find("components")->find("schemas")->find(name);
  }

  static bool is_of(JsonValue type, JsonValue value) {
    if (type.kind() == JsonKind::string) return *type.as_string() == value.kind_name();
    for (std::size_t i = 0; i < type.size(); ++i) {
      if (*type.at(i).as_string() == value.kind_name()) return true;
    }
    return false;
  }

  std::string check_object(JsonValue schema, JsonValue value, const std::string& path) const {
    const auto required = schema.find("required");
    for (std::size_t i = 0; required && i < required->size(); ++i) {
      const auto name = *required->at(i).as_string();
      if (!value.find(name)) return fmt::format("{}: {} is missing", path, name);
    }
    const auto properties = schema.find("properties");
    const auto others = schema.find("additionalProperties");
    for (std::size_t i = 0; i < value.size(); ++i) {
      const auto name = std::string(value.key_at(i));
      auto known = properties ? properties->find(name) : std::nullopt;
      if (!known && others && others->kind() == JsonKind::boolean) {
        return fmt::format("{}: {} is not in the schema", path, name);
      }
      if (!known && others) known = others;
      auto wrong = known ? check(*known, value.at(i), path + "." + name) : std::string();
      if (!wrong.empty()) return wrong;
    }
    return {};
  }

  JsonValue document_;
};

/// One request whose answer must have this status.
struct Case {
  std::string operation;
  int status;
  std::string method;
  std::string target;
  std::string body{};
  std::string headers{};
  bool with_token = true;  // of an administrator
};

const std::string kText = "Content-Type: text/plain\r\n";
const std::string kCreate = "/v1/instances/door";
const std::string kSend = "/v1/instances/door/front/events";
const std::string kPool = "/v1/pools/uplink";

std::vector<Case> reading_cases(const std::string& old_cursor) {
  return {
      {"list_machines", 200, "GET", "/v1/machines"},
      {"get_machine", 200, "GET", "/v1/machines/door"},
      {"get_machine", 404, "GET", "/v1/machines/window"},
      {"draw_machine", 200, "GET", "/v1/machines/door/diagram"},
      {"draw_machine", 400, "GET", "/v1/machines/door/diagram?format=svg"},
      {"draw_machine", 404, "GET", "/v1/machines/window/diagram"},
      {"list_instances", 200, "GET", "/v1/instances"},
      {"list_instances", 400, "GET", "/v1/instances?limit=0"},
      {"list_instances", 404, "GET", "/v1/instances?machine=window"},
      {"get_instance", 200, "GET", "/v1/instances/door/front"},
      {"get_instance", 404, "GET", "/v1/instances/door/nowhere"},
      {"get_history", 200, "GET", "/v1/instances/door/front/history"},
      {"get_history", 400, "GET", "/v1/instances/door/front/history?before=x"},
      {"get_history", 404, "GET", "/v1/instances/door/nowhere/history"},
      {"get_ephemerals", 200, "GET", "/v1/instances/door/front/ephemerals"},
      {"get_ephemerals", 404, "GET", "/v1/instances/door/nowhere/ephemerals"},
      {"list_timers", 200, "GET", "/v1/timers"},
      {"list_timers", 400, "GET", "/v1/timers?cursor=x"},
      {"list_timers", 404, "GET", "/v1/timers?machine=window"},
      {"list_pools", 200, "GET", "/v1/pools"},
      {"get_stats", 200, "GET", "/v1/stats"},
      {"list_systems", 200, "GET", "/v1/systems"},
      {"get_page", 200, "GET", "/systems/paged/page.js"},
      {"get_page", 404, "GET", "/systems/nothing/page.js"},
      {"health", 200, "GET", "/healthz"},
      {"readiness", 200, "GET", "/readyz"},
      {"metrics", 200, "GET", "/metrics"},
      {"openapi", 200, "GET", "/v1/openapi.json"},
      {"follow_events", 200, "GET", "/v1/events"},
      {"follow_events", 400, "GET", "/v1/events?after=x"},
      {"follow_events", 410, "GET", "/v1/events?after=" + old_cursor},
  };
}

std::vector<Case> writing_cases() {
  const std::string large = R"({"key":")" + std::string(5000, 'x') + "\"}";
  const std::string once = "Idempotency-Key: once\r\n";
  const std::string twice = "Idempotency-Key: twice\r\n";
  return {
      {"create_instance", 201, "POST", kCreate, R"({"key":"back"})", once},
      {"create_instance", 400, "POST", kCreate, R"({"kee":"back"})"},
      {"create_instance", 404, "POST", "/v1/instances/window", R"({"key":"back"})"},
      {"create_instance", 409, "POST", kCreate, R"({"key":"back"})"},
      {"create_instance", 413, "POST", kCreate, large},
      {"create_instance", 415, "POST", kCreate, R"({"key":"back"})", kText},
      {"create_instance", 422, "POST", kCreate, R"({"key":"other"})", once},
      {"send_event", 200, "POST", kSend, R"({"event":"Push","payload":{"force":1}})", twice},
      {"send_event", 400, "POST", kSend, R"({"event":"Jump"})"},
      {"send_event", 404, "POST", "/v1/instances/door/nowhere/events", R"({"event":"Push"})"},
      {"send_event", 409, "POST", kSend, R"({"event":"Push"})"},
      {"send_event", 413, "POST", kSend, large},
      {"send_event", 415, "POST", kSend, R"({"event":"Pull"})", kText},
      {"send_event", 422, "POST", kSend, R"({"event":"Pull"})", twice},
      {"resize_pool", 200, "PUT", kPool, R"({"size":3})"},
      {"resize_pool", 400, "PUT", kPool, R"({"size":0})"},
      {"resize_pool", 404, "PUT", "/v1/pools/nothing", R"({"size":3})"},
      {"resize_pool", 413, "PUT", kPool, large},
      {"resize_pool", 415, "PUT", kPool, R"({"size":3})", kText},
  };
}

/// What must be there before: a run by its ULID, a lease, and the run "held", which is closing.
std::vector<Case> flow_cases(const std::string& ulid, const std::string& lease) {
  const std::string runs = "/v1/flows/parcel/runs";
  const std::string claim = "/v1/flows/parcel/claim";
  const std::string heartbeat = "/v1/leases/heartbeat";
  const std::string complete = "/v1/leases/complete";
  const std::string large = R"({"id":")" + std::string(5000, 'x') + "\"}";
  const std::string none = R"({"machine":"nothing","key":"x","number":1,"attempt":1})";
  const auto beat = fmt::format(R"({{"lease":{}}})", lease);
  const auto end = [](const std::string& of) {
    return fmt::format(R"({{"lease":{},"outcome":"done"}})", of);
  };
  std::vector<Case> cases{
      {"list_flows", 200, "GET", "/v1/flows"},
      {"start_run", 201, "POST", runs, R"({"id":"one","delay":"1h"})"},
      {"start_run", 200, "POST", runs + "?wait=10s", R"({"id":"ended","request":{"grams":-1}})"},
      {"start_run", 400, "POST", runs, R"({"idd":"one"})"},
      {"start_run", 404, "POST", "/v1/flows/nothing/runs", "{}"},
      {"start_run", 201, "POST", runs, R"({"delay":"1h"})", "Idempotency-Key: started\r\n"},
      {"start_run", 422, "POST", runs, R"({"delay":"2h"})", "Idempotency-Key: started\r\n"},
      {"start_run", 413, "POST", runs, large},
      {"start_run", 415, "POST", runs, "{}", kText},
      {"list_runs", 200, "GET", "/v1/runs"},
      {"list_runs", 400, "GET", "/v1/runs?limit=0"},
      {"list_runs", 404, "GET", "/v1/runs?flow=nothing"},
      {"find_run", 200, "GET", "/v1/runs/" + ulid},
      {"find_run", 400, "GET", "/v1/runs/x"},
      {"find_run", 404, "GET", "/v1/runs/01BX5ZZKBKACTAV9WEVGEMMVRZ"},
      {"get_run", 200, "GET", runs + "/one"},
      {"get_run", 404, "GET", runs + "/nobody"},
      {"wait_run", 200, "GET", runs + "/ended/wait"},
      {"wait_run", 400, "GET", runs + "/one/wait?timeout=x"},
      {"wait_run", 404, "GET", runs + "/nobody/wait"},
      {"wait_run", 504, "GET", runs + "/one/wait?timeout=1ms"},
      {"get_timeline", 200, "GET", runs + "/ended/timeline"},
      {"get_timeline", 404, "GET", runs + "/nobody/timeline"},
      {"claim_step", 200, "POST", claim, R"({"steps":["carry"]})"},
      {"claim_step", 400, "POST", claim, R"({"wait":"x"})"},
      {"claim_step", 404, "POST", "/v1/flows/nothing/claim", "{}"},
      {"claim_step", 413, "POST", claim, large},
      {"claim_step", 415, "POST", claim, "{}", kText},
      {"keep_lease", 200, "POST", heartbeat, beat},
      {"keep_lease", 400, "POST", heartbeat, "{}"},
      {"keep_lease", 404, "POST", heartbeat, fmt::format(R"({{"lease":{}}})", none)},
      {"complete_step", 200, "POST", complete, end(lease)},
      {"complete_step", 400, "POST", complete, "{}"},
      {"complete_step", 404, "POST", complete, end(none)},
      {"complete_step", 409, "POST", complete, end(lease)},
      {"keep_lease", 409, "POST", heartbeat, beat},
  };
  // In this order, so that each finds the run as it needs it.
  for (const auto& [verb, conflict] : std::vector<std::pair<std::string, std::string>>{
           {"pause", "one"}, {"resume", "one"}, {"retry", "held"}, {"cancel", "ended"}}) {
    cases.push_back({verb + "_run", 200, "POST", runs + "/one/" + verb, "{}"});
    cases.push_back({verb + "_run", 409, "POST", runs + "/" + conflict + "/" + verb, "{}"});
    cases.push_back({verb + "_run", 400, "POST", runs + "/one/" + verb, R"({"wrong":1})"});
    cases.push_back({verb + "_run", 404, "POST", runs + "/nobody/" + verb, "{}"});
  }
  for (const std::string verb : {"pause", "resume", "retry", "cancel"}) {
    cases.push_back({verb + "_run", 413, "POST", runs + "/one/" + verb, large});
    cases.push_back({verb + "_run", 415, "POST", runs + "/one/" + verb, "{}", kText});
  }
  for (const auto& [operation, target] : std::vector<std::pair<std::string, std::string>>{
           {"keep_lease", heartbeat}, {"complete_step", complete}}) {
    cases.push_back({operation, 413, "POST", target, large});
    cases.push_back({operation, 415, "POST", target, "{}", kText});
  }
  return cases;
}

const std::string kLoginPassword = "correct horse battery";

std::string login_body(std::string_view password) {
  return fmt::format(R"({{"user":"admin","password":"{}"}})", password);
}

/// `browser` are the headers of a login, `id` names a token that may be revoked, `code` is of a login link.
std::vector<Case> auth_cases(const std::string& browser, const std::string& id, const std::string& code) {
  const std::string link = fmt::format(R"({{"code":"{}"}})", code);
  const std::string large = R"({"user":")" + std::string(5000, 'x') + "\"}";
  const std::string user = R"({"role":"viewer","password":"chosen by another"})";
  const std::string made = R"({"name":"ci","role":"viewer"})";
  const std::string change = fmt::format(R"({{"old":"{0}","new":"{0}"}})", kLoginPassword);
  return {
      {"log_in", 200, "POST", "/v1/login", login_body(kLoginPassword), "", false},
      {"log_in", 400, "POST", "/v1/login", R"({"user":7})", "", false},
      {"log_in", 401, "POST", "/v1/login", login_body("wrong"), "", false},
      {"log_in", 413, "POST", "/v1/login", large, "", false},
      {"log_in", 415, "POST", "/v1/login", login_body("x"), kText, false},
      {"log_in_with_code", 200, "POST", "/v1/login/code", link, "", false},
      {"log_in_with_code", 400, "POST", "/v1/login/code", R"({"code":7})", "", false},
      {"log_in_with_code", 401, "POST", "/v1/login/code", link, "", false},
      {"log_in_with_code", 413, "POST", "/v1/login/code", large, "", false},
      {"log_in_with_code", 415, "POST", "/v1/login/code", link, kText, false},
      {"log_out", 200, "POST", "/v1/logout"},
      {"who_am_i", 200, "GET", "/v1/me"},
      {"change_password", 400, "POST", "/v1/password", R"({"old":"x","new":"short"})", browser, false},
      {"change_password", 401, "POST", "/v1/password", change},
      {"change_password", 413, "POST", "/v1/password", large, browser, false},
      {"change_password", 415, "POST", "/v1/password", change, browser + kText, false},
      {"list_users", 200, "GET", "/v1/users"},
      {"put_user", 200, "PUT", "/v1/users/eve", user},
      {"put_user", 400, "PUT", "/v1/users/eve", R"({"role":"root"})"},
      {"put_user", 413, "PUT", "/v1/users/eve", large},
      {"put_user", 415, "PUT", "/v1/users/eve", user, kText},
      {"remove_user", 204, "DELETE", "/v1/users/eve"},
      {"remove_user", 400, "DELETE", "/v1/users/admin", "", browser, false},
      {"remove_user", 404, "DELETE", "/v1/users/eve"},
      {"list_tokens", 200, "GET", "/v1/tokens"},
      {"make_token", 201, "POST", "/v1/tokens", made},
      {"make_token", 400, "POST", "/v1/tokens", R"({"name":"","role":"viewer"})"},
      {"make_token", 413, "POST", "/v1/tokens", large},
      {"make_token", 415, "POST", "/v1/tokens", made, kText},
      {"revoke_token", 204, "DELETE", "/v1/tokens/" + id},
      {"revoke_token", 404, "DELETE", "/v1/tokens/none"},
      {"revoke_token", 409, "DELETE", "/v1/tokens/" + id},
      // Each failure but one of those that may fail; the next is refused unseen.
      {"log_in", 401, "POST", "/v1/login", login_body("wrong"), "", false},
      {"log_in", 429, "POST", "/v1/login", login_body(kLoginPassword), "", false},
      {"log_in_with_code", 429, "POST", "/v1/login/code", link, "", false},
      {"change_password", 429, "POST", "/v1/password", change, browser, false},
  };
}

class Paged final : public System {
 public:
  std::string name() const override { return "paged"; }
  std::optional<Page> page() override {
    return Page{.title = "A page", .script = "export default () => {};\n"};
  }
};

class OpenApi : public testing::Test {
 protected:
  OpenApi()
      : auth_(make_auth(three_failures())),
        world_(options({&paged_, &parcels_}, auth_.get()), keeping_nothing()) {
    const auto once = log_in(auth_->first_login()->password);
    world_.call("POST", "/v1/password",
                fmt::format(R"({{"old":"{}","new":"{}"}})", auth_->first_login()->password, kLoginPassword),
                once);
    browser_ = log_in(kLoginPassword);
    token_ = fmt::format("Authorization: Bearer {}\r\n", make_token());
    revocable_ = make_token().substr(5, 16);
    old_cursor_ = world_.engine->subscribe("").value().cursor();
    world_.engine->create<door>("front").value();
    world_.engine->create<door>("gone").value();
    world_.engine->retain().value();
    text_ = world_.call("GET", "/v1/openapi.json").body;
    document_.emplace(JsonDocument::parse(text_).value());
  }

  /// The headers of a browser that has logged in.
  std::string log_in(const std::string& password) {
    const auto answer = world_.call("POST", "/v1/login", login_body(password));
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto csrf = member(answer.body, "csrf");
    const auto cookie = answer.header("Set-Cookie");
    return fmt::format("Cookie: {}\r\nX-Pawl-CSRF: {}\r\n", cookie.substr(0, cookie.find(';')),
                       csrf.substr(1, csrf.size() - 2));
  }
  std::string make_token() {
    const auto made = world_.call("POST", "/v1/tokens", R"({"name":"test","role":"admin"})", browser_);
    EXPECT_EQ(made.status, 201) << made.body;
    const auto text = member(made.body, "token");
    return text.substr(1, text.size() - 2);
  }
  /// What `flow_cases` needs.
  std::vector<Case> prepared_flow_cases() {
    const auto ulid = world_.flows.start("parcel", "{}", {.id = "carried"}).value().run;
    const auto claimed = world_.call("POST", "/v1/flows/parcel/claim", R"({"wait":"10s"})", token_);
    EXPECT_EQ(claimed.status, 200) << claimed.body;
    world_.flows.start("parcel", R"({"grams":-1})", {.id = "held"}).value();
    world_.engine->wait_for("parcel", "held", {"closing"}, std::chrono::seconds(10)).value();
    return flow_cases(ulid, member(claimed.body, "lease"));
  }
  static AuthOptions three_failures() {
    AuthOptions made;
    made.cheap_passwords = true;
    made.failures = 3;  // auth_cases counts on it
    return made;
  }
  static ServerOptions options(std::vector<System*> systems, Auth* auth) {
    ServerOptions made;
    made.auth = auth;
    made.limits.body_bytes = 4096;
    made.systems = std::move(systems);
    return made;
  }
  static EngineOptions keeping_nothing() {
    EngineOptions made;
    made.keep = Duration(0);
    return made;
  }

  /// The described answer of an operation, and whether there is one.
  std::optional<JsonValue> response_of(const std::string& operation, int status) const {
    const auto paths = *document_->root().find("paths");
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (std::size_t j = 0; j < paths.at(i).size(); ++j) {
        const auto described = paths.at(i).at(j);
        if (described.find("operationId")->as_string() == operation) {
          return described.find("responses")->find(std::to_string(status));
        }
      }
    }
    return std::nullopt;
  }

  void run(const Case& wanted) {
    SCOPED_TRACE(fmt::format("{} {}", wanted.method, wanted.target));
    const auto answer = world_.call(wanted.method, wanted.target, wanted.body,
                                    wanted.headers + (wanted.with_token ? token_ : std::string()));
    ASSERT_EQ(answer.status, wanted.status) << answer.body;
    const auto described = response_of(wanted.operation, wanted.status);
    ASSERT_TRUE(described) << wanted.operation << " does not describe " << wanted.status;
    if (wanted.status == 204) return;
    const auto content = *described->find("content");
    const auto type = answer.header("Content-Type");
    EXPECT_EQ(type.substr(0, type.find(';')), content.key_at(0));
    const auto schema = content.at(0).find("schema");
    if (!schema) return;
    const auto body = JsonDocument::parse(answer.body);
    ASSERT_TRUE(body) << answer.body;
    EXPECT_EQ(Schema(document_->root()).check(*schema, body->root()), "") << answer.body;
  }

  Paged paged_;
  Parcels parcels_;
  std::unique_ptr<Auth> auth_;
  World world_;
  std::string browser_;
  std::string token_;
  std::string revocable_;
  std::string old_cursor_;
  std::string text_;
  std::optional<JsonDocument> document_;
};

TEST_F(OpenApi, EveryRouteAndEveryDocumentedRefusalIsWhatTheDocumentSays) {
  // It ends every login of the user, so it comes before the others that need one.
  run({"change_password", 200, "POST", "/v1/password",
       fmt::format(R"({{"old":"{0}","new":"{0}"}})", kLoginPassword), browser_, false});
  browser_ = log_in(kLoginPassword);
  std::set<std::string> exercised{"change_password 200"};
  auto cases = reading_cases(old_cursor_);
  for (auto& wanted : writing_cases()) cases.push_back(std::move(wanted));
  for (auto& wanted : prepared_flow_cases()) cases.push_back(std::move(wanted));
  for (auto& wanted : auth_cases(browser_, revocable_, auth_->make_login_code().value()))
    cases.push_back(std::move(wanted));
  for (const auto& wanted : cases) {
    run(wanted);
    exercised.insert(fmt::format("{} {}", wanted.operation, wanted.status));
  }
  std::set<std::string> documented;
  const auto paths = *document_->root().find("paths");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    for (std::size_t j = 0; j < paths.at(i).size(); ++j) {
      const auto operation = paths.at(i).at(j);
      const auto responses = *operation.find("responses");
      for (std::size_t k = 0; k < responses.size(); ++k) {
        const auto status = responses.key_at(k);
        // What the roles refuse is exercised for every route by the matrix of the auth tests.
        const bool by_role =
            (status == "401" || status == "403") && *operation.find("x-role")->as_string() != "anyone";
        if (status == "default" || by_role) continue;
        documented.insert(fmt::format("{} {}", *operation.find("operationId")->as_string(), status));
      }
    }
  }
  EXPECT_EQ(exercised, documented);
}

TEST_F(OpenApi, EveryReferenceLeadsSomewhere) {
  const auto schemas = *document_->root().find("components")->find("schemas");
  const std::string mark = "\"$ref\":\"#/components/schemas/";
  int count = 0;
  for (auto at = text_.find(mark); at != std::string::npos; at = text_.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const auto name = text_.substr(begin, text_.find('"', begin) - begin);
    EXPECT_TRUE(schemas.find(name)) << name;
    ++count;
  }
  EXPECT_GT(count, 20);
}

TEST_F(OpenApi, EveryParameterOfAPathIsDescribed) {
  const auto paths = *document_->root().find("paths");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto path = paths.key_at(i);
    const auto braces = static_cast<std::size_t>(std::ranges::count(path, '{'));
    const auto parameters = *paths.at(i).at(0).find("parameters");
    std::size_t described = 0;
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      described += parameters.at(j).find("in")->as_string() == "path" ? 1 : 0;
    }
    EXPECT_EQ(described, braces) << path;
  }
}

TEST(Schema, FindsWhatIsWrong) {
  const auto document = JsonDocument::parse(R"({"components":{"schemas":{"A":{"type":"object",
    "properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}})")
                            .value();
  const auto reference = JsonDocument::parse(R"({"$ref":"#/components/schemas/A"})").value();
  const auto check = [&](std::string_view text) {
    return Schema(document.root()).check(reference.root(), JsonDocument::parse(text).value().root());
  };
  EXPECT_EQ(check(R"({"n":1})"), "");
  EXPECT_EQ(check(R"({})"), "$: n is missing");
  EXPECT_EQ(check(R"({"n":"1"})"), "$.n: \"1\" is not \"integer\"");
  EXPECT_EQ(check(R"({"n":1,"m":2})"), "$: m is not in the schema");
  EXPECT_EQ(check(R"([])"), "$: [] is not \"object\"");
}

}  // namespace
}  // namespace pawl::test
