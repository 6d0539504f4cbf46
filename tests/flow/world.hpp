// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Common parts of the tests of flows: a small flow whose steps do what the test defines, and record that
/// they ran.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "pawl/flow_kit.hpp"
#include "pawl/ulid.hpp"

namespace pawl::test {

using namespace std::chrono_literals;

struct Order {
  std::string item;
  int cents = 0;
  std::optional<Json> more{};  // of any shape
};
struct Receipt {
  std::vector<std::string> did;
  std::string note;
};

/// What a step does; by default it returns `done`.
using StepScript = std::function<Outcome(Step&, const Order&, Receipt&)>;

/// What the steps do, and which of them have run, in order.
struct Script {
  std::vector<std::string> log;
  std::map<std::string, StepScript> steps;

  auto step(std::string name) {
    return [this, name = std::move(name)](Step& step, const Order& order, Receipt& receipt) -> Outcome {
      log.push_back(step.id().empty() ? name : step.id() + ":" + name);
      if (const auto found = steps.find(name); found != steps.end()) {
        auto outcome = found->second(step, order, receipt);
        if (outcome.kind() == Outcome::Kind::done) receipt.did.push_back(name);
        return outcome;
      }
      receipt.did.push_back(name);
      return Outcome::done();
    };
  }

  /// a, b, c.
  Flow<Order, Receipt> letters(std::string name = "letters", StepOptions options = {}) {
    return flow<Order, Receipt>(std::move(name))
        .start("a", step("a"), options)
        .to("b", step("b"), options)
        .to("c", step("c"), options)
        .end();
  }
  auto adds(std::string name = "letters") {
    return [this, name](Flows& flows) { flows.add(letters(name)); };
  }
};

/// The error code; 0 for success.
template <class T>
Code code_of(const Result<T>& result) {
  return result ? static_cast<Code>(0) : result.error().code();
}

inline Outcome busy(std::string text = "busy") { return Error(Code::timed_out, std::move(text)); }

}  // namespace pawl::test
