// SPDX-License-Identifier: Apache-2.0
// Data that not everybody sees: one secret is put wherever data can be, and searched for in every answer.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "pawl/flow.hpp"
#include "tests/server/auth_world.hpp"
#include "workers/system.hpp"

namespace pawl::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kSecret = "s3cr3t-0f-th3-t3st";

enum class Vault { locked, emptied };
struct Deposit {
  Required<std::string> secret;
};
struct Empty {};
struct VaultData {
  std::string secret;
};
inline constexpr auto vault =
    machine<Vault, VaultData>("vault")
        .initial(Vault::locked)
        .stay<Deposit>(Vault::locked,
                       [](VaultData& data, const Deposit& deposit, Effects& effects) {
                         data.secret = *deposit.secret;
                         effects.work("use", deposit);
                         effects.set_timer("again", std::chrono::hours(1), deposit);
                       })
        .on<Empty>(Vault::locked, Vault::emptied)
        .terminal(Vault::emptied)
        .confidential();
static_assert(verified<vault>);

inline constexpr auto safe = machine<Vault, VaultData>("safe")
                                 .initial(Vault::locked)
                                 .on<Empty>(Vault::locked, Vault::emptied)
                                 .terminal(Vault::emptied)
                                 .confidential(Readers::admins);
static_assert(verified<safe>);

struct Letter {
  std::string text;
};

/// Machines and flows whose data not everybody sees.
class Vaults final : public System {
 public:
  std::string name() const override { return "vaults"; }
  void add_machines(Machines& machines) override {
    machines.add<vault>().add<safe>();
    machines.work<vault, Deposit>("use", [](const WorkContext&, const Deposit& deposit) -> Result<Reply> {
      return fail(Code::invalid_argument, fmt::format("{} does not fit", *deposit.secret));
    });
  }
  void add_flows(Flows& flows) override {
    flows.add(pawl::flow<Letter, Letter>("letter")
                  .start("write",
                         [](Step& step, const Letter& request, Letter& response) -> Outcome {
                           response.text = request.text;
                           step.progress(0.5, request.text);
                           return Outcome::unrecoverable(fmt::format("{} cannot be sent", request.text));
                         })
                  .undo([](Step&, const Letter& request, Letter&) -> Outcome {
                    return Outcome::unrecoverable(fmt::format("{} cannot be taken back", request.text));
                  })
                  .confidential()
                  .end());
    flows.add(pawl::flow<Letter, Letter>("diary").remote("write").confidential(Readers::admins).end());
  }
};

struct Systems {
  Systems() {
    for (const auto& setting : workers->settings()) {
      if (setting.name == "shim") {
        EXPECT_TRUE(setting.set(PAWL_SHIM));
      }
    }
  }
  std::unique_ptr<System> workers = workers::make_workers();
  Vaults vaults;
};

class Confidential : private Systems, public AuthTest {
 protected:
  Confidential() : AuthTest(cheap(), options(*this)) {
    const auto by = admin();
    viewer_ = bearer(token(by, "viewer"));
    operator_ = bearer(token(by, "operator"));
    admin_ = bearer(token(by, "admin"));
  }

  static ServerOptions options(Systems& systems) {
    ServerOptions made;
    made.systems = {systems.workers.get(), &systems.vaults};
    return made;
  }

  Answer get(std::string_view target, const std::string& who) { return world_.call("GET", target, "", who); }
  void post(std::string_view target, const std::string& body, const std::string& who, int status) {
    const auto answer = world_.call("POST", target, body, who);
    EXPECT_EQ(answer.status, status) << target << answer.body;
  }

  void plant_instances() {
    const auto data = fmt::format(R"({{"secret":"{}"}})", kSecret);
    post("/v1/instances/vault", fmt::format(R"({{"key":"north","data":{}}})", data), operator_, 201);
    post("/v1/instances/vault/north/events", fmt::format(R"({{"event":"Deposit","payload":{}}})", data),
         operator_, 200);
    world_.engine->put_ephemeral("vault", "north", "beside", data).value();
    post("/v1/flows/letter/runs?wait=10s", fmt::format(R"({{"id":"1","request":{{"text":"{}"}}}})", kSecret),
         operator_, 200);
    run_ = text_of(get("/v1/flows/letter/runs/1", admin_).body, "run");
  }

  void apply(std::string_view tree) {
    JsonWriter body;
    body.begin_object().key("yaml").string(tree).end_object();
    const auto applied = world_.call("PUT", "/v1/worker-tree", body.take().value(), admin_);
    ASSERT_EQ(applied.status, 200) << applied.body;
  }

  void plant_workers() {
    const std::string tree = fmt::format(R"(
variables:
  global: {{broker: {{password: "{0}"}}}}
children:
  - name: ticker
    workerType: process
    enabled: false
    userSpec:
      config:
        command: [/bin/sleep, "{0}"]
        environment: {{TOKEN: "{0}"}}
  - name: printer
    workerType: process
    userSpec:
      config:
        command: [/bin/sh, -c, 'echo "token: $TOKEN"; exit 3']
        environment: {{TOKEN: "{0}"}}
        restart: never
  - name: lock
    workerType: http_check
    userSpec:
      config:
        url: http://127.0.0.1:1/?again={0}
        expect_body: {0}
        unhealthy_after: 1
  - name: hall
    workerType: group
    children:
      - name: line
        workerType: group
        children:
          - name: broker
            workerType: mqtt_client
            userSpec: {{config: {{url: "mqtt://127.0.0.1:1", username: "{0}"}}}}
  - name: page
    workerType: http_check
    userSpec:
      config: |
        url: http://127.0.0.1:1/?p={{{{ .PASSWORD }}}}
        headers: {{authorization: "{0}"}}
        unhealthy_after: 1
      variables:
        user: {{PASSWORD: "{0}"}}
  - name: plant
    workerType: parent
    userSpec:
      config: |
        children_count: 1
        child_worker_type: tcp_check
        child_config: 'address: "{{{{ .global.broker.password }}}}"'
)",
                                         kSecret);
    apply(tree);
    // The address is refused, and one that is good refuses.
    wait_for("plant%2Fchild-0", "config_error");
    wait_for("page", "Unhealthy");
    wait_for("lock", "Unhealthy");
    wait_for("printer", "Exited");
    wait_for("printer/logs", kSecret);
    wait_for("hall%2Fline%2Fbroker", "TryingToConnect");
  }

  void wait_for(std::string_view worker, std::string_view word) {
    const auto target = fmt::format("/v1/workers/{}", worker);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!get(target, admin_).body.contains(word)) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << get(target, admin_).body;
      std::this_thread::yield();
    }
  }

  /// Everything in the log, up to an entry that is made for this.
  std::string log_as(const std::string& who) {
    Client client(world_.server->port());
    client.send(fmt::format("GET /v1/events?after=begin HTTP/1.1\r\nHost: localhost\r\n{}\r\n", who));
    client.read_until("\r\n\r\n");
    post("/v1/instances/door", fmt::format(R"({{"key":"end-{}"}})", ++ends_), operator_, 201);
    return client.read_until(fmt::format("\"key\":\"end-{}\"", ends_));
  }

  /// Every path of a route that takes GET, with what was planted in place of its parameters.
  std::vector<std::string> targets() {
    const std::map<std::string, std::vector<std::string>> values{
        {"machine",
         {"vault", "worker_process", "worker_http_check", "worker_parent", "worker_tcp_check", "worker_group",
          "worker_mqtt_client", "worker_application", "letter"}},
        {"key",
         {"north", "1", "ticker", "page", "plant", "plant%2Fchild-0", "printer", "lock", "hall",
          "hall%2Fline", "hall%2Fline%2Fbroker", top_key()}},
        {"path",
         {"ticker", "page", "plant", "plant%2Fchild-0", "printer", "lock", "hall", "hall%2Fline",
          "hall%2Fline%2Fbroker"}},
        {"flow", {"letter"}},
        {"id", {"1"}},
        {"run", {run_}},
        {"system", {"workers"}}};
    std::vector<std::string> found;
    const auto text = get("/v1/openapi.json", viewer_).body;
    const auto document = JsonDocument::parse(text).value();
    const auto paths = *document.root().find("paths");
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (!paths.at(i).find("get")) continue;
      std::vector<std::string> open{std::string(paths.key_at(i))};
      while (!open.empty()) {
        auto path = std::move(open.back());
        open.pop_back();
        const auto brace = path.find('{');
        if (brace == std::string::npos) {
          if (path != "/v1/events") found.push_back(std::move(path));  // which does not end; see log_as
          continue;
        }
        const auto end = path.find('}');
        for (const auto& value : values.at(path.substr(brace + 1, end - brace - 1)))
          open.push_back(path.substr(0, brace) + value + path.substr(end + 1));
      }
    }
    return found;
  }

  std::string top_key() {
    const auto listed = get("/v1/instances?machine=worker_application", admin_).body;
    const auto document = JsonDocument::parse(listed).value();
    return std::string(*document.root().find("instances")->at(0).find("key")->as_string());
  }

  std::string viewer_;
  std::string operator_;
  std::string admin_;
  std::string run_;
  int ends_ = 0;
};

TEST_F(Confidential, NoAnswerToAViewerHasTheSecretThatIsInEveryPlace) {
  plant_instances();
  plant_workers();
  for (const auto& target : targets()) {
    EXPECT_THAT(get(target, viewer_).body, Not(HasSubstr(kSecret))) << target;
  }
  EXPECT_THAT(log_as(viewer_), Not(HasSubstr(kSecret)));
}

TEST_F(Confidential, NoAnswerToAViewerHasASecretThatWasReplaced) {
  const auto tree = [](std::string_view secret) {
    return fmt::format(R"(
children:
  - name: page
    workerType: http_check
    userSpec:
      config: |
        url: http://127.0.0.1:1/{{{{ .PASSWORD }}}}
        unhealthy_after: 1
      variables:
        user: {{PASSWORD: "{}"}}
)",
                       secret);
  };
  apply(tree(kSecret));
  wait_for("page", "Unhealthy");
  post("/v1/workers/page/restart", fmt::format(R"({{"reason":"{} was read by others"}})", kSecret), operator_,
       200);
  wait_for("page", R"("incarnation":2)");
  apply(tree("another-one-0f-them"));
  wait_for("page", "another-one-0f-them");
  for (const auto* target : {"/v1/workers", "/v1/workers/page"})
    EXPECT_THAT(get(target, viewer_).body, Not(HasSubstr(kSecret))) << target;
  EXPECT_THAT(get("/v1/workers/page", viewer_).body,
              HasSubstr(R"j("event":"RestartAsked","state":"Unhealthy","action":"","reason":"(hidden)")j"));
  EXPECT_THAT(get("/v1/workers/page", operator_).body, HasSubstr(kSecret));
}

TEST_F(Confidential, OperatorsSeeItWhereverItWasPlanted) {
  plant_instances();
  plant_workers();
  for (const auto* target :
       {"/v1/instances/vault/north", "/v1/instances/vault/north/history",
        "/v1/instances/vault/north/ephemerals", "/v1/instances?machine=vault", "/v1/flows/letter/runs/1",
        "/v1/flows/letter/runs/1/wait", "/v1/flows/letter/runs/1/timeline", "/v1/runs",
        "/v1/instances/letter/1", "/v1/instances/worker_process/ticker", "/v1/worker-tree",
        "/v1/workers/page", "/v1/workers/plant%2Fchild-0", "/v1/workers/printer/logs", "/v1/workers/lock",
        "/v1/workers/hall%2Fline%2Fbroker", "/v1/instances/worker_application/history"}) {
    const std::string path = std::string_view(target).ends_with("application/history")
                                 ? fmt::format("/v1/instances/worker_application/{}/history", top_key())
                                 : std::string(target);
    EXPECT_THAT(get(path, operator_).body, HasSubstr(kSecret)) << path;
  }
  EXPECT_THAT(log_as(operator_), HasSubstr(kSecret));
}

TEST_F(Confidential, AMarkerStandsInItsPlaceSoThatListsStayUsable) {
  plant_instances();
  const auto instance = get("/v1/instances/vault/north", viewer_);
  EXPECT_EQ(member(instance.body, "data"), "\"(confidential)\"");
  EXPECT_EQ(member(instance.body, "redacted"), "true");
  EXPECT_EQ(member(instance.body, "state"), "\"locked\"");
  const auto run = get("/v1/flows/letter/runs/1", viewer_).body;
  EXPECT_EQ(member(run, "request"), "\"(confidential)\"");
  EXPECT_EQ(member(run, "error"), "\"(confidential)\"");
  EXPECT_EQ(member(run, "state"), "\"failed\"");
  // Not what a viewer has cached, once the same browser belongs to an operator.
  const auto again = get("/v1/instances/vault/north",
                         operator_ + fmt::format("If-None-Match: {}\r\n", instance.header("ETag")));
  EXPECT_EQ(again.status, 200);
}

TEST_F(Confidential, LiveEventsAreRedactedForTheReaderAloneWhoIsBelowTheRole) {
  const auto follow = [&](Client& client, const std::string& who) {
    client.send(fmt::format("GET /v1/events?machine=vault HTTP/1.1\r\nHost: localhost\r\n{}\r\n", who));
    client.read_until("\r\n\r\n");
    client.read_until("\n\n");
  };
  Client watching(world_.server->port());
  Client working(world_.server->port());
  follow(watching, viewer_);
  follow(working, operator_);
  plant_instances();
  EXPECT_THAT(watching.read_until("\n\n"),
              testing::AllOf(HasSubstr(R"j("data":"(confidential)")j"), HasSubstr(R"j("redacted":true)j"),
                             Not(HasSubstr(kSecret))));
  EXPECT_THAT(working.read_until("\n\n"), testing::AllOf(HasSubstr(kSecret), Not(HasSubstr("redacted"))));
}

TEST_F(Confidential, AnOperatorDoesNotReadBackWhatOnlyAdministratorsSee) {
  const auto body = fmt::format(R"({{"key":"north","data":{{"secret":"{}"}}}})", kSecret);
  const auto headers = operator_ + "Idempotency-Key: once\r\n";
  for (int i = 0; i < 2; ++i) {  // and not by repeating the request either
    const auto created = world_.call("POST", "/v1/instances/safe", body, headers);
    EXPECT_EQ(created.status, 201) << created.body;
    EXPECT_EQ(member(created.body, "data"), "\"(confidential)\"");
  }
  EXPECT_THAT(get("/v1/instances/safe/north", operator_).body, Not(HasSubstr(kSecret)));
  EXPECT_THAT(get("/v1/instances/safe/north", admin_).body, HasSubstr(kSecret));
}

TEST_F(Confidential, AClaimNeedsTheRoleThatSeesTheRequest) {
  post("/v1/flows/diary/runs", fmt::format(R"({{"id":"1","request":{{"text":"{}"}}}})", kSecret), admin_,
       201);
  const auto refused = world_.call("POST", "/v1/flows/diary/claim", R"({"wait":"10s"})", operator_);
  world_.expect_problem(refused, 403, "forbidden");
  EXPECT_THAT(world_.call("POST", "/v1/flows/diary/claim", R"({"wait":"10s"})", admin_).body,
              HasSubstr(kSecret));
}

TEST_F(Confidential, HashesOfPasswordsAndTokensAreShownToNobody) {
  for (const auto& who : {viewer_, operator_, admin_}) {
    EXPECT_THAT(log_as(who), testing::AllOf(Not(HasSubstr("argon2")), Not(HasSubstr("pawl_"))));
    for (const auto* target : {"/v1/instances", "/v1/instances?prefix=a", "/v1/timers", "/v1/machines",
                               "/v1/users", "/v1/tokens", "/v1/me", "/v1/stats"}) {
      EXPECT_THAT(get(target, who).body, testing::AllOf(Not(HasSubstr("argon2")), Not(HasSubstr("\"hash\""))))
          << target;
    }
    for (const auto* machine : {"pawl_user", "pawl_token"}) {
      for (const auto* below : {"", "/history", "/ephemerals"}) {
        const auto target = fmt::format("/v1/instances/{}/admin{}", machine, below);
        world_.expect_problem(get(target, who), 404, "unknown_machine");
      }
    }
  }
}

}  // namespace
}  // namespace pawl::test
