// SPDX-License-Identifier: Apache-2.0
// The OpenAPI document against the running server: every route and every documented refusal is exercised, and
// every answer is what its schema says.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

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

class Paged final : public System {
 public:
  std::string name() const override { return "paged"; }
  std::optional<Page> page() override {
    return Page{.title = "A page", .script = "export default () => {};\n"};
  }
};

class OpenApi : public testing::Test {
 protected:
  OpenApi() : world_(options(&paged_), keeping_nothing()) {
    old_cursor_ = world_.engine->subscribe("").value().cursor();
    world_.engine->create<door>("front").value();
    world_.engine->create<door>("gone").value();
    world_.engine->retain().value();
    text_ = world_.call("GET", "/v1/openapi.json").body;
    document_.emplace(JsonDocument::parse(text_).value());
  }

  static ServerOptions options(System* system) {
    ServerOptions made;
    made.limits.body_bytes = 4096;
    made.systems = {system};
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
    const auto answer = world_.call(wanted.method, wanted.target, wanted.body, wanted.headers);
    ASSERT_EQ(answer.status, wanted.status) << answer.body;
    const auto described = response_of(wanted.operation, wanted.status);
    ASSERT_TRUE(described) << wanted.operation << " does not describe " << wanted.status;
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
  World world_;
  std::string old_cursor_;
  std::string text_;
  std::optional<JsonDocument> document_;
};

TEST_F(OpenApi, EveryRouteAndEveryDocumentedRefusalIsWhatTheDocumentSays) {
  std::set<std::string> exercised;
  auto cases = reading_cases(old_cursor_);
  for (auto& wanted : writing_cases()) cases.push_back(std::move(wanted));
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
        if (status == "default" || status == "401" || status == "403") continue;  // the auth matrix has those
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
