// SPDX-License-Identifier: Apache-2.0
#include "workers/scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "pawl/supervisor_kit.hpp"
#include "workers/config/tree.hpp"
#include "workers/config/yaml.hpp"
#include "workers/types/all.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

/// The environment of a scenario: links that can be cut and a file that can be written.
struct Environment {
  std::map<std::string, std::shared_ptr<ExampleLink>, std::less<>> links{};
  std::string mood = "happy";
};

TypeServices services_in(Runtime& runtime, Environment& environment) {
  TypeServices services;
  services.wait = [&runtime](Duration time, const std::stop_token& stop) {
    // In small steps: a stop does not wake a simulated job.
    for (Duration passed{}; passed < time && !stop.stop_requested(); passed += 100ms) {
      Gate never_opens;
      runtime.wait(never_opens, 100ms);
    }
    return !stop.stop_requested();
  };
  services.read_file = [&environment](const std::string&) -> Result<std::optional<std::string>> {
    return environment.mood;
  };
  services.make_link = [&environment](const WorkerIdentity& who) {
    return environment.links[who.path] = std::make_shared<ExampleLink>();
  };
  return services;
}

/// One run of a scenario.
class ScenarioRun {
 public:
  explicit ScenarioRun(const std::function<void(const std::string&)>& print)
      : print_(print),
        kit_(
            [this](Runtime& runtime) {
              WorkerTypes types;
              add_worker_types(types, services_in(runtime, environment_));
              return types;
            },
            {.supervisor = {.read_config = read_yaml,
                            .trace = [this](const TraceEntry& entry) { tell(entry); }}}) {}

  Environment& environment() { return environment_; }

  void apply(std::string_view yaml) {
    say("apply");
    const auto tree = read_tree(yaml, "scenario", &kit_.supervisor().types());
    const auto applied = tree ? kit_.supervisor().apply(*tree) : Result<std::int64_t>(fail(tree.error()));
    if (!applied) expect(false, applied.error().to_string());
  }
  void expect_state(std::string_view path, std::string_view state) {
    expect(kit_.wait_for(path, state), fmt::format("{} is {}", path, state));
  }
  void expect(bool holds, std::string_view what) {
    say(fmt::format("{}: {}", holds ? "as expected" : "NOT AS EXPECTED", what));
    good_ = good_ && holds;
  }
  void pass(Duration time) { kit_.advance(time); }
  SupervisorKit& kit() { return kit_; }
  void say(std::string_view text) { print_(fmt::format("{:>9} -- {}", time_text(), text)); }

  /// Everything is removed in the end, children before their parents.
  bool finish() {
    say("remove everything");
    if (!kit_.supervisor().apply({})) good_ = false;
    expect(kit_.wait_until([this] { return kit_.supervisor().tree().empty(); }), "nothing is left");
    return good_;
  }

 private:
  std::string time_text() { return fmt::format("{:.3f}s", std::chrono::duration<double>(elapsed()).count()); }
  Duration elapsed() { return playing_ ? kit_.simulation().elapsed() : Duration{}; }

  void tell(const TraceEntry& entry) {
    playing_ = true;
    if (entry.result.starts_with("stay") || entry.type == "application") return;
    // What is put off is decided again and again; once is enough to read.
    const auto line = entry.state + " " + entry.result;
    if (std::exchange(last_[entry.path], line) == line) return;
    print_(fmt::format("{:>9}  {:<16} {:<16} {}", time_text(), entry.path, entry.state, entry.result));
  }

  const std::function<void(const std::string&)>& print_;
  Environment environment_;
  bool good_ = true;
  bool playing_ = false;
  std::map<std::string, std::string> last_;  // what was told of each worker
  SupervisorKit kit_;
};

void play_simple(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - name: plant
    workerType: parent
    userSpec:
      config: |
        children_count: 2
        child_worker_type: child
        child_config: 'address: "{{ .IP }}"'
      variables: {user: {IP: 10.0.0.7}}
)yaml");
  run.expect_state("plant", "Running");
  run.expect_state("plant/child-1", "Connected");
}

void play_failing(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - name: flaky
    workerType: failing
    userSpec: {config: {should_fail: true, max_failures: 3, failure_cycles: 2}}
)yaml");
  run.expect_state("flaky", "Connected");
  run.expect_state("flaky", "TryingToConnect");
  run.expect_state("flaky", "Connected");
}

void play_panic(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - {name: wild, workerType: panic, userSpec: {config: {should_panic: true}}}
  - {name: calm, workerType: child}
)yaml");
  run.expect_state("calm", "Connected");
  const auto thrown = [&] { return run.kit().supervisor().stats().exceptions >= 2; };
  run.expect(run.kit().wait_until(thrown), "wild throws, and is contained");
  run.expect(run.kit().state("calm") == "Connected", "calm is not disturbed");
}

void play_slow(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - {name: snail, workerType: slow, userSpec: {config: {delay_seconds: 20}}}
  - {name: hare, workerType: child}
)yaml");
  run.expect_state("hare", "Connected");
  run.expect(run.kit().state("snail") == "TryingToConnect", "snail has not held it up");
  run.expect_state("snail", "Connected");
}

void play_cascade(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - name: plant
    workerType: parent
    userSpec:
      config: |
        children_count: 2
        child_worker_type: failing
        child_config: '{should_fail: true, max_failures: 2, failure_cycles: 2}'
)yaml");
  run.expect_state("plant", "Running");
  run.expect_state("plant", "Degraded");
  run.expect_state("plant", "Running");
}

void play_helloworld(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - {name: hello, workerType: helloworld, userSpec: {config: {mood_file: /run/mood}}}
)yaml");
  run.expect_state("hello", "Running");
  run.say("the file says: sad");
  run.environment().mood = "sad";
  run.expect_state("hello", "Degraded");
  run.say("the file says: happy");
  run.environment().mood = "happy";
  run.expect_state("hello", "Running");
}

void play_concurrent(ScenarioRun& run) {
  run.apply(R"yaml(
children:
  - name: fleet
    workerType: parent
    userSpec: {config: {children_count: 50, child_worker_type: child}}
)yaml");
  run.expect_state("fleet", "Running");
  const auto shown = run.kit().supervisor().show("fleet");
  run.expect(shown && shown->children_healthy == 50, "50 of 50 children are healthy");
}

struct Scenario {
  std::string_view name;
  void (*play)(ScenarioRun& run);
};
constexpr std::array kScenarios{
    Scenario{"simple", play_simple},        Scenario{"failing", play_failing},
    Scenario{"panic", play_panic},          Scenario{"slow", play_slow},
    Scenario{"cascade", play_cascade},      Scenario{"helloworld", play_helloworld},
    Scenario{"concurrent", play_concurrent}};

}  // namespace

std::string scenario_names() {
  std::vector<std::string_view> names;
  for (const auto& scenario : kScenarios) names.push_back(scenario.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<bool> play_scenario(std::string_view name, const std::function<void(const std::string&)>& print) {
  for (const auto& scenario : kScenarios) {
    if (scenario.name != name) continue;
    ScenarioRun run(print);
    scenario.play(run);
    return run.finish();
  }
  return fail(Code::unknown_name,
              fmt::format("there is no scenario \"{}\"; known: {}", name.substr(0, 64), scenario_names()));
}

}  // namespace pawl::workers
