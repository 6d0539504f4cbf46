// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A flow: an ordered list of durable steps.
///
///     struct Order { std::string sku; int cents = 0; };
///     struct Shipment { std::string charge; std::string parcel; };
///
///     pawl::Outcome charge(pawl::Step& step, const Order& order, Shipment& shipment) {
///       if (order.cents > 100'000) return pawl::Outcome::abort("over the limit");
///       PAWL_TRY(shipment.charge, bank.charge(step.request_id(), order.cents));   // an error: retried
///       return pawl::Outcome::done();
///     }
///
///     const auto ship = pawl::flow<Order, Shipment>("ship")
///                           .start("charge", charge, {.retry = {.retries = 5}, .timeout = 10s})
///                           .undo(refund)
///                           .to("pack", pack)
///                           .end();
///
/// A step gets the request, and the response as the previous steps left it. Its changes to the response
/// become durable together with its outcome, before the next step starts. A step may run again after a crash,
/// so its external effects must be idempotent; use `step.request_id()` for that. `pawl/flows.hpp` runs flows.

#include <concepts>
#include <cstddef>
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
#include "pawl/error.hpp"
#include "pawl/machine.hpp"
#include "pawl/retry.hpp"
#include "pawl/run.hpp"
#include "pawl/sql.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Outcome of a step. An error converts to it and means: retry as the retry policy says.
class Outcome {
 public:
  enum class Kind : std::uint8_t { done, join, handoff, abort, unrecoverable, rewind, again };

  /// The next step follows.
  static Outcome done() { return Outcome(Kind::done, {}); }
  /// The next step follows once every child that this step started has ended, in whatever state.
  static Outcome join() { return Outcome(Kind::join, {}); }
  /// Nothing is left to do: the remaining steps are skipped, the response is kept.
  static Outcome handoff(std::string reason) { return Outcome(Kind::handoff, std::move(reason)); }
  /// The run must not continue: no retry, the run ends as aborted.
  static Outcome abort(std::string reason) { return Outcome(Kind::abort, std::move(reason)); }
  /// The step cannot succeed: no retry, the run ends as failed.
  static Outcome unrecoverable(std::string reason, FailureKind kind = FailureKind::system) {
    Outcome outcome(Kind::unrecoverable, std::move(reason));
    outcome.failure_kind_ = kind;
    return outcome;
  }
  /// Goes back to an earlier step, as often as `StepOptions::rewinds` allows; then the run fails.
  static Outcome rewind(std::string step, std::string reason) {
    Outcome outcome(Kind::rewind, std::move(reason));
    outcome.step_ = std::move(step);
    return outcome;
  }
  Outcome(Error error) : kind_(Kind::again), error_(std::move(error)) {}
  Outcome(std::unexpected<Error> error) : Outcome(std::move(error).error()) {}

  Kind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  const std::string& step() const { return step_; }  ///< of a rewind
  FailureKind failure_kind() const { return failure_kind_; }
  const std::optional<Error>& error() const { return error_; }  ///< if the step is to be retried

 private:
  Outcome(Kind kind, std::string reason) : kind_(kind), reason_(std::move(reason)) {}
  Kind kind_;
  std::string reason_;
  std::string step_;
  FailureKind failure_kind_ = FailureKind::system;
  std::optional<Error> error_;
};

/// Context of a running step. Valid during the call; for the calling thread only.
class Step {
 public:
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  virtual const std::string& flow() const = 0;
  virtual const std::string& id() const = 0;
  virtual const std::string& run_ulid() const = 0;
  virtual const std::string& name() const = 0;
  virtual std::uint32_t attempt() const = 0;  ///< number of executions so far, including interrupted ones
  /// Requested when the run is cancelled, the attempt times out, or the engine stops.
  virtual std::stop_token stop() const = 0;
  virtual Time now() const = 0;  ///< of the runtime's clock
  /// The same for every attempt at this step; makes calls to external services idempotent.
  virtual std::string request_id() const = 0;

  /// Adds a statement on the application's own tables, which becomes durable together with this step's
  /// outcome or not at all. If it is refused (a constraint, `Sql::expect`), the attempt fails with that
  /// error. The statements of an attempt that fails are dropped.
  virtual void sql(Sql statement) = 0;
  /// Reads rows of the application's own tables. Errors: those of `Engine::query`.
  virtual Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement) = 0;

  /// Reports the progress of this attempt, from 0 to 1; shown to users, not logged.
  virtual void progress(double fraction, std::string_view text = {}) = 0;

  /// Starts a run as a child of this run. Idempotent: a repeat of this step with the same `options.id`
  /// returns the run that it started before. `options.id` is required. Errors: those of `Flows::start`.
  virtual Result<Run> start_child(std::string_view flow, const std::string& request, RunOptions options) = 0;
  template <class Request>
  Result<Run> start_child(std::string_view flow, const Request& request, RunOptions options) {
    PAWL_TRY(const auto text, encode(request));
    return start_child(flow, text, std::move(options));
  }
  /// Returns a child, or any other run. Errors: those of `Flows::get`.
  virtual Result<Run> get(std::string_view flow, std::string_view id) = 0;

 protected:
  Step() = default;
};

/// How to run a step.
struct StepOptions {
  /// Three retries: after 100 ms, 200 ms and 400 ms.
  RetryPolicy retry{.retries = 3,
                    .first = std::chrono::milliseconds(100),
                    .factor = 2.0,
                    .cap = std::chrono::seconds(5),
                    .jitter = Jitter::none};
  std::optional<Duration> timeout{};  ///< per attempt
  std::string pool{};                 ///< the permit pool that limits this step across all runs and flows
  std::uint32_t rewinds = 3;          ///< how often it may rewind a run
};

/// How to offer a step to external workers; see `Flows::claim`.
struct RemoteOptions {
  RetryPolicy retry = StepOptions{}.retry;
  std::optional<Duration> timeout{};          ///< per attempt, regardless of heartbeats
  Duration lease = std::chrono::seconds(30);  ///< the longest time between two heartbeats
  std::uint32_t rewinds = 3;
};

/// A type-erased flow, as `Flows` runs it. Immutable once built.
struct FlowDefinition {
  struct Returned {
    Outcome outcome;
    std::optional<std::string> response{};  ///< JSON, if the step changed it
  };
  using Function = std::function<Returned(Step& step, const RunData& data)>;
  struct StepDefinition {
    std::string name;
    Function run{};  ///< empty: an external worker does it
    Function undo{};
    StepOptions options{};
    std::optional<Duration> lease{};
    bool finalizer = false;
  };
  /// A former step at which older runs may still be: they continue at `at`.
  struct RenamedStep {
    std::string name;
    std::string at;
  };

  std::string name;
  std::vector<std::string> former_names{};
  std::vector<StepDefinition> steps{};  ///< finalizers last
  std::vector<RenamedStep> former_steps{};
  Readers readers = Readers::viewers;  ///< roles that see requests, responses and error texts through the API
  std::function<Result<void>(std::string_view json)> check_request{};
  std::function<Result<void>(std::string_view json)> check_response{};
  std::vector<Error> problems{};

  /// Index of a step by its current or a former name.
  std::optional<std::size_t> find(std::string_view step) const;
  /// Errors: `invalid_argument` for an invalid name, a missing step, a duplicate name, or a former step
  /// without a successor; those of `validate(RetryPolicy)`.
  Result<void> validate() const;
};

/// A flow with its types. Cheap to copy; safe to share.
template <class Request, class Response>
class Flow {
 public:
  explicit Flow(FlowDefinition definition)
      : definition_(std::make_shared<const FlowDefinition>(std::move(definition))) {}
  const std::string& name() const { return definition_->name; }
  const std::shared_ptr<const FlowDefinition>& definition() const { return definition_; }

 private:
  std::shared_ptr<const FlowDefinition> definition_;
};

/// Builds a flow; see the top of this file. Problems are collected and reported by `Flows::validate`.
template <class Request, class Response>
class FlowBuilder {
 public:
  using Binder = std::function<Result<void>(Request&, std::string_view upstream)>;

  explicit FlowBuilder(std::string name) { definition_.name = std::move(name); }

  /// The first step.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder start(std::string name, F function, StepOptions options = {}) && {
    if (!definition_.steps.empty()) problem("start(\"" + name + "\") comes first and once; use to()");
    return std::move(*this).to(std::move(name), std::move(function), std::move(options));
  }
  /// The next step.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder to(std::string name, F function, StepOptions options = {}) && {
    add({.name = std::move(name), .run = erase(std::move(function)), .options = std::move(options)});
    return std::move(*this);
  }
  /// The next step, done by an external worker in another process or language.
  FlowBuilder remote(std::string name, RemoteOptions options = {}) && {
    add({.name = std::move(name),
         .options = {.retry = options.retry, .timeout = options.timeout, .rewinds = options.rewinds},
         .lease = options.lease});
    return std::move(*this);
  }
  /// Undoes the previous step if the run fails, is aborted or is cancelled after that step has started. Steps
  /// are undone in reverse order, each with the retry policy of its step. `function` must be idempotent, and
  /// must handle a step that has done nothing yet.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder undo(F function) && {
    if (definition_.steps.empty() || definition_.steps.back().finalizer) {
      problem("undo() must follow a step");
    } else {
      definition_.steps.back().undo = erase(std::move(function));
    }
    return std::move(*this);
  }
  /// Runs at the end of every run, after the steps are undone. A failure is recorded and does not change how
  /// the run ends.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder finally(std::string name, F function, StepOptions options = {}) && {
    add({.name = std::move(name),
         .run = erase(std::move(function)),
         .options = std::move(options),
         .finalizer = true});
    return std::move(*this);
  }

  /// Copies values from the upstream run's response into the request, before each step of a dependent run.
  template <class UpstreamResponse, std::invocable<Request&, const UpstreamResponse&> F>
  FlowBuilder bind(F function) && {
    *binder_ = [function = std::move(function)](Request& request, std::string_view text) -> Result<void> {
      PAWL_TRY(const auto upstream, decode<UpstreamResponse>(text));
      function(request, upstream);
      return {};
    };
    return std::move(*this);
  }

  /// Shows requests, responses and error texts to this role only. A claim returns the request of its step, so
  /// it needs the same role.
  FlowBuilder confidential(Readers readers = Readers::operators) && {
    definition_.readers = readers;
    return std::move(*this);
  }

  /// A name of the flow in older releases.
  FlowBuilder formerly(std::string name) && {
    definition_.former_names.push_back(std::move(name));
    return std::move(*this);
  }
  /// Runs at the step `former` continue at `present`.
  FlowBuilder renamed(std::string former, std::string present) && {
    definition_.former_steps.push_back({std::move(former), std::move(present)});
    return std::move(*this);
  }
  FlowBuilder removed(std::string former, std::string next) && {
    return std::move(*this).renamed(std::move(former), std::move(next));
  }

  Flow<Request, Response> end() && {
    definition_.check_request = [](std::string_view text) -> Result<void> {
      PAWL_CHECK(decode_strictly<Request>(text));
      return {};
    };
    definition_.check_response = [](std::string_view text) -> Result<void> {
      PAWL_CHECK(decode<Response>(text));
      return {};
    };
    return Flow<Request, Response>(std::move(definition_));
  }

 private:
  void add(FlowDefinition::StepDefinition step) {
    if (!step.finalizer && !definition_.steps.empty() && definition_.steps.back().finalizer)
      problem("step \"" + step.name + "\" follows finally(); those come last");
    definition_.steps.push_back(std::move(step));
  }
  void problem(std::string text) {
    definition_.problems.emplace_back(Code::invalid_argument, std::move(text));
  }

  template <class F>
  FlowDefinition::Function erase(F function) {
    return [function = std::move(function), binder = binder_](
               Step& step, const RunData& data) -> FlowDefinition::Returned {
      auto request = decode<Request>(data.request.text);
      if (!request) return {invalid("request", request.error())};
      if (*binder && data.plan && data.plan->after && data.plan->after->response) {
        if (auto bound = (*binder)(*request, data.plan->after->response->text); !bound)
          return {invalid("upstream response", bound.error())};
      }
      Response response{};
      if (data.response.text != "null") {
        auto stored = decode<Response>(data.response.text);
        if (!stored) return {invalid("response", stored.error())};
        response = *std::move(stored);
      }
      auto outcome = function(step, std::as_const(*request), response);
      auto text = encode(response);
      if (!text) return {invalid("response", text.error())};
      return {std::move(outcome), *std::move(text)};
    };
  }
  static Outcome invalid(std::string_view what, const Error& why) {
    return Outcome::unrecoverable("the " + std::string(what) + " is invalid: " + why.to_string(),
                                  FailureKind::user);
  }

  FlowDefinition definition_;
  std::shared_ptr<Binder> binder_ = std::make_shared<Binder>();
};

/// Starts the definition of a flow. The request and the response must be encodable (`pawl/codec.hpp`).
template <class Request, class Response>
FlowBuilder<Request, Response> flow(std::string name) {
  return FlowBuilder<Request, Response>(std::move(name));
}

}  // namespace pawl
