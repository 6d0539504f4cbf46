// SPDX-License-Identifier: Apache-2.0
#include "tests/crash_flow/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>
#include <mutex>
#include <string>

#include "pawl/flows.hpp"

namespace pawl::crash_flow {

struct Job {
  std::string id;
};
struct Done {
  int steps = 0;
};

namespace {

/// Lines to a file or a pipe, whole ones only. Thread-safe.
class Lines {
 public:
  explicit Lines(int file) : file_(file) {}
  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    const auto text = line + "\n";
    if (::write(file_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(3);
  }

 private:
  std::mutex mutex_;
  int file_;
};

auto step(Lines& outside, std::string name) {
  return [&outside, name = std::move(name)](Step& step, const Job&, Done& done) -> Outcome {
    outside.write(fmt::format("{} {} {} {}", step.id(), name, step.attempt(), step.request_id()));
    // Now and then one fails after it has done its part.
    if (std::hash<std::string>{}(step.id() + name) % 7 == 0 && step.attempt() == 1)
      return Error(Code::timed_out, "chance");
    ++done.steps;
    return Outcome::done();
  };
}

}  // namespace

Result<void> run_worker(const std::string& directory) {
  const int file = open((directory + "/outside").c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return fail(Code::store_io, "the file outside cannot be opened");
  Lines outside(file);
  Lines answers(STDOUT_FILENO);
  ThreadRuntime runtime;
  Flows flows(runtime);
  // The crashes come faster than any retry policy is meant for.
  const StepOptions patient{.retry = {.retries = RetryPolicy::kUnlimited,
                                      .first = std::chrono::milliseconds(1),
                                      .cap = std::chrono::milliseconds(5)}};
  flows.add(flow<Job, Done>("job")
                .start("one", step(outside, "one"), patient)
                .to("two", step(outside, "two"), patient)
                .to("three", step(outside, "three"), patient)
                .end());
  Machines machines;
  flows.add_machines(machines);
  PAWL_TRY(const auto engine,
           Engine::open(
               runtime, std::move(machines),
               {.store = "sqlite:" + directory + "/flows.db", .work_threads = 4, .pools = {{"line", 4}}}));
  PAWL_CHECK(flows.attach(*engine));
  const auto watch = [&](const std::string& id) {
    flows.wait("job", id, std::nullopt, [&answers, id](const Result<Run>& run) {
      if (run) answers.write(fmt::format("ended {} {}", id, run->status));
    });
  };
  for (std::string line; std::getline(std::cin, line);) {
    const auto space = line.find(' ');
    const auto id = line.substr(space + 1);
    if (line.starts_with("watch")) {
      watch(id);
      continue;
    }
    // Every other one stands in a queue.
    RunOptions options{.id = id, .queue = id.back() % 2 == 0 ? "line" : ""};
    flows.start("job", fmt::format(R"({{"id":"{}"}})", id), std::move(options),
                [&answers, watch, id](const Result<Run>& run) {
                  if (!run) return;
                  answers.write("acked " + id);
                  watch(id);
                });
  }
  flows.detach();
  return {};
}

}  // namespace pawl::crash_flow
