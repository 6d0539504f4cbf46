// SPDX-License-Identifier: Apache-2.0
// Baking is a flow: mix, then bake. A step that fails is tried again; a run that a crash cuts off goes on.
#include <iostream>
#include <string>

#include "pawl/flows.hpp"

using namespace std::chrono_literals;

struct Recipe {
  int loaves = 0;
};
struct Batch {
  std::string dough;
  std::string bread;
};

static pawl::Outcome mix(pawl::Step&, const Recipe& recipe, Batch& batch) {
  if (recipe.loaves > 20) return pawl::Outcome::abort("the bowl holds dough for 20 loaves");
  batch.dough = "dough for " + std::to_string(recipe.loaves);
  return pawl::Outcome::done();
}

static pawl::Outcome bake(pawl::Step& step, const Recipe& recipe, Batch& batch) {
  if (step.attempt() == 1) return pawl::Error(pawl::Code::timed_out, "the oven is cold");
  batch.bread = std::to_string(recipe.loaves) + " loaves, at attempt " + std::to_string(step.attempt());
  return pawl::Outcome::done();
}

static const auto baking = pawl::flow<Recipe, Batch>("baking")
                               .start("mix", mix)
                               .to("bake", bake, {.retry = {.retries = 5, .first = 1ms}, .timeout = 10s})
                               .end();

static pawl::Result<void> run_one(pawl::Flows& flows, const Recipe& recipe) {
  PAWL_TRY(const auto started, flows.start(baking, recipe));
  PAWL_TRY(const auto ended, flows.wait("baking", started.id, 1min));
  PAWL_TRY(const auto batch, flows.response(baking, ended));
  if (ended.state == pawl::RunState::done) std::cout << batch.bread << '\n';
  if (ended.state != pawl::RunState::done) std::cout << ended.error << '\n';
  return {};
}

static pawl::Result<void> run() {
  pawl::ThreadRuntime runtime;
  pawl::Flows flows(runtime);
  flows.add(baking);
  pawl::Machines machines;
  flows.add_machines(machines);
  PAWL_TRY(const auto engine,
           pawl::Engine::open(runtime, std::move(machines), {.store = "sqlite:baking.db"}));
  PAWL_CHECK(flows.attach(*engine));  // runs that a crash has interrupted go on
  auto done = run_one(flows, {.loaves = 12});
  if (done) done = run_one(flows, {.loaves = 100});
  flows.detach();
  return done;
}

int main() {
  if (const auto done = run(); !done) {
    std::cerr << done.error().to_string() << '\n';
    return 1;
  }
}

// prints: 12 loaves, at attempt 2
// prints: the bowl holds dough for 20 loaves
