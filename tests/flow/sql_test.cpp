// SPDX-License-Identifier: Apache-2.0
// Rows of the application that become durable together with a step.
#include "tests/flow/world.hpp"

namespace pawl::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Sql note(std::string text) {
  return {.text = "INSERT INTO notes(text) VALUES(?1)", .rows = {{std::move(text)}}};
}

FlowKitOptions with_table() {
  FlowKitOptions options;
  options.engine.schema = {{.text = "CREATE TABLE IF NOT EXISTS notes(text TEXT NOT NULL UNIQUE) STRICT"}};
  return options;
}

class FlowSqlTest : public ::testing::Test {
 protected:
  Script script;
  FlowKit kit{script.adds(), with_table()};

  pawl::Run run() {
    kit.flows().start("letters", "{}", {.id = "x"}).value();
    return kit.flows().wait("letters", "x", 24h).value();
  }
  std::vector<std::string> notes() {
    std::vector<std::string> texts;
    const auto rows = kit.engine().query({.text = "SELECT text FROM notes ORDER BY text"}).value();
    for (const auto& row : rows) texts.push_back(std::get<std::string>(row.front().get()));
    return texts;
  }
};

TEST_F(FlowSqlTest, RowsOfAStepAreThereWhenItIsDone) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) {
    step.sql(note("from b"));
    return Outcome::done();
  };
  EXPECT_EQ(run().state, RunState::done);
  EXPECT_THAT(notes(), ElementsAre("from b"));
}

TEST_F(FlowSqlTest, RowsOfAnAttemptThatIsRepeatedAreDropped) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) -> Outcome {
    step.sql(note("attempt " + std::to_string(step.attempt())));
    if (step.attempt() == 1) return busy();
    return Outcome::done();
  };
  EXPECT_EQ(run().state, RunState::done);
  EXPECT_THAT(notes(), ElementsAre("attempt 2"));
}

TEST_F(FlowSqlTest, AStepThatEndsTheRunKeepsItsRows) {
  for (const auto& outcome :
       {Outcome::handoff("there already"), Outcome::abort("no"), Outcome::unrecoverable("broken")}) {
    script.steps["b"] = [&](Step& step, const Order&, Receipt&) {
      step.sql(note(outcome.reason()));
      return outcome;
    };
    run();
  }
  EXPECT_THAT(notes(), ElementsAre("broken", "no", "there already"));
}

TEST_F(FlowSqlTest, ARefusedRowFailsTheAttemptAndNothingOfItIsKept) {
  script.steps["b"] = [](Step& step, const Order&, Receipt& receipt) {
    step.sql(note("kept together"));
    step.sql(note(step.attempt() < 3 ? "taken" : "free"));
    receipt.note = "attempt " + std::to_string(step.attempt());
    return Outcome::done();
  };
  script.steps["a"] = [](Step& step, const Order&, Receipt&) {
    step.sql(note("taken"));
    return Outcome::done();
  };
  const auto ended = run();
  EXPECT_EQ(ended.state, RunState::done);
  EXPECT_THAT(ended.response, HasSubstr("attempt 3"));
  EXPECT_THAT(notes(), ElementsAre("free", "kept together", "taken"));
}

TEST_F(FlowSqlTest, ARowThatIsRefusedEveryTimeUsesTheRetriesUp) {
  script.steps["b"] = [](Step& step, const Order&, Receipt&) {
    step.sql({.text = "UPDATE notes SET text = 'x' WHERE text = 'absent'", .expect = 1});
    return Outcome::done();
  };
  const auto ended = run();
  EXPECT_EQ(ended.state, RunState::failed);
  EXPECT_THAT(ended.error, HasSubstr("row_expectation_failed"));
  EXPECT_THAT(script.log, ElementsAre("x:a", "x:b", "x:b", "x:b", "x:b"));
}

TEST_F(FlowSqlTest, AStepReadsTheRowsOfThoseBefore) {
  script.steps["a"] = script.steps["b"] = [](Step& step, const Order&, Receipt& receipt) -> Outcome {
    PAWL_TRY(const auto rows, step.query({.text = "SELECT text FROM notes"}));
    receipt.note += std::to_string(rows.size());
    step.sql(note(step.name()));
    return Outcome::done();
  };
  EXPECT_THAT(run().response, HasSubstr(R"("note":"01")"));
}

TEST_F(FlowSqlTest, RowsOfAResponseThatIsTooLongAreDropped) {
  script.steps["b"] = [](Step& step, const Order&, Receipt& receipt) {
    step.sql(note("from b"));
    receipt.note = std::string(std::size_t{1} << 19, 'x');
    return Outcome::done();
  };
  EXPECT_EQ(run().state, RunState::failed);
  EXPECT_THAT(notes(), IsEmpty());
}

TEST_F(FlowSqlTest, AFinalizerHasRowsToo) {
  kit.crash_and_change([&](Flows& flows) {
    flows.add(flow<Order, Receipt>("letters")
                  .start("a", [](Step&, const Order&, Receipt&) { return Outcome::abort("no"); })
                  .finally("end",
                           [](Step& step, const Order&, Receipt&) {
                             step.sql(note("cleaned up"));
                             return Outcome::done();
                           })
                  .end());
  });
  EXPECT_EQ(run().state, RunState::aborted);
  EXPECT_THAT(notes(), ElementsAre("cleaned up"));
}

TEST(FlowSqlCrashTest, WhereverItCrashesAStepAndItsRowAreBothThereOrNeither) {
  FlowKitOptions options = with_table();
  const auto report = crash_everywhere(
      {.setup =
           [](Flows& flows) {
             const auto writes = [](Step& step, const Order&, Receipt& receipt) -> Outcome {
               // The row of this step must not be there yet, and those of the steps before must be.
               PAWL_TRY(const auto rows, step.query({.text = "SELECT text FROM notes"}));
               if (rows.size() != receipt.did.size()) return Outcome::abort("a row without its step");
               step.sql(note(step.name()));
               receipt.did.push_back(step.name());
               return Outcome::done();
             };
             const StepOptions patient{.retry = {.retries = 10}};
             flows.add(
                 flow<Order, Receipt>("letters").start("a", writes, patient).to("b", writes, patient).end());
           },
       .drive = [&](Flows& flows) -> Result<void> {
         if (!flows.get("letters", "x")) PAWL_CHECK(flows.start("letters", "{}", {.id = "x"}));
         PAWL_TRY(const auto run, flows.wait("letters", "x"));
         if (run.state != RunState::done) return fail(Code::internal, run.error);
         return {};
       },
       .reset = [] {},
       .observe = [] { return std::string(); },
       .options = options});
  EXPECT_GE(report.places, 6U);
  EXPECT_THAT(report.violations, IsEmpty());
}

}  // namespace
}  // namespace pawl::test
