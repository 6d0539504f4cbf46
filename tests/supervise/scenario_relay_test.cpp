// SPDX-License-Identifier: Apache-2.0
// The acceptance scenario of the communicator and its transport, against a relay that is a struct: a parent
// logs in, its children push and pull with what it got, and nobody is made anew when the relay changes its
// mind about who is logged in.
#include <gtest/gtest.h>

#include <map>

#include "pawl/supervisor_kit.hpp"
#include "pawl/worker.hpp"

using namespace std::chrono_literals;

namespace pawl::test {

/// The relay, and what the program has of it.
struct Relay {
  bool up = true;
  int token = 1;  ///< that it accepts
  int logins = 0;
  std::vector<int> waiting{};  ///< for the program
  std::vector<int> arrived{};  ///< from the program
  // The program's side.
  int held = 0;  ///< the token it was given
  std::vector<int> outbox{};
  std::vector<int> inbox{};
  bool accepts() const { return up && held == token; }
};
struct RelayTools {
  Relay* relay = nullptr;
};

struct LoginObserved {
  bool reachable = false;
  bool accepted = false;
};
struct LoginDesired {};

struct Login : Worker<LoginObserved, LoginDesired, RelayTools> {
  static constexpr std::string_view kType = "communicator";
  struct Stopped : phase::Stopped {};
  struct TryingToAuthenticate : phase::Starting {};
  struct Syncing : phase::Running {};
  struct Cut : phase::Degraded {};
  using States = pawl::States<Stopped, TryingToAuthenticate, Syncing, Cut>;
  struct Authenticate {
    static Result<void> run(RelayTools& tools, const LoginDesired&, const ActionContext&) {
      if (!tools.relay->up) return fail(Code::unreachable, "the relay does not answer");
      if (tools.relay->accepts()) return {};
      ++tools.relay->logins;
      tools.relay->held = tools.relay->token;
      return {};
    }
  };
  static Next<Go<TryingToAuthenticate>> next(Stopped, const Snapshot&) {
    return Go<TryingToAuthenticate>{"it is wanted"};
  }
  static Next<Go<Syncing>, Do<Authenticate>> next(TryingToAuthenticate, const Snapshot& now) {
    if (now.observed.accepted) return Go<Syncing>{"the relay has accepted it"};
    return Do<Authenticate>{"it is not logged in"};
  }
  static Next<Stay, Go<TryingToAuthenticate>, Go<Cut>> next(Syncing, const Snapshot& now) {
    if (!now.observed.reachable) return Go<Cut>{"the relay does not answer"};
    if (!now.observed.accepted) return Go<TryingToAuthenticate>{"the relay does not know it any more"};
    return Stay{std::to_string(now.children.healthy()) + " of its transports are healthy"};
  }
  static Next<Stay, Go<TryingToAuthenticate>> next(Cut, const Snapshot& now) {
    if (now.observed.reachable) return Go<TryingToAuthenticate>{"the relay answers again"};
    return Stay{"the relay does not answer"};
  }
  template <class State>
  static Next<Go<Stopped>> stop(State, const Snapshot&) {
    return Go<Stopped>{"it is to stop"};
  }
  static Result<LoginObserved> collect(RelayTools& tools, const LoginDesired&, const CollectContext&) {
    return LoginObserved{tools.relay->up, tools.relay->accepts()};
  }
  static std::vector<ChildSpec> children(const LoginDesired&, const UserSpec&) {
    const std::map<std::string, std::string> mapping{{"Syncing", "run"}, {"*", "park"}};
    return {{.name = "pull", .worker_type = "transport", .state_mapping = mapping},
            {.name = "push", .worker_type = "transport", .state_mapping = mapping}};
  }
};

struct TransportObserved {
  std::size_t to_do = 0;
};
struct TransportDesired {};
struct TransportTools {
  Relay* relay = nullptr;
  std::vector<int>* from = nullptr;
  std::vector<int>* to = nullptr;
};

/// push and pull: they differ in the direction.
struct Transport : Worker<TransportObserved, TransportDesired, TransportTools> {
  struct Stopped : phase::Stopped {};
  struct Running : phase::Running {};
  using States = pawl::States<Stopped, Running>;
  struct Move {
    static Result<void> run(TransportTools& tools, const TransportDesired&, const ActionContext&) {
      if (!tools.relay->accepts()) return fail(Code::unreachable, "the relay refuses it");
      tools.to->insert(tools.to->end(), tools.from->begin(), tools.from->end());
      tools.from->clear();
      return {};
    }
  };
  static Next<Go<Running>> next(Stopped, const Snapshot&) { return Go<Running>{"its parent is logged in"}; }
  static Next<Stay, Do<Move>> next(Running, const Snapshot& now) {
    if (now.observed.to_do > 0) return Do<Move>{std::to_string(now.observed.to_do) + " messages wait"};
    return Stay{"nothing waits"};
  }
  static Next<Go<Stopped>> stop(Running, const Snapshot&) { return Go<Stopped>{"it is to stop"}; }
  static Result<TransportObserved> collect(TransportTools& tools, const TransportDesired&,
                                           const CollectContext&) {
    return TransportObserved{tools.from->size()};
  }
};

namespace {

struct RelayWorld {
  RelayWorld()
      : kit([this](Runtime&) {
          WorkerTypes types;
          types.add<Login>([this](const WorkerIdentity&) { return RelayTools{&relay}; });
          types.add<Transport>([this](const WorkerIdentity& who) {
            return who.name == "pull" ? TransportTools{&relay, &relay.waiting, &relay.inbox}
                                      : TransportTools{&relay, &relay.outbox, &relay.arrived};
          });
          return types;
        }) {
    kit.supervisor().apply({.children = {{.name = "link", .worker_type = "communicator"}}}).value();
  }
  std::vector<WorkerView> transports() {
    return {kit.supervisor().show("link/pull").value(), kit.supervisor().show("link/push").value()};
  }
  /// Whether messages of both directions come through.
  bool carries(int message) {
    relay.waiting.push_back(message);
    relay.outbox.push_back(-message);
    return kit.wait_until([&] { return relay.inbox.back() == message && relay.arrived.back() == -message; },
                          1min);
  }

  Relay relay{.arrived = {0}, .inbox = {0}};
  SupervisorKit kit;
};

TEST(Scenario, TransportLogsInOnceAndCarriesMessagesBothWays) {
  RelayWorld world;
  ASSERT_TRUE(world.kit.wait_for("link", "Syncing", 10s));
  for (int message = 1; message <= 5; ++message) EXPECT_TRUE(world.carries(message));
  EXPECT_EQ(world.relay.inbox, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(world.relay.arrived, (std::vector<int>{0, -1, -2, -3, -4, -5}));
  EXPECT_EQ(world.relay.logins, 1);
}

TEST(Scenario, TransportLogsInAgainWhenTheTokenIsRotatedAndKeepsItsWorkers) {
  RelayWorld world;
  ASSERT_TRUE(world.kit.wait_for("link", "Syncing", 10s));
  ASSERT_TRUE(world.carries(1));
  const auto before = world.transports();
  world.relay.token = 2;
  EXPECT_TRUE(world.carries(2));
  EXPECT_EQ(world.relay.logins, 2);
  const auto after = world.transports();
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(after[i].identity.created_at, before[i].identity.created_at);
    EXPECT_EQ(after[i].incarnation, 1U);
  }
}

TEST(Scenario, TransportRestsWhileTheRelayIsGoneAndGoesOnWhenItIsBack) {
  RelayWorld world;
  ASSERT_TRUE(world.kit.wait_for("link", "Syncing", 10s));
  ASSERT_TRUE(world.carries(1));
  world.relay.up = false;
  ASSERT_TRUE(world.kit.wait_for("link", "Cut", 10s));
  ASSERT_TRUE(world.kit.wait_for("link/push", "Stopped", 10s));  // by its mapping
  world.kit.advance(10min);
  world.kit.crash();
  world.relay.up = true;
  ASSERT_TRUE(world.kit.wait_for("link", "Syncing", 10s));
  EXPECT_TRUE(world.carries(2));
  EXPECT_EQ(world.relay.logins, 1);  // the relay remembers the token
  EXPECT_EQ(world.transports().size(), 2U);
}

}  // namespace
}  // namespace pawl::test
