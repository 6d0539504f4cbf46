// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "pawl/codec.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/child.hpp"
#include "workers/types/failing.hpp"
#include "workers/types/group.hpp"
#include "workers/types/helloworld.hpp"
#include "workers/types/panic.hpp"
#include "workers/types/parent.hpp"
#include "workers/types/slow.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

ChildView child_in(Phase phase, bool fresh = true) {
  return {.name = "child-0", .type = "child", .state = "Any", .reason = "", .phase = phase, .fresh = fresh};
}

TEST(ChildWorker, ConnectsConnectsAgainAfterALossAndDisconnectsBeforeItRests) {
  Table<Child> table;
  EXPECT_EQ(table.next<Child::Stopped>({}, {}), "go TryingToConnect");
  EXPECT_EQ(table.next<Child::TryingToConnect>({.connected = false}, {}), "do Connect");
  EXPECT_EQ(table.next<Child::TryingToConnect>({.connected = true}, {}), "go Connected");
  EXPECT_EQ(table.next<Child::Connected>({.connected = true}, {}), "stay");
  EXPECT_EQ(table.next<Child::Connected>({.connected = false}, {}), "go Disconnected");
  EXPECT_EQ(table.next<Child::Disconnected>({}, {}), "go TryingToConnect");
  EXPECT_EQ(table.next<Child::TryingToStop>({.connected = true}, {}), "do Disconnect");
  EXPECT_EQ(table.next<Child::TryingToStop>({.connected = false}, {}), "go Stopped");
  EXPECT_EQ(table.stop<Child::TryingToConnect>({}, {}), "go TryingToStop");
  EXPECT_EQ(table.stop<Child::Connected>({}, {}), "go TryingToStop");
  EXPECT_EQ(table.stop<Child::Disconnected>({}, {}), "go TryingToStop");
  EXPECT_EQ(table.never_given(), "");
}

TEST(ChildWorker, ObservesTheLinkThatItsActionsSet) {
  ChildTools tools{.link = std::make_shared<ExampleLink>()};
  const auto connected = [&] { return Child::collect(tools, {}, collect_context({})).value().connected; };
  EXPECT_FALSE(connected());
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(Child::Connect::run(tools, {}, action_context()));
  EXPECT_TRUE(connected());
  tools.link->connected = false;
  EXPECT_FALSE(connected());
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(Child::Disconnect::run(tools, {}, action_context()));
  EXPECT_FALSE(connected());
}

TEST(ChildWorker, DoesNotConnectAfterTheStop) {
  ChildTools tools{.link = std::make_shared<ExampleLink>()};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(Child::Connect::run(tools, {}, action_context(stop.get_token())).error().code(), Code::cancelled);
  EXPECT_FALSE(tools.link->connected);
}

TEST(ParentWorker, IsAsHealthyAsItsChildrenAndRestsAfterThem) {
  Table<Parent> table;
  const ParentDesired two{.children_count = 2};
  const Given none{};
  const Given half{.children = {child_in(Phase::running), child_in(Phase::starting)}};
  const Given stale{.children = {child_in(Phase::running), child_in(Phase::running, false)}};
  const Given all{.children = {child_in(Phase::running), child_in(Phase::running)}};
  const Given at_rest{.children = {child_in(Phase::stopped), child_in(Phase::stopped)}};
  EXPECT_EQ(table.next<Parent::Stopped>({}, two, none), "go TryingToStart");
  EXPECT_EQ(table.next<Parent::TryingToStart>({.started = false}, two, all), "do Start");
  EXPECT_EQ(table.next<Parent::TryingToStart>({.started = true}, two, none), "stay");
  EXPECT_EQ(table.next<Parent::TryingToStart>({.started = true}, two, half), "stay");
  EXPECT_EQ(table.reason(), "1 of 2 children are healthy");
  EXPECT_EQ(table.next<Parent::TryingToStart>({.started = true}, two, all), "go Running");
  EXPECT_EQ(table.next<Parent::TryingToStart>({.started = true}, {}, none), "go Running");
  EXPECT_EQ(table.next<Parent::Running>({.started = true}, two, all), "stay");
  EXPECT_EQ(table.next<Parent::Running>({.started = true}, two, half), "go Degraded");
  EXPECT_EQ(table.next<Parent::Running>({.started = true}, two, stale), "go Degraded");
  EXPECT_EQ(table.next<Parent::Degraded>({.started = true}, two, half), "stay");
  EXPECT_EQ(table.next<Parent::Degraded>({.started = true}, two, all), "go Running");
  EXPECT_EQ(table.next<Parent::TryingToStop>({.started = true}, two, at_rest), "do Stop");
  EXPECT_EQ(table.next<Parent::TryingToStop>({.started = false}, two, half), "do Stop");
  EXPECT_EQ(table.reason(), "0 of 2 children are stopped");
  EXPECT_EQ(table.next<Parent::TryingToStop>({.started = false}, two, at_rest), "go Stopped");
  EXPECT_EQ(table.stop<Parent::TryingToStart>({}, two), "go TryingToStop");
  EXPECT_EQ(table.stop<Parent::Running>({}, two), "go TryingToStop");
  EXPECT_EQ(table.stop<Parent::Degraded>({}, two), "go TryingToStop");

  const ParentDesired cycling{.wait_time = 5s, .run_time = 10s};
  EXPECT_EQ(table.next<Parent::Stopped>({}, cycling, {.in_state = 2s}), "stay");
  EXPECT_EQ(table.again(), 3s);
  EXPECT_EQ(table.next<Parent::Stopped>({}, cycling, {.in_state = 5s}), "go TryingToStart");
  EXPECT_EQ(table.next<Parent::Running>({}, cycling, {.in_state = 9s}), "stay");
  EXPECT_EQ(table.again(), 1s);
  EXPECT_EQ(table.next<Parent::Running>({}, cycling, {.in_state = 10s}), "go TryingToStop");
  EXPECT_EQ(table.next<Parent::Degraded>({}, cycling, {.in_state = 10s}), "go TryingToStop");
  EXPECT_EQ(table.never_given(), "");
}

TEST(GroupWorker, IsActiveWhileItsChildrenAreWellOrRestAndRestsAfterThem) {
  Table<Group> table;
  const Given none{};
  const Given connects{.children = {child_in(Phase::running), child_in(Phase::starting)}};
  const Given fails{.children = {child_in(Phase::running), {.phase = Phase::starting, .failing = true}}};
  const Given stale{.children = {child_in(Phase::running, false), child_in(Phase::stopped)}};
  const Given well{.children = {child_in(Phase::running), child_in(Phase::stopped)}};
  const Given at_rest{.children = {child_in(Phase::stopped), child_in(Phase::stopped)}};
  EXPECT_EQ(table.next<Group::Stopped>({}, {}, none), "go Active");
  EXPECT_EQ(table.next<Group::Active>({}, {}, well), "stay");
  EXPECT_EQ(table.next<Group::Active>({}, {}, connects), "stay");
  EXPECT_EQ(table.next<Group::Active>({}, {}, fails), "go Impaired");
  EXPECT_EQ(table.reason(), "1 of 2 children are impaired");
  EXPECT_EQ(table.next<Group::Impaired>({}, {}, connects), "go Active");
  EXPECT_EQ(table.next<Group::Active>({}, {}, stale), "go Impaired");
  EXPECT_EQ(table.next<Group::Impaired>({}, {}, fails), "stay");
  EXPECT_EQ(table.next<Group::Impaired>({}, {}, well), "go Active");
  EXPECT_EQ(table.next<Group::Closing>({}, {}, well), "do Wait");
  EXPECT_EQ(table.next<Group::Closing>({}, {}, at_rest), "go Stopped");
  EXPECT_EQ(table.stop<Group::Active>({}, {}), "go Closing");
  EXPECT_EQ(table.stop<Group::Impaired>({}, {}), "go Closing");
  EXPECT_EQ(table.never_given(), "");
}

TEST(ParentWorker, GivesEachChildItsDeviceAndLetsItRunWhileItRunsItself) {
  const ParentDesired desired{
      .children_count = 2, .child_worker_type = "failing", .child_config = "{{ .IP }}"};
  const auto made = Parent::children(desired, {});
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[0].name, "child-0");
  EXPECT_EQ(made[1].name, "child-1");
  EXPECT_EQ(made[1].worker_type, "failing");
  EXPECT_EQ(made[1].user_spec.config, "{{ .IP }}");
  EXPECT_EQ(made[1].user_spec.variables.user.at("DEVICE_ID").text, "\"device-1\"");
  const std::map<std::string, std::string> mapping{{"Stopped", "park"},
                                                   {"TryingToStart", "run"},
                                                   {"Running", "run"},
                                                   {"Degraded", "run"},
                                                   {"TryingToStop", "park"}};
  EXPECT_EQ(made[1].state_mapping, mapping);
}

TEST(ParentWorker, RefusesCountsAndTimesThatCannotBeMeant) {
  EXPECT_EQ(Parent::derive({.children_count = 1'000'000}).error().field("field"), "children_count");
  EXPECT_EQ(Parent::derive({.run_time = -1s}).error().code(), Code::spec_invalid);
  EXPECT_EQ(decode<ParentDesired>(R"({"children_count": "not-a-number"})").error().field("path"),
            "$.children_count");
}

TEST(ParentWorker, ObservesWhetherItIsStarted) {
  ParentTools tools;
  const auto started = [&] { return Parent::collect(tools, {}, collect_context({})).value().started; };
  EXPECT_FALSE(started());
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(Parent::Start::run(tools, {}, action_context()));
  EXPECT_TRUE(started());
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(Parent::Stop::run(tools, {}, action_context()));
  EXPECT_FALSE(started());
}

TEST(FailingWorker, RestartsRecoversAndLosesItsConnectionAsItIsTold) {
  Table<Failing> table;
  const FailingDesired cycles{.should_fail = true, .failure_cycles = 2, .restart_after_failures = 5};
  EXPECT_EQ(table.next<Failing::Stopped>({}, cycles), "go TryingToConnect");
  EXPECT_EQ(table.next<Failing::TryingToConnect>({}, cycles, {.failures = 4}), "do Connect");
  EXPECT_EQ(table.next<Failing::TryingToConnect>({}, cycles, {.failures = 5}), "restart");
  EXPECT_EQ(table.next<Failing::TryingToConnect>({}, {.should_fail = true}, {.failures = 99}), "do Connect");
  EXPECT_EQ(table.next<Failing::TryingToConnect>({.recovering = true}, cycles), "stay");
  EXPECT_EQ(table.next<Failing::TryingToConnect>({.connected = true}, cycles, {.failures = 5}),
            "go Connected");
  EXPECT_EQ(table.next<Failing::Connected>({.connected = true, .cycle = 1}, cycles, {.in_state = 4s}),
            "stay");
  EXPECT_EQ(table.again(), 1s);
  EXPECT_EQ(table.next<Failing::Connected>({.connected = true, .cycle = 1}, cycles, {.in_state = 5s}),
            "do Lose");
  EXPECT_EQ(table.next<Failing::Connected>({.connected = true, .cycle = 2}, cycles, {.in_state = 5s}),
            "stay");
  EXPECT_EQ(table.again(), std::nullopt);
  EXPECT_EQ(table.next<Failing::Connected>({.connected = false}, cycles), "go Disconnected");
  EXPECT_EQ(table.next<Failing::Disconnected>({}, cycles), "go TryingToConnect");
  EXPECT_EQ(table.next<Failing::TryingToStop>({.connected = true}, cycles), "do Disconnect");
  EXPECT_EQ(table.next<Failing::TryingToStop>({.connected = false}, cycles), "go Stopped");
  EXPECT_EQ(table.stop<Failing::TryingToConnect>({}, cycles), "go TryingToStop");
  EXPECT_EQ(table.stop<Failing::Connected>({}, cycles), "go TryingToStop");
  EXPECT_EQ(table.stop<Failing::Disconnected>({}, cycles), "go TryingToStop");
  EXPECT_EQ(table.never_given(), "");
}

TEST(FailingWorker, FailsExactlyAsOftenAsItIsToldInEachCycle) {
  FailingTools tools;
  const FailingDesired desired{.should_fail = true, .max_failures = 3, .failure_cycles = 2};
  for (std::uint32_t cycle = 1; cycle <= 2; ++cycle) {
    for (int attempt = 1; attempt <= 3; ++attempt) {
      const auto failed = Failing::Connect::run(tools, desired, action_context());
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code(), Code::unreachable);
      EXPECT_EQ(failed.error().field("attempt"), std::to_string(attempt));
      EXPECT_EQ(failed.error().field("remaining"), std::to_string(3 - attempt));
    }
    EXPECT_TRUE(Failing::Connect::run(tools, desired, action_context()));
    const auto seen = Failing::collect(tools, desired, collect_context({})).value();
    EXPECT_TRUE(seen.connected);
    EXPECT_EQ(seen.cycle, cycle);
    EXPECT_TRUE(Failing::Lose::run(tools, desired, action_context()));
    EXPECT_TRUE(Failing::Lose::run(tools, desired, action_context()));
  }
}

TEST(FailingWorker, RecoversOnlyAfterSoManyObservations) {
  FailingTools tools;
  const FailingDesired desired{.should_fail = true, .max_failures = 1, .recovery_delay_observations = 2};
  const auto recovering = [&] {
    return Failing::collect(tools, desired, collect_context({})).value().recovering;
  };
  EXPECT_FALSE(recovering());
  EXPECT_FALSE(Failing::Connect::run(tools, desired, action_context()));
  EXPECT_TRUE(recovering());
  EXPECT_TRUE(recovering());
  EXPECT_FALSE(recovering());
  EXPECT_TRUE(Failing::Connect::run(tools, desired, action_context()));
}

TEST(FailingWorker, DoesNotFailUnlessItIsTold) {
  FailingTools tools;
  EXPECT_TRUE(Failing::Connect::run(tools, {}, action_context()));
  EXPECT_TRUE(Failing::Disconnect::run(tools, {}, action_context()));
  EXPECT_FALSE(Failing::collect(tools, {}, collect_context({})).value().connected);
  EXPECT_EQ(decode<FailingDesired>(R"({"max_failures": "three"})").error().field("path"), "$.max_failures");
}

template <class W>
void expect_table_of_a_plain_connection() {
  Table<W> table;
  EXPECT_EQ(table.template next<typename W::Stopped>({}, {}), "go TryingToConnect");
  EXPECT_EQ(table.template next<typename W::TryingToConnect>({.connected = false}, {}), "do Connect");
  EXPECT_EQ(table.template next<typename W::TryingToConnect>({.connected = true}, {}), "go Connected");
  EXPECT_EQ(table.template next<typename W::Connected>({.connected = true}, {}), "stay");
  EXPECT_EQ(table.template next<typename W::Connected>({.connected = false}, {}), "go TryingToConnect");
  EXPECT_EQ(table.template next<typename W::TryingToStop>({.connected = true}, {}), "do Disconnect");
  EXPECT_EQ(table.template next<typename W::TryingToStop>({.connected = false}, {}), "go Stopped");
  EXPECT_EQ(table.template stop<typename W::TryingToConnect>({}, {}), "go TryingToStop");
  EXPECT_EQ(table.template stop<typename W::Connected>({}, {}), "go TryingToStop");
  EXPECT_EQ(table.never_given(), "");
}

TEST(SlowWorker, ConnectsStaysConnectedAndDisconnects) { expect_table_of_a_plain_connection<Slow>(); }

TEST(SlowWorker, WaitsForItsDelayAndIsCancelledByTheStop) {
  SlowTools tools;
  Duration waited{};
  bool in_time = false;
  tools.wait = [&](Duration time, const std::stop_token&) {
    waited = time;
    return in_time;
  };
  const SlowDesired desired{.delay_seconds = 2};
  EXPECT_EQ(Slow::Connect::run(tools, desired, action_context()).error().code(), Code::cancelled);
  EXPECT_FALSE(Slow::collect(tools, desired, collect_context({})).value().connected);
  in_time = true;
  EXPECT_TRUE(Slow::Connect::run(tools, desired, action_context()));
  EXPECT_EQ(waited, 2s);
  EXPECT_TRUE(Slow::collect(tools, desired, collect_context({})).value().connected);
  EXPECT_TRUE(Slow::Disconnect::run(tools, desired, action_context()));
  EXPECT_FALSE(Slow::collect(tools, desired, collect_context({})).value().connected);
  EXPECT_EQ(Slow::derive({.delay_seconds = 241}).error().field("field"), "delay_seconds");
}

TEST(SlowWorker, ARealWaitEndsWithItsTimeOrWithTheStop) {
  std::stop_source stop;
  EXPECT_TRUE(wait_really(1us, stop.get_token()));
  stop.request_stop();
  EXPECT_FALSE(wait_really(1h, stop.get_token()));
}

TEST(PanicWorker, ConnectsStaysConnectedAndDisconnects) { expect_table_of_a_plain_connection<Panic>(); }

TEST(PanicWorker, ThrowsOnlyIfItIsTold) {
  PanicTools tools;
  EXPECT_THROW((void)Panic::Connect::run(tools, {.should_panic = true}, action_context()),
               std::runtime_error);
  EXPECT_FALSE(Panic::collect(tools, {}, collect_context({})).value().connected);
  EXPECT_TRUE(Panic::Connect::run(tools, {}, action_context()));
  EXPECT_TRUE(Panic::collect(tools, {}, collect_context({})).value().connected);
  EXPECT_TRUE(Panic::Disconnect::run(tools, {}, action_context()));
  EXPECT_FALSE(Panic::collect(tools, {}, collect_context({})).value().connected);
}

TEST(HelloworldWorker, GreetsOnceAndIsDegradedWhileItIsSad) {
  Table<Helloworld> table;
  EXPECT_EQ(table.next<Helloworld::Stopped>({}, {}), "go TryingToStart");
  EXPECT_EQ(table.next<Helloworld::TryingToStart>({.greeted = false}, {}), "do SayHello");
  EXPECT_EQ(table.next<Helloworld::TryingToStart>({.greeted = true}, {}), "go Running");
  EXPECT_EQ(table.next<Helloworld::Running>({.mood = "happy"}, {}), "stay");
  EXPECT_EQ(table.next<Helloworld::Running>({.mood = "sad"}, {}), "go Degraded");
  EXPECT_EQ(table.next<Helloworld::Degraded>({.mood = "sad"}, {}), "stay");
  EXPECT_EQ(table.next<Helloworld::Degraded>({.mood = ""}, {}), "go Running");
  EXPECT_EQ(table.stop<Helloworld::TryingToStart>({}, {}), "go Stopped");
  EXPECT_EQ(table.stop<Helloworld::Running>({}, {}), "go Stopped");
  EXPECT_EQ(table.stop<Helloworld::Degraded>({}, {}), "go Stopped");
  EXPECT_EQ(table.never_given(), "");
}

TEST(HelloworldWorker, ReadsTheMoodFromItsFile) {
  const auto file = std::filesystem::temp_directory_path() / ("pawl_mood_" + std::to_string(getpid()));
  std::filesystem::remove(file);
  HelloworldTools tools;
  tools.read_file = read_small_file;
  const HelloworldDesired desired{.mood_file = file};
  const auto mood = [&] { return Helloworld::collect(tools, desired, collect_context({})).value().mood; };
  EXPECT_EQ(mood(), "");
  std::ofstream(file) << "sad\n";
  EXPECT_EQ(mood(), "sad");
  std::ofstream(file) << std::string(100'000, 'x');
  EXPECT_EQ(mood(), std::string(32, 'x'));
  std::filesystem::remove(file);
  EXPECT_EQ(mood(), "");
}

TEST(HelloworldWorker, SaysWhyItCannotReadTheMood) {
  HelloworldTools tools;
  tools.read_file = read_small_file;
  const auto seen = Helloworld::collect(tools, {.mood_file = "/"}, collect_context({}));
  ASSERT_FALSE(seen);
  EXPECT_EQ(seen.error().field("path"), "/");
}

TEST(HelloworldWorker, HasGreetedAfterItsAction) {
  HelloworldTools tools;
  EXPECT_FALSE(Helloworld::collect(tools, {}, collect_context({})).value().greeted);
  for (int again = 0; again < 3; ++again) EXPECT_TRUE(Helloworld::SayHello::run(tools, {}, action_context()));
  EXPECT_TRUE(Helloworld::collect(tools, {}, collect_context({})).value().greeted);
}

}  // namespace
}  // namespace pawl::test
