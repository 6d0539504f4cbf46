// SPDX-License-Identifier: Apache-2.0
// The program crashes at every place where it can, once in each run; the outside must not notice.
#include <gtest/gtest.h>

#include "tests/supervise/lab.hpp"

using namespace std::chrono_literals;

namespace pawl::test {
namespace {

/// One run: a parent with a child is made, the child parked, the configuration changed, and the child run
/// again. Every step may be repeated.
class CrashedRun {
 public:
  explicit CrashedRun(std::uint64_t crash_at) : world_(options(crash_at)) {}

  /// Everything that a run leaves, as text; or what is wrong.
  std::string result() {
    world_.site("p/c1").fails = 1;
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

  Result<void> reach(std::string_view what, const std::function<bool()>& holds) {
    const bool came = world_.kit.wait_until([&] { return world_.kit.process().crashed() || holds(); }, 2min);
    if (came) return {};
    return fail(Code::internal, std::string(what) + " was not reached");
  }

  Result<void> drive(Supervisor& supervisor) {
    auto is = [this](std::string_view path, std::string_view state) {
      return [this, path, state] { return world_.kit.state(path) == state; };
    };
    if (step_ == 0) {
      PAWL_CHECK(supervisor.apply({.children = {lift("p", R"({"children": 1})")}}));
      PAWL_CHECK(reach("a tree that is up", is("p", "Up")));
      if (world_.kit.process().crashed()) return {};
      step_ = 1;
    }
    if (step_ == 1) {
      PAWL_CHECK(supervisor.park("p/c1"));
      PAWL_CHECK(reach("a parked child", is("p/c1", "Down")));
      if (world_.kit.process().crashed()) return {};
      step_ = 2;
    }
    if (step_ == 2) {
      PAWL_CHECK(supervisor.apply({.children = {lift("p", R"({"level": 2, "children": 1})")}}));
      PAWL_CHECK(reach("another level", [this] { return world_.site("p").level == 2; }));
      PAWL_CHECK(reach("a parent that knows of it", is("p", "Sagging")));
      if (world_.kit.process().crashed()) return {};
      step_ = 3;
    }
    PAWL_CHECK(supervisor.run("p/c1"));
    return reach("everything up", is("p", "Up"));
  }

  std::string describe() {
    std::string text;
    for (const auto& view : world_.supervisor().tree()) {
      text += view.identity.path + " " + view.state + " v" + std::to_string(view.desired_version) + " " +
              view.action + "\n";
      const auto orders = order_problem(view.identity.path);
      if (!orders.empty()) text += orders + "\n";
    }
    for (const auto& [path, site] : world_.lab.sites) {
      text += path + " at " + std::to_string(site.level) + ", at once " + std::to_string(site.most_raising) +
              "\n";
    }
    return text;
  }

  /// Whether an order was lost, or given while there was one.
  std::string order_problem(const std::string& path) {
    const auto history = world_.kit.engine().history("worker_lift", path, 0, 10'000).value();
    bool open = false;
    for (auto event = history.events.rbegin(); event != history.events.rend(); ++event) {
      if (event->event == "Ordered" && std::exchange(open, true)) return path + " has two orders at once";
      if (event->event == "Ended" && !std::exchange(open, false))
        return path + " has an end without an order";
      if (event->event == "Restarted") open = false;
    }
    return open ? path + " has an order that never ended" : "";
  }

  LiftWorld world_;
  int step_ = 0;
};

TEST(CrashEverywhere, LeavesTheSameBehind) {
  CrashedRun undisturbed(0);
  const auto expected = undisturbed.result();
  ASSERT_NE(expected.find("p Up v2 \n"), std::string::npos) << expected;
  ASSERT_NE(expected.find("p/c1 at 1, at once 1\n"), std::string::npos) << expected;
  const auto places = undisturbed.places();
  ASSERT_GE(places, 50U);
  int different = 0;
  for (std::uint64_t place = 1; place <= places && different < 3; ++place) {
    CrashedRun crashed(place);
    const auto result = crashed.result();
    EXPECT_EQ(result, expected) << "crashed at place " << place;
    different += result == expected ? 0 : 1;
  }
}

}  // namespace
}  // namespace pawl::test
