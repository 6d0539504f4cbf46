// SPDX-License-Identifier: Apache-2.0
#include "tests/crash_flow/audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "pawl/random.hpp"
#include "tests/crash/child.hpp"

namespace pawl::crash_flow {
namespace {

using crash::Child;
using namespace std::chrono_literals;

class Driver {
 public:
  Driver(const DriverOptions& options, Report& report)
      : options_(options), report_(report), random_(options.seed) {}

  Result<void> run() {
    for (; report_.kills < options_.kills; ++report_.kills) {
      PAWL_CHECK(start());
      const auto until = Child::now() + Duration(20ms) + std::chrono::milliseconds(random_.below(150));
      while (Child::now() < until) {
        while (outstanding_ < kOutstanding) start_run();
        PAWL_TRY(const auto heard, child_->listen(until));
        take(heard);
        if (heard.ended) return fail(Code::internal, "the worker ended by itself");
      }
      PAWL_TRY(const auto last, child_->kill());
      take(last);
      child_.reset();
    }
    PAWL_CHECK(finish());
    report_.acknowledged = static_cast<std::int64_t>(acked_.size());
    audit();
    return {};
  }

 private:
  static constexpr std::size_t kOutstanding = 64;

  Result<void> start() {
    PAWL_TRY(auto child, Child::start({"--worker", options_.directory}));
    child_.emplace(std::move(child));
    outstanding_ = 0;
    return {};
  }
  void start_run() {
    child_->send(fmt::format("start run-{}", next_++));
    ++outstanding_;
  }
  void take(const Child::Heard& heard) {
    for (const auto& line : heard.lines) {
      std::istringstream words(line);
      std::string what;
      std::string id;
      std::string state;
      words >> what >> id >> state;
      if (what == "acked") acked_.insert(id);
      if (what != "ended") continue;
      ended_[id] = state;
      if (outstanding_ > 0) --outstanding_;
    }
  }

  /// Without another kill, until every acknowledged run has ended.
  Result<void> finish() {
    constexpr Duration kPatience = 120s;
    PAWL_CHECK(start());
    for (const auto& id : acked_) {
      if (!ended_.contains(id)) child_->send(fmt::format("watch {}", id));
    }
    const auto until = Child::now() + kPatience;
    const auto all_ended = [&] {
      return std::ranges::all_of(acked_, [&](const std::string& id) { return ended_.contains(id); });
    };
    while (!all_ended() && Child::now() < until) {
      PAWL_TRY(const auto heard, child_->listen(std::min(until, Child::now() + Duration(1s))));
      take(heard);
      if (heard.ended) return fail(Code::internal, "the worker ended by itself");
    }
    child_->end_input();
    while (true) {
      PAWL_TRY(const auto heard, child_->listen(until));
      take(heard);
      if (heard.ended) break;
    }
    return child_->wait();
  }

  void problem(std::string text) {
    if (report_.problems.size() < 20) report_.problems.push_back(std::move(text));
  }

  void audit() {
    struct Traces {
      std::map<std::string, std::set<std::string>> request_ids;  // by step
      std::map<std::string, std::set<std::string>> attempts;     // by step
      std::set<std::string> doubled;                             // steps with an attempt that was made twice
      std::map<std::string, std::size_t> first;                  // line of the first time
      std::map<std::string, std::size_t> last;
    };
    std::map<std::string, Traces> traces;
    std::ifstream file(options_.directory + "/outside");
    std::string id;
    std::string step;
    std::string attempt;
    std::string request;
    for (std::size_t line = 0; file >> id >> step >> attempt >> request; ++line) {
      auto& run = traces[id];
      run.request_ids[step].insert(request);
      if (!run.attempts[step].insert(attempt).second) run.doubled.insert(step);
      run.first.try_emplace(step, line);
      run.last[step] = line;
    }
    constexpr std::array<const char*, 3> kSteps{"one", "two", "three"};
    for (const auto& acked : acked_) {
      auto& run = traces[acked];
      if (const auto ended = ended_.find(acked); ended == ended_.end() || ended->second != "done") {
        ++report_.lost;
        problem(fmt::format("{} was acknowledged and has not ended as done", acked));
        continue;
      }
      for (std::size_t i = 0; i < kSteps.size(); ++i) {
        const auto ids = run.request_ids[kSteps[i]].size();
        if (ids == 0) {
          ++report_.lost;
          problem(fmt::format("{} is done, but nobody did its step {}", acked, kSteps[i]));
        } else if (ids > 1) {
          ++report_.doubled;
          problem(fmt::format("{} did its step {} under {} request ids", acked, kSteps[i], ids));
        } else if (run.doubled.contains(kSteps[i])) {
          ++report_.doubled;
          problem(fmt::format("{} made an attempt at its step {} twice", acked, kSteps[i]));
        } else if (i > 0 && run.first[kSteps[i]] < run.last[kSteps[i - 1]]) {
          problem(fmt::format("{} began its step {} before the one before had ended", acked, kSteps[i]));
        }
      }
    }
  }

  const DriverOptions& options_;
  Report& report_;
  Random random_;
  std::optional<Child> child_;
  std::uint64_t next_ = 0;
  std::size_t outstanding_ = 0;
  std::set<std::string> acked_;
  std::map<std::string, std::string> ended_;
};

}  // namespace

Result<void> run_driver(const DriverOptions& options, Report& report) {
  return Driver(options, report).run();
}

}  // namespace pawl::crash_flow
