// SPDX-License-Identifier: Apache-2.0
// The program crashes at every place where it can, once in each run; the outside must not notice, and nothing
// that was durable may be lost.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

/// Three levels, each of which follows the states of the one above it.
std::string three_levels(int level) {
  const std::string mapping =
      R"({"Down": "park", "TryingToLower": "park", "TryingToRise": "run", "Up": "run", "Sagging": "run"})";
  std::string quoted;
  for (const char c : mapping) quoted += c == '"' ? "\\\"" : std::string(1, c);
  return fmt::format(
      R"({{"level": {}, "children": 1, "child_mapping": {},
           "child_config": "{{\"children\": 1, \"child_mapping\": {}}}"}})",
      level, mapping, quoted);
}

/// One run: a tree of three levels is made, its leaf parked, its top changed, its middle restarted, one
/// worker gets another type, one is removed with its child, and the leaf runs again. A call whose success was
/// seen is not repeated: what it asked for must survive by itself.
class CrashedRun {
 public:
  explicit CrashedRun(std::uint64_t crash_at)
      : world_(options(crash_at), [](WorkerTypes& types, Lab& lab, Runtime& runtime) {
          types.add(lift_type(lab, runtime, "crane"));
        }) {}

  /// Everything that a run leaves, as text; or what is wrong.
  std::string result() {
    world_.site("p/c1/c1").fails = 1;
    const auto driven = world_.kit.survive([this](Supervisor& supervisor) { return drive(supervisor); });
    if (!driven) return "did not come to an end: " + driven.error().to_string();
    return describe();
  }
  std::uint64_t places() { return world_.kit.simulation().hits(); }

 private:
  static SupervisorKitOptions options(std::uint64_t crash_at) {
    auto made = exact();
    made.simulation.crash_at = crash_at;
    made.supervisor.backoff.first = 200ms;
    return made;
  }

  /// A step whose end was seen is not taken again.
  Result<void> step(int number, const std::function<Result<void>()>& take) {
    if (step_ != number || world_.kit.process().crashed()) return {};
    PAWL_CHECK(take());
    if (world_.kit.process().crashed()) return {};
    remember();
    ++step_;
    return {};
  }
  std::function<Result<void>()> reach(std::string_view what, std::function<bool()> holds) {
    return [this, what, holds = std::move(holds)]() -> Result<void> {
      const bool came =
          world_.kit.wait_until([&] { return world_.kit.process().crashed() || holds(); }, 2min);
      if (came) return {};
      return fail(Code::internal, fmt::format("{} was not reached", what));
    };
  }
  std::function<bool()> is(std::string_view path, std::string_view state) {
    return [this, path, state] { return world_.kit.state(path) == state; };
  }

  Result<void> drive(Supervisor& supervisor) {
    auto crane = lift("q");
    crane.worker_type = "crane";
    const auto apply = [&supervisor](std::vector<ChildSpec> children) {
      return [&supervisor, children = std::move(children)]() -> Result<void> {
        PAWL_CHECK(supervisor.apply({.children = children}));
        return {};
      };
    };
    const auto removed = lift("r", R"({"children": 1})");
    const auto restart = [&]() -> Result<void> {
      const auto now = world_.show("p/c1");
      if (now.restarting || now.incarnation > 1) return {};  // it was cut off after it was durable
      return supervisor.restart("p/c1", "somebody asked");
    };
    const auto all_up = [this] {
      return std::ranges::all_of(std::vector{"p", "p/c1", "p/c1/c1", "q"},
                                 [this](const auto* path) { return world_.kit.state(path) == "Up"; });
    };
    int number = 0;
    PAWL_CHECK(step(number++, apply({lift("p", three_levels(1)), lift("q"), removed})));
    PAWL_CHECK(step(number++, reach("a tree that is up", all_up)));
    PAWL_CHECK(step(number++, reach("one to be removed", is("r", "Up"))));
    PAWL_CHECK(step(number++, [&] { return supervisor.park("p/c1/c1"); }));
    PAWL_CHECK(step(number++, reach("a parked leaf", is("p/c1/c1", "Down"))));
    PAWL_CHECK(step(number++, apply({lift("p", three_levels(2)), lift("q"), removed})));
    PAWL_CHECK(step(number++, reach("another level", [this] { return world_.site("p").level == 2; })));
    PAWL_CHECK(step(number++, restart));
    PAWL_CHECK(
        step(number++, reach("a fresh middle", [this] { return world_.show("p/c1").incarnation == 2; })));
    PAWL_CHECK(step(number++, apply({lift("p", three_levels(2)), crane, removed})));
    PAWL_CHECK(step(number++, reach("another type", [this] {
                      const auto now = world_.show("q");
                      return now.identity.type == "crane" && now.state == "Up";
                    })));
    PAWL_CHECK(step(number++, apply({lift("p", three_levels(2)), crane})));
    PAWL_CHECK(step(number++, reach("a removal", [this] {
                      return world_.kit.state("r").empty() && world_.kit.state("r/c1").empty();
                    })));
    PAWL_CHECK(step(number++, reach("a parked leaf still", is("p/c1/c1", "Down"))));
    PAWL_CHECK(step(number++, [&] { return supervisor.run("p/c1/c1"); }));
    return step(number, reach("everything up", all_up));
  }

  /// Who a worker is never changes, whatever happens in between.
  void remember() {
    for (const auto& view : world_.supervisor().tree()) {
      const auto& who = view.identity;
      const auto text = fmt::format("{} below {}, made at {}", who.name, who.parent,
                                    who.created_at.time_since_epoch().count());
      const auto [known, first] = identities_.emplace(who.path + " " + who.type, text);
      if (!first && known->second != text) problems_.push_back(who.path + " is another one now");
    }
  }

  std::string describe() {
    std::string text;
    for (const auto& view : world_.supervisor().tree()) {
      const auto& who = view.identity;
      const auto stored = world_.kit.engine().read("worker_" + who.type, who.path).value();
      const auto data = decode<WorkerData>(stored.data).value();
      text += fmt::format(
          "{} {} below {}: {} v{} intent {} asked {} mapped {} enabled {} incarnation {} "
          "generation {} action '{}' by {} with {}\n",
          who.path, who.type, data.parent, view.state, data.desired_version, static_cast<int>(view.intent),
          data.asked ? static_cast<int>(*data.asked) : -1, data.mapped ? static_cast<int>(*data.mapped) : -1,
          data.enabled, data.incarnation, stored.generation, view.action, fmt::join(data.state_mapping, ","),
          data.spec.config);
    }
    const std::vector<std::pair<const char*, const char*>> all{
        {"worker_lift", "p"},  {"worker_lift", "p/c1"}, {"worker_lift", "p/c1/c1"}, {"worker_lift", "q"},
        {"worker_crane", "q"}, {"worker_lift", "r"},    {"worker_lift", "r/c1"}};
    for (const auto& [machine, path] : all) text += order_problem(machine, path);
    for (const auto& [path, site] : world_.lab.sites) {
      text += fmt::format("{} at {}, at once {}\n", path, site.level, site.most_raising);
    }
    return text + fmt::format("{}", fmt::join(problems_, "\n"));
  }

  /// Whether an order was lost, or given while there was one.
  std::string order_problem(const std::string& machine, const std::string& path) {
    const auto history = world_.kit.engine().history(machine, path, 0, 10'000).value();
    bool open = false;
    for (auto event = history.events.rbegin(); event != history.events.rend(); ++event) {
      if (event->event == "Ordered" && std::exchange(open, true)) return path + " has two orders at once\n";
      if (event->event == "Ended" && !std::exchange(open, false))
        return path + " has an end without an order\n";
      if (event->event == "Restarted") open = false;
    }
    return open ? path + " has an order that never ended\n" : "";
  }

  LiftWorld world_;
  int step_ = 0;
  std::map<std::string, std::string> identities_;
  std::vector<std::string> problems_;
};

constexpr int kParts = 4;  // so that several processors can share the work

class CrashEverywhere : public testing::TestWithParam<int> {};

TEST_P(CrashEverywhere, LeavesTheSameBehind) {
  CrashedRun undisturbed(0);
  const auto expected = undisturbed.result();
  ASSERT_NE(expected.find("p lift below (top): Up v2 "), std::string::npos) << expected;
  ASSERT_NE(expected.find("p/c1 lift below p: Up v1 intent 0 asked -1 mapped 0 "), std::string::npos)
      << expected;
  ASSERT_NE(expected.find("p/c1/c1 lift below p/c1: Up v1 intent 0 asked 0 mapped 0 "), std::string::npos)
      << expected;
  ASSERT_NE(expected.find("p/c1/c1 at 1, at once 1\n"), std::string::npos) << expected;
  ASSERT_NE(expected.find("r/c1 at 0, at once 1\n"), std::string::npos) << expected;
  const auto places = undisturbed.places();
  ASSERT_GE(places, 100U);
  int different = 0;
  for (auto place = static_cast<std::uint64_t>(GetParam()) + 1; place <= places && different < 3;
       place += kParts) {
    CrashedRun crashed(place);
    const auto result = crashed.result();
    EXPECT_EQ(result, expected) << "crashed at place " << place;
    different += result == expected ? 0 : 1;
  }
}

INSTANTIATE_TEST_SUITE_P(Parts, CrashEverywhere, testing::Range(0, kParts));

}  // namespace
}  // namespace pawl::test
