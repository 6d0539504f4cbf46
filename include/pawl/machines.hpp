// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machines that an engine drives, and the functions that do their work. Made in `main`, given to the
/// engine.
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

/// What a work handler is told. Valid during the call.
struct WorkContext {
  std::string_view machine;
  std::string_view origin{};  ///< the machine's oldest name (see `formerly`); empty: it was never renamed
  std::string_view key;
  std::string_view work;        ///< the name of the work
  std::int64_t number = 0;      ///< names this piece of work in the whole store, for ever
  std::uint32_t attempt = 1;    ///< counts executions, interrupted ones included
  std::string_view data{};      ///< the instance's data when the attempt began, as JSON
  const void* value = nullptr;  ///< what `data` is the text of, where the machine's data is at hand
  std::stop_token stop;         ///< set when the work is cancelled, out of time, or the engine stops

  /// The same for every attempt at this work, also over releases that rename its machine, and never again
  /// for other work: what makes a call to the outside idempotent.
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

/// What a handler answers: the event that consumes the work, or none, and rows of the application that become
/// durable in the same commit. Where a statement is refused, nothing of it is, and the attempt has failed.
struct Reply {
  std::optional<EventValue> event{};
  std::optional<Error> error{};  ///< the event could not be encoded
  std::vector<Sql> sql{};
  /// If set, the attempt has failed: `event` is sent if the work is retried, and must not ask for effects
  /// on this work; `sql` is dropped.
  std::optional<FailedAttempt> failed{};
};

/// The work is done and this event is to be sent to the instance, in the commit that consumes the work.
template <class E>
Reply reply(E event) {
  auto payload = encode(event);
  if (!payload) return {.event = {}, .error = std::move(payload).error()};
  return {.event = EventValue{detail::pretty_type<E>(), *std::move(payload),
                              std::make_shared<const E>(std::move(event))},
          .error = {}};
}

/// The work is done and there is nothing to tell the instance.
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
      timeout{};       ///< per attempt; then the handler is asked to stop and the attempt failed
  std::string pool{};  ///< the permit pool that limits it; empty: the engine's workers alone
  /// Where an attempt ignores that its time is over, its permit is free again. Otherwise what the pool stands
  /// for counts as used until the handler has returned.
  bool overdue_frees_permit = false;
  FailureReply
      failed{};  ///< what to send when no retry is left; by default the work is only logged as failed
  /// The work is not run here: somebody claims it (`Engine::claim`) and keeps it as long as each heartbeat
  /// comes within this time of the one before. Such work takes no permit.
  std::optional<Duration> lease{};
  /// So many attempts that a crash cut off are followed by another one, also where the policy has no retry
  /// left: for work that is idempotent, but whose failures somebody else decides on. Not endless, because the
  /// work may be what crashes the program.
  std::uint32_t again_after_crash = 0;
  /// Called when the end of a piece of work is durable, with the instance after it; like `done` of
  /// `Engine::submit`. Not called for work that was cancelled or whose instance has finished.
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
  /// The same of a definition that was changed, such as a table that serves under several names.
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
  /// The same by the machine's name, for a handler that reads its payload itself.
  Machines& add_work(std::string_view machine, std::string name, Work work);

  /// A permit pool that the work of these machines uses. `EngineOptions::pools` may give it another size.
  Machines& add_pool(std::string name, std::uint32_t size) {
    pools_.emplace(std::move(name), size);
    return *this;
  }

  /// Checks the whole. Errors: `duplicate_machine`, `unknown_machine`, `duplicate_instance` for a work
  /// registered twice, and what a retry policy is refused with.
  Result<void> validate() const;

  const std::vector<Entry>& entries() const { return entries_; }
  const std::map<std::string, std::uint32_t>& pools() const { return pools_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::uint32_t> pools_;
  std::vector<Error> problems_;
};

}  // namespace pawl
