// SPDX-License-Identifier: Apache-2.0
// The second release of a machine: a state was renamed, the data changed, and old instances are still read.
#include <iostream>

#include "pawl/definition.hpp"

enum class Job { waiting, running, done };
struct Start {};
struct Finish {};
struct JobData1 {
  int seconds = 0;
};
struct JobData {
  pawl::Duration taken{};
  int attempts = 1;
};

constexpr auto job =
    pawl::machine<Job, JobData>("job")
        .formerly("task")
        .initial(Job::waiting)
        .on<Start>(Job::waiting, Job::running)
        .on<Finish>(Job::running, Job::done)
        .terminal(Job::done)
        .formerly(Job::waiting, "queued")
        .recover(Job::running, Job::waiting)
        .upgrade<1>([](const JobData1& old) { return JobData{.taken = std::chrono::seconds(old.seconds)}; });
static_assert(pawl::verified<job>);

int main() {
  const auto definition = pawl::define<job>();
  const auto state = definition.find_state("queued").value();
  std::cout << "queued is now " << definition.states[state].name << '\n';
  std::cout << definition.upgrade(R"({"seconds": 90})", 1).value() << '\n';
  std::cout << definition.upgrade("{}", 3).error().message() << '\n';
}

// prints: queued is now waiting
// prints: {"taken":"90s","attempts":1}
// prints: job: data has schema 3, this program reads 1 to 2
