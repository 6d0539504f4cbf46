// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machines that an engine runs, and the handlers of their work.
///
///     pawl::Machines machines;
///     machines.add<order>();
///     machines.work<order, Charge>("charge",
///         [&bank](const pawl::WorkContext& context, const Charge& charge) -> pawl::Result<pawl::Reply> {
///           PAWL_TRY(auto receipt, bank.charge(context.request_id(), charge.cents));   // idempotent
///           return pawl::reply(Charged{.receipt = receipt});
///         },
///         {.retry = {.retries = 5}, .timeout = 10s, .failed = pawl::on_failure<ChargeFailed>()});

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/definition.hpp"
#include "pawl/effects.hpp"
#include "pawl/error.hpp"
#include "pawl/retry.hpp"
#include "pawl/time.hpp"

namespace pawl {

struct Instance;

/// The arguments of a work handler. Valid during the call.
struct WorkContext {
  std::string_view machine;
  std::string_view origin{};  ///< the machine's oldest name (see `formerly`); empty: it was never renamed
  std::string_view key;
  std::string_view work;        ///< the name of the work
  std::int64_t number = 0;      ///< unique in the store, forever
  std::uint32_t attempt = 1;    ///< counts executions, including interrupted ones
  std::string_view data{};      ///< the instance's data when the attempt began, as JSON
  const void* value = nullptr;  ///< the decoded `data`, if it is available
  std::stop_token stop;         ///< set when the work is cancelled, out of time, or the engine stops

  /// The same for every attempt at this work, even if a release renames its machine, and never used for
  /// other work: makes external calls idempotent.
  std::string request_id() const;
};

struct Reply;
using FailureReply = std::function<Reply(const Error&)>;

/// A failed attempt that the instance records in the commit of the failure. An `Error` alone is not recorded
/// by the instance.
struct FailedAttempt {
  Error error;
  FailureReply last{};  ///< if set, used instead of `WorkOptions::failed`
};

/// The result of a handler: the event that ends the work, if any, and statements on the application's tables
/// that become durable in the same commit. If a statement is refused, nothing is applied and the attempt has
/// failed.
struct Reply {
  std::optional<EventValue> event{};
  std::optional<Error> error{};  ///< the event could not be encoded
  std::vector<Sql> sql{};
  /// If set, the attempt has failed: `event` is sent if the work is retried, and must not ask for effects
  /// on this work; `sql` is dropped.
  std::optional<FailedAttempt> failed{};
};

/// The work is done; sends this event to the instance in the commit that ends the work.
template <class E>
Reply reply(E event) {
  auto payload = encode(event);
  if (!payload) return {.event = {}, .error = std::move(payload).error()};
  return {.event = EventValue{detail::pretty_type<E>(), *std::move(payload),
                              std::make_shared<const E>(std::move(event))},
          .error = {}};
}

/// The work is done; sends no event to the instance.
inline Reply no_reply() { return {}; }

/// The attempt has failed, and this event is sent to the instance if the work is retried.
template <class E>
Reply failed_reply(FailedAttempt failed, E event) {
  auto made = reply(std::move(event));
  made.failed = std::move(failed);
  return made;
}

/// Sends E{.reason = the error's text} when the last attempt has failed.
template <class E>
FailureReply on_failure() {
  return [](const Error& error) { return reply(E{.reason = error.to_string()}); };
}

/// How a kind of work is run.
struct WorkOptions {
  RetryPolicy retry{};
  std::optional<Duration>
      timeout{};  ///< per attempt; when it expires, the handler is asked to stop and the attempt has failed
  std::string
      pool{};  ///< the permit pool that limits it; empty: only `EngineOptions::work_threads` limits it
  /// If true, an attempt that ignores its timeout gives its permit back at once; if false, when the handler
  /// has returned.
  bool overdue_frees_permit = false;
  FailureReply failed{};  ///< the event to send when no retry is left; by default the failure is only logged
  /// If set, the engine does not run the work: a caller claims it (`Engine::claim`) and keeps it as long as
  /// each heartbeat arrives within this time of the previous one. Such work takes no permit.
  std::optional<Duration> lease{};
  /// The number of interrupted attempts that are repeated after a crash even if the policy has no retry left:
  /// for idempotent work whose failures are handled elsewhere. Limited, because the work itself may crash the
  /// program.
  std::uint32_t again_after_crash = 0;
  /// Called with the instance when the end of a piece of work is durable, like `done` of `Engine::submit`.
  /// Not called for work that was cancelled or whose instance has finished.
  std::function<void(const Instance&)> settled{};
};

using WorkHandler = std::function<Result<Reply>(const WorkContext&, std::string_view payload)>;

/// A registry, filled before the engine opens; an ordinary value without global state. Not thread-safe.
class Machines {
 public:
  struct Work {
    WorkHandler run;
    WorkOptions options;
  };
  struct Entry {
    Definition definition;
    std::map<std::string, Work, std::less<>> works;
  };

  /// Adds a machine. A name used twice is reported when the engine opens.
  template <const auto& M>
  Machines& add() {
    return add(define<M>());
  }
  /// The same for a modified definition, such as a table that is used under several names.
  Machines& add(Definition definition) {
    entries_.push_back({std::move(definition), {}});
    return *this;
  }

  /// Adds the handler of a machine's work; P is the payload's type. The machine must have been added.
  template <const auto& M, class P>
  Machines& work(std::string name, std::function<Result<Reply>(const WorkContext&, const P&)> handler,
                 WorkOptions options = {}) {
    auto run = [handler = std::move(handler)](const WorkContext& context,
                                              std::string_view text) -> Result<Reply> {
      PAWL_TRY(const auto payload, decode<P>(text));
      return handler(context, payload);
    };
    return add_work(M.traits.name, std::move(name), {std::move(run), std::move(options)});
  }
  /// The same by the machine's name, for a handler that decodes its payload itself.
  Machines& add_work(std::string_view machine, std::string name, Work work);

  /// A permit pool that the work of these machines uses. `EngineOptions::pools` may give it another size.
  Machines& add_pool(std::string name, std::uint32_t size) {
    pools_.emplace(std::move(name), size);
    return *this;
  }

  /// Checks the registry. Errors: `duplicate_machine`, `unknown_machine`, `duplicate_instance` for work that
  /// is registered twice, and those of an invalid retry policy.
  Result<void> validate() const;

  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::uint32_t>& pools() const { return pools_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::uint32_t> pools_;
  std::vector<Error> problems_;
};

}  // namespace pawl
