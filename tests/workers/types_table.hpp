// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Asks the states of a worker, and says which of the answers that they list were never given.
///
///     Table<Child> table;
///     EXPECT_EQ(table.next<Child::Stopped>({}, {}), "go TryingToConnect");
///     EXPECT_EQ(table.never_given(), "");

#include <poll.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "pawl/worker.hpp"

namespace pawl::test {

struct Given {
  std::vector<ChildView> children{};
  Duration in_state{};
  std::uint32_t failures = 0;
};

inline const WorkerIdentity& somebody() {
  static const WorkerIdentity kWho{.path = "top/one", .name = "one", .type = "any", .parent = "top"};
  return kWho;
}

inline ActionContext action_context(std::stop_token stop = {}) {
  return {.identity = somebody(), .number = 1, .stop = std::move(stop)};
}

inline CollectContext collect_context(Time now, std::stop_token stop = {}) {
  return {.identity = somebody(), .now = now, .stop = std::move(stop)};
}

template <class R>
std::string words_of_result() {
  if constexpr (detail::IsGo<R>)
    return "go " + std::string(type_name<typename detail::ResultKind<R>::State>());
  else if constexpr (detail::IsDo<R>)
    return "do " + std::string(type_name<typename detail::ResultKind<R>::Action>());
  else if constexpr (std::same_as<R, Stay>)
    return "stay";
  else if constexpr (std::same_as<R, Restart>)
    return "restart";
  else
    return "remove";
}

template <class W>
class Table {
 public:
  using Observed = typename W::Observed;
  using Desired = typename W::Desired;

  template <class S>
  std::string next(const Observed& observed, const Desired& desired, const Given& given = {}) {
    return take("next " + std::string(type_name<S>()), W::next(S{}, snapshot(observed, desired, given)));
  }
  template <class S>
  std::string stop(const Observed& observed, const Desired& desired, const Given& given = {}) {
    return take("stop " + std::string(type_name<S>()), W::stop(S{}, snapshot(observed, desired, given)));
  }
  /// Of the last answer.
  const std::string& reason() const { return reason_; }
  const std::optional<Duration>& again() const { return again_; }

  std::string never_given() const {
    std::string missing;
    [&]<class... S>(States<S...>) { (add_missing<S>(missing), ...); }(typename W::States{});
    return missing;
  }

 private:
  static typename W::Snapshot snapshot(const Observed& observed, const Desired& desired, const Given& given) {
    return {.identity = somebody(),
            .observed = observed,
            .desired = desired,
            .children = {given.children},
            .in_state = given.in_state,
            .failures = given.failures};
  }

  template <class... R>
  std::string take(const std::string& asked, const Next<R...>& answer) {
    return std::visit(
        [&]<class One>(const One& one) {
          reason_ = one.reason.text();
          again_.reset();
          if constexpr (std::same_as<One, Stay>) again_ = one.again;
          seen_.insert(asked + ": " + words_of_result<One>());
          return words_of_result<One>();
        },
        answer.result());
  }

  template <class S>
  void add_missing(std::string& missing) const {
    const auto check = [&]<class... R>(const std::string& asked, detail::Types<R...>) {
      for (const auto& one : {asked + ": " + words_of_result<R>()...}) {
        if (!seen_.contains(one)) missing += one + "\n";
      }
    };
    const std::string name(type_name<S>());
    check("next " + name, detail::results_of(std::type_identity<detail::NextOf<W, S>>{}));
    if constexpr (detail::kIsAskedToStop<S>)
      check("stop " + name, detail::results_of(std::type_identity<detail::StopOf<W, S>>{}));
  }

  std::set<std::string> seen_;
  std::string reason_;
  std::optional<Duration> again_;
};

/// Asks again and again until it is as it should be; gives up after a time that no machine needs.
template <class Condition>
bool eventually(Condition is_so) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > until) return false;
    poll(nullptr, 0, 5);  // leaves the machine to those that are waited for
  }
  return true;
}

}  // namespace pawl::test
