// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document against the running server: every route and every documented refusal is exercised, and
// every answer is what its schema says.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

#include "images/system.hpp"
#include "tests/server/openapi_cases.hpp"
#include "tests/server/parcels.hpp"
#include "tests/server/world.hpp"
#include "workers/system.hpp"

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

class Paged final : public System {
 public:
  std::string name() const override { return "paged"; }
  std::optional<Page> page() override {
    return Page{.title = "A page", .script = "export default () => {};\n"};
  }
};

/// An image of which the system knows, and nothing is there.
const char* const kKnownImage =
    "INSERT INTO images VALUES('known', 'b', 'k', '', '', '', 0, 'completed', 'inactive', '', '', '', '')";

class OpenApi : public testing::Test {
 protected:
  OpenApi()
      : auth_(make_auth(three_failures())),
        world_(options({&paged_, &parcels_, images_.get(), workers_.get()}, auth_.get()), keeping_nothing()) {
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
    world_.engine->commit(Transaction{}.create<door>("with image").sql({.text = kKnownImage})).value();
    world_.engine->retain().value();
    std::filesystem::create_directory(world_.place / "backups");
    std::ofstream(world_.place / "backups" / "there.db") << "another backup";
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
    const auto ulid = world_.flows.start("parcel", "{}", {.id = "carried"}).value().ulid;
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
    std::optional<JsonValue> found;
    for_each_operation([&](std::string_view, std::string_view, JsonValue described) {
      if (described.find("operationId")->as_string() != operation) return;
      found = described.find("responses")->find(std::to_string(status));
    });
    return found;
  }

  /// "operation 200" and "operation code", but for what the roles refuse, which the matrix of the auth tests
  /// exercises for every route, and what the limits of connections refuse wherever a role is needed
  /// (quota_test.cpp).
  std::set<std::string> documented() const {
    std::set<std::string> all;
    for_each_operation([&](std::string_view, std::string_view, JsonValue operation) {
      const auto id = *operation.find("operationId")->as_string();
      const auto responses = *operation.find("responses");
      for (std::size_t k = 0; k < responses.size(); ++k) {
        const auto status = responses.key_at(k);
        const bool needs_role = *operation.find("x-role")->as_string() != "anyone";
        const bool by_role = needs_role && (status == "401" || status == "403");
        if (status == "default" || by_role) continue;
        const auto codes = responses.at(k).find("x-codes");
        if (!codes) all.insert(fmt::format("{} {}", id, status));
        for (std::size_t c = 0; codes && c < codes->size(); ++c) {
          const auto code = *codes->at(c).as_string();
          const bool by_limit = needs_role && (code == "overloaded" || code == "rate_limited");
          if (!by_limit) all.insert(fmt::format("{} {}", id, code));
        }
      }
    });
    return all;
  }

  template <class Visit>
  void for_each_operation(Visit visit) const {
    const auto paths = *document_->root().find("paths");
    for (std::size_t i = 0; i < paths.size(); ++i) {
      for (std::size_t j = 0; j < paths.at(i).size(); ++j) {
        visit(paths.key_at(i), paths.at(i).key_at(j), paths.at(i).at(j));
      }
    }
  }

  /// What any route refuses that has a body or parameters, at the target of its first case.
  void general_refusals(const std::vector<Case>& given, std::vector<Case>& made) const {
    for_each_operation([&](std::string_view, std::string_view method, JsonValue operation) {
      const std::string id(*operation.find("operationId")->as_string());
      const auto like = std::ranges::find(given, id, &Case::operation);
      if (like == given.end()) return;
      Case wanted = *like;
      wanted.headers = wanted.with_token ? "" : wanted.headers;
      const auto refuse = [&](int status, std::string body, const std::string& headers = {}) {
        made.push_back(wanted);
        made.back().status = status;
        made.back().body = std::move(body);
        made.back().headers += headers;
      };
      if (operation.find("requestBody")) {
        refuse(400, "{");
        refuse(400, "[]");
        refuse(400, R"({"no_such_field":1})");
        refuse(413, R"({"large":")" + std::string(5000, 'x') + "\"}");
        refuse(415, "{}", "Content-Type: text/plain\r\n");
      }
      if (method != "get" && *operation.find("x-role")->as_string() == "anyone") {
        refuse(403, wanted.body, "Sec-Fetch-Site: cross-site\r\n");
      }
      if (has_query(operation)) {
        wanted.target += wanted.target.find('?') == std::string::npos ? "?no_such=1" : "&no_such=1";
        refuse(400, wanted.body);
      }
    });
  }
  static bool has_query(JsonValue operation) {
    const auto parameters = operation.find("parameters");
    for (std::size_t i = 0; parameters && i < parameters->size(); ++i) {
      if (parameters->at(i).find("in")->as_string() == "query") return true;
    }
    return false;
  }

  void run(const Case& wanted) {
    SCOPED_TRACE(fmt::format("{} {}", wanted.method, wanted.target));
    const auto answer = world_.call(wanted.method, wanted.target, wanted.body,
                                    wanted.headers + (wanted.with_token ? token_ : std::string()));
    ASSERT_EQ(answer.status, wanted.status) << answer.body;
    const auto described = response_of(wanted.operation, wanted.status);
    ASSERT_TRUE(described) << wanted.operation << " does not describe " << wanted.status;
    auto code = wanted.status < 300 ? std::to_string(wanted.status) : member(answer.body, "code");
    std::erase(code, '"');
    exercised_.insert(fmt::format("{} {}", wanted.operation, code));
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
  std::unique_ptr<System> images_ = images::make_images();
  std::unique_ptr<System> workers_ = workers::make_workers();
  std::unique_ptr<Auth> auth_;
  World world_;
  std::string browser_;
  std::string token_;
  std::string revocable_;
  std::string old_cursor_;
  std::string text_;
  std::optional<JsonDocument> document_;
  std::set<std::string> exercised_;
};

/// What is documented and cannot be brought about here, and why.
const std::set<std::string> kElsewhere{
    // A disk that fails. A second one while the first is written is refused, too (overloaded).
    "start_backup store_io",
    // Devices that fail, and runs that are under way for something else: tests/images.
    "images_pool backend_unavailable",
    "images_pool volume_failed",
    "images_garbage backend_unavailable",
    "images_garbage volume_failed",
    "images_garbage store_io",
    "images_setup_pool backend_unavailable",
    "images_setup_pool volume_failed",
    "images_detach_pool volume_busy",
    "images_detach_pool backend_unavailable",
    "images_detach_pool volume_failed",
    "images_process volume_busy",
    "images_activate volume_busy",
    "images_activate volume_exists",
    "images_deactivate volume_busy",
    // A run that has ended begins anew with it.
    "retry_run finished_instance",
    // Processes need the shim: tests/workers.
    "workers_logs 200",
    "workers_logs process_failed",
    // The YAML is refused as a whole (spec_invalid) before that.
    "workers_apply unknown_worker_type",
};

TEST_F(OpenApi, EveryRouteAndEveryDocumentedRefusalIsWhatTheDocumentSays) {
  // It ends every login of the user, so it comes before the others that need one.
  run({"change_password", 200, "POST", "/v1/password",
       fmt::format(R"({{"old":"{0}","new":"{0}"}})", kLoginPassword), browser_, false});
  browser_ = log_in(kLoginPassword);
  auto cases = reading_cases(old_cursor_);
  const auto add = [&](const std::vector<Case>& more) {
    cases.insert(cases.end(), more.begin(), more.end());
  };
  add(writing_cases());
  add(prepared_flow_cases());
  auto of_systems = image_cases();
  for (auto& wanted : worker_cases()) of_systems.push_back(std::move(wanted));
  const auto of_auth = auth_cases(browser_, revocable_, auth_->make_login_code().value());
  std::vector<Case> general;
  general_refusals(cases, general);
  general_refusals(of_systems, general);
  general_refusals(of_auth, general);
  add(general);  // before the systems remove what these name
  add(of_systems);
  add(of_auth);  // last, because it ends with a locked out address
  for (const auto& wanted : cases) run(wanted);
  exercised_.insert(kElsewhere.begin(), kElsewhere.end());
  const auto wanted = documented();
  std::vector<std::string> difference;  // all of it: GoogleTest would cut the sets short
  std::ranges::set_symmetric_difference(exercised_, wanted, std::back_inserter(difference));
  EXPECT_THAT(difference, testing::IsEmpty()) << fmt::format("{}", fmt::join(difference, "\n"));
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
