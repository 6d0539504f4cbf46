// SPDX-License-Identifier: Apache-2.0
// Steps that run before the flows are attached to their engine.
#include "flow/run_machine.hpp"
#include "pawl/sim_program.hpp"
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

/// A program that attaches its flows only on request.
class LateProgram final : public sim::Program {
 public:
  explicit LateProgram(Script& script) : Program({}), script_(script) { begin(); }
  ~LateProgram() override { close(); }

  Flows& flows() { return *flows_; }
  Engine& engine() { return *engine_; }

 private:
  Result<void> open(sim::Process& process) override {
    flows_ = std::make_unique<Flows>(process);
    flows_->add(script_.letters());
    Machines machines;
    flows_->add_machines(machines);
    PAWL_TRY(engine_, Engine::open(process, std::move(machines),
                                   {.store = "sqlite:flows.db", .vfs = disk().vfs_name()}));
    return {};
  }
  void close() override {
    if (flows_) flows_->detach();
    engine_.reset();
    flows_.reset();
  }

  Script& script_;
  std::unique_ptr<Flows> flows_;
  std::unique_ptr<Engine> engine_;
};

TEST(FlowAttach, AStepThatIsStoppedBeforeTheFlowsAreAttachedLetsNoOtherGoOn) {
  Script script;
  LateProgram program(script);
  script.steps["a"] = [&](Step& step, const Order&, Receipt&) -> Outcome {
    PAWL_CHECK(step.get("letters", step.id()));
    script.log.push_back(step.id() + ":a has got it");
    return Outcome::done();
  };
  ASSERT_TRUE(program.flows().attach(program.engine()));
  for (const auto* id : {"x", "y"}) program.flows().start("letters", "{}", {.id = id, .delay = 1h}).value();
  program.crash();
  program.advance(2h);
  ASSERT_THAT(script.log, UnorderedElementsAre("x:a", "y:a"));
  ASSERT_TRUE(program.engine().commit(
      Transaction{}.send<flow_machine::run>("x", flow_machine::Cancel{"enough"}, {.machine = "letters"})));
  program.advance(1min);
  EXPECT_EQ(program.engine().read("letters", "x").value().state, "cancelled");
  EXPECT_THAT(script.log, UnorderedElementsAre("x:a", "y:a"));
  ASSERT_TRUE(program.flows().attach(program.engine()));
  EXPECT_EQ(program.flows().wait("letters", "y").value().state, RunState::done);
  script.log.erase(script.log.begin(), script.log.begin() + 2);
  EXPECT_THAT(script.log, ElementsAre("y:a has got it", "y:b", "y:c"));
}

}  // namespace
}  // namespace pawl::test
