// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A flow: an ordered list of durable steps.
///
///     struct Order { std::string sku; int cents = 0; };
///     struct Shipment { std::string charge; std::string parcel; };
///
///     pawl::Outcome charge(pawl::Step& step, const Order& order, Shipment& shipment) {
///       if (order.cents > 100'000) return pawl::Outcome::abort("over the limit");
///       PAWL_TRY(shipment.charge, bank.charge(step.request_id(), order.cents));   // an error: tried again
///       return pawl::Outcome::done();
///     }
///
///     const auto ship = pawl::flow<Order, Shipment>("ship")
///                           .start("charge", charge, {.retry = {.retries = 5}, .timeout = 10s})
///                           .undo(refund)
///                           .to("pack", pack)
///                           .end();
///
/// A step gets the request and the response as the steps before have left it. What it makes of the response
/// becomes durable together with its outcome, before the next step begins. A step may be run again after a
/// crash: what it does outside must be idempotent, and `step.request_id()` is there for that.
/// `pawl/flows.hpp` runs flows.

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

/// What a step has come to. An error converts to it and means: try again, as the retry policy says.
class Outcome {
 public:
  enum class Kind : std::uint8_t { done, join, handoff, abort, unrecoverable, rewind, again };

  /// The next step follows.
  static Outcome done() { return Outcome(Kind::done, {}); }
  /// The next step follows once every child that this step started has ended, however it ended.
  static Outcome join() { return Outcome(Kind::join, {}); }
  /// There is nothing left to do: the remaining steps are skipped, the response is kept.
  static Outcome handoff(std::string reason) { return Outcome(Kind::handoff, std::move(reason)); }
  /// It must not go on: no retry, the run ends as aborted.
  static Outcome abort(std::string reason) { return Outcome(Kind::abort, std::move(reason)); }
  /// It cannot succeed: no retry, the run ends as failed.
  static Outcome unrecoverable(std::string reason, FailureKind kind = FailureKind::system) {
    Outcome made(Kind::unrecoverable, std::move(reason));
    made.kind_of_failure_ = kind;
    return made;
  }
  /// Goes back to an earlier step, as often as `StepOptions::rewinds` allows; then the run fails.
  static Outcome rewind(std::string step, std::string reason) {
    Outcome made(Kind::rewind, std::move(reason));
    made.step_ = std::move(step);
    return made;
  }
  Outcome(Error error) : kind_(Kind::again), error_(std::move(error)) {}
  Outcome(std::unexpected<Error> error) : Outcome(std::move(error).error()) {}

  Kind kind() const { return kind_; }
  const std::string& reason() const { return reason_; }
  const std::string& step() const { return step_; }  ///< of a rewind
  FailureKind kind_of_failure() const { return kind_of_failure_; }
  const std::optional<Error>& error() const { return error_; }  ///< of what is to be tried again

 private:
  Outcome(Kind kind, std::string reason) : kind_(kind), reason_(std::move(reason)) {}
  Kind kind_;
  std::string reason_;
  std::string step_;
  FailureKind kind_of_failure_ = FailureKind::system;
  std::optional<Error> error_;
};

/// What a step is told, and what it can ask for. Valid during the call; used by its thread only.
class Step {
 public:
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  virtual const std::string& flow() const = 0;
  virtual const std::string& id() const = 0;
  virtual const std::string& run_ulid() const = 0;
  virtual const std::string& name() const = 0;
  virtual std::uint32_t attempt() const = 0;  ///< counts executions, interrupted ones included
  /// Set when the run is cancelled, the attempt out of time, or the engine stops.
  virtual std::stop_token stop() const = 0;
  virtual Time now() const = 0;  ///< of the runtime's clock
  /// The same for every attempt at this step: what makes a call to the outside idempotent.
  virtual std::string request_id() const = 0;

  /// A statement on the application's own tables that becomes durable together with this step's outcome, or
  /// not at all. Where it is refused (a constraint, `Sql::expect`), the attempt has failed with that error.
  /// What an attempt that is to be repeated has asked for is dropped.
  virtual void sql(Sql statement) = 0;
  /// Rows of the application's own tables. Errors: those of `Engine::query`.
  virtual Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement) = 0;

  /// How far this attempt is, from 0 to 1; shown to people, not logged.
  virtual void progress(double fraction, std::string_view text = {}) = 0;

  /// Starts a run as a child of this one, once: a repeat of this step with the same `options.id` finds the
  /// run that it started before. An id is needed. Errors: those of `Flows::start`.
  virtual Result<Run> start_child(std::string_view flow, const std::string& request, RunOptions options) = 0;
  template <class Request>
  Result<Run> start_child(std::string_view flow, const Request& request, RunOptions options) {
    PAWL_TRY(const auto text, encode(request));
    return start_child(flow, text, std::move(options));
  }
  /// A child, or any other run. Errors: those of `Flows::get`.
  virtual Result<Run> get(std::string_view flow, std::string_view id) = 0;

 protected:
  Step() = default;
};

/// How a step is run.
struct StepOptions {
  /// Three retries: after 100 ms, 200 ms and 400 ms.
  RetryPolicy retry{.retries = 3,
                    .first = std::chrono::milliseconds(100),
                    .factor = 2.0,
                    .cap = std::chrono::seconds(5),
                    .jitter = Jitter::none};
  std::optional<Duration> timeout{};  ///< per attempt
  std::string pool{};                 ///< the permit pool that limits it over all runs and flows
  std::uint32_t rewinds = 3;          ///< how often it may send a run back
};

/// How a step that somebody else does is offered; see `Flows::claim`.
struct RemoteOptions {
  RetryPolicy retry = StepOptions{}.retry;
  std::optional<Duration> timeout{};          ///< per attempt, however many heartbeats come
  Duration lease = std::chrono::seconds(30);  ///< the longest time between two heartbeats
  std::uint32_t rewinds = 3;
};

/// A flow without its types, as the service runs it. A value that is not changed once it is made.
struct FlowDefinition {
  struct Returned {
    Outcome outcome;
    std::optional<std::string> response{};  ///< JSON, where the step changed it
  };
  using Function = std::function<Returned(Step& step, const RunData& data)>;
  struct StepDefinition {
    std::string name;
    Function run{};  ///< empty: somebody else does it
    Function undo{};
    StepOptions options{};
    std::optional<Duration> lease{};
    bool finalizer = false;
  };
  /// A step that older runs may still be at: they go on at `at`. A renamed step is done there, a removed one
  /// is passed over.
  struct RenamedStep {
    std::string name;
    std::string at;
  };

  std::string name;
  std::vector<std::string> former_names{};
  std::vector<StepDefinition> steps{};  ///< finalizers last
  std::vector<RenamedStep> former_steps{};
  Readers readers = Readers::viewers;  ///< who sees requests, responses and error texts through the API
  std::function<Result<void>(std::string_view json)> check_request{};
  std::function<Result<void>(std::string_view json)> check_response{};
  std::vector<Error> problems{};

  /// The number of a step by its present or a former name.
  std::optional<std::size_t> find(std::string_view step) const;
  /// Errors: `invalid_argument` for a name that cannot be one, no step, a name used twice, or a former step
  /// that goes on nowhere; what a retry policy is refused with.
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

/// Builds a flow; see the head of this file. Problems are kept and reported by `Flows::add`.
template <class Request, class Response>
class FlowBuilder {
 public:
  using Binder = std::function<Result<void>(Request&, std::string_view upstream)>;

  explicit FlowBuilder(std::string name) { made_.name = std::move(name); }

  /// The first step.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder start(std::string name, F function, StepOptions options = {}) && {
    if (!made_.steps.empty()) problem("start(\"" + name + "\") comes first and once; use to()");
    return std::move(*this).to(std::move(name), std::move(function), std::move(options));
  }
  /// The next step.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder to(std::string name, F function, StepOptions options = {}) && {
    add({.name = std::move(name), .run = erase(std::move(function)), .options = std::move(options)});
    return std::move(*this);
  }
  /// The next step, which somebody else does, in another process or language.
  FlowBuilder remote(std::string name, RemoteOptions options = {}) && {
    add({.name = std::move(name),
         .options = {.retry = options.retry, .timeout = options.timeout, .rewinds = options.rewinds},
         .lease = options.lease});
    return std::move(*this);
  }
  /// How the step before is undone when the run fails, is aborted or cancelled after it has begun. The steps
  /// are undone in reverse order, each with the retry policy of its step. It must be idempotent, and cope
  /// with a step that has done nothing yet.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder undo(F function) && {
    if (made_.steps.empty() || made_.steps.back().finalizer) {
      problem("undo() belongs behind a step");
    } else {
      made_.steps.back().undo = erase(std::move(function));
    }
    return std::move(*this);
  }
  /// Runs at the end, whatever it is, after everything was undone. What fails here is noted and does not
  /// change the end.
  template <std::invocable<Step&, const Request&, Response&> F>
  FlowBuilder finally(std::string name, F function, StepOptions options = {}) && {
    add({.name = std::move(name),
         .run = erase(std::move(function)),
         .options = std::move(options),
         .finalizer = true});
    return std::move(*this);
  }

  /// What a run that comes after another takes over from that one's response, before each of its steps.
  template <class UpstreamResponse, std::invocable<Request&, const UpstreamResponse&> F>
  FlowBuilder bind(F function) && {
    *binder_ = [function = std::move(function)](Request& request, std::string_view text) -> Result<void> {
      PAWL_TRY(const auto upstream, decode<UpstreamResponse>(text));
      function(request, upstream);
      return {};
    };
    return std::move(*this);
  }

  /// Requests, responses and error texts hold secrets, and are shown to these only. Whoever claims a step
  /// gets its request, so claims need the same role.
  FlowBuilder confidential(Readers readers = Readers::operators) && {
    made_.readers = readers;
    return std::move(*this);
  }

  /// The flow's name in older releases.
  FlowBuilder formerly(std::string name) && {
    made_.former_names.push_back(std::move(name));
    return std::move(*this);
  }
  /// Runs that are at the step `former` go on at `present`.
  FlowBuilder renamed(std::string former, std::string present) && {
    made_.former_steps.push_back({std::move(former), std::move(present)});
    return std::move(*this);
  }
  FlowBuilder removed(std::string former, std::string next) && {
    return std::move(*this).renamed(std::move(former), std::move(next));
  }

  Flow<Request, Response> end() && {
    made_.check_request = [](std::string_view text) -> Result<void> {
      PAWL_CHECK(decode_strictly<Request>(text));
      return {};
    };
    made_.check_response = [](std::string_view text) -> Result<void> {
      PAWL_CHECK(decode<Response>(text));
      return {};
    };
    return Flow<Request, Response>(std::move(made_));
  }

 private:
  void add(FlowDefinition::StepDefinition step) {
    if (!step.finalizer && !made_.steps.empty() && made_.steps.back().finalizer)
      problem("step \"" + step.name + "\" stands behind finally(); those come last");
    made_.steps.push_back(std::move(step));
  }
  void problem(std::string text) { made_.problems.emplace_back(Code::invalid_argument, std::move(text)); }

  template <class F>
  FlowDefinition::Function erase(F function) {
    return [function = std::move(function), binder = binder_](
               Step& step, const RunData& data) -> FlowDefinition::Returned {
      auto request = decode<Request>(data.request.text);
      if (!request) return {unusable("request", request.error())};
      if (*binder && data.plan && data.plan->after && data.plan->after->response) {
        if (auto bound = (*binder)(*request, data.plan->after->response->text); !bound)
          return {unusable("upstream response", bound.error())};
      }
      Response response{};
      if (data.response.text != "null") {
        auto stored = decode<Response>(data.response.text);
        if (!stored) return {unusable("response", stored.error())};
        response = *std::move(stored);
      }
      auto outcome = function(step, std::as_const(*request), response);
      auto text = encode(response);
      if (!text) return {unusable("response", text.error())};
      return {std::move(outcome), *std::move(text)};
    };
  }
  static Outcome unusable(std::string_view what, const Error& why) {
    return Outcome::unrecoverable("the " + std::string(what) + " cannot be used: " + why.to_string(),
                                  FailureKind::user);
  }

  FlowDefinition made_;
  std::shared_ptr<Binder> binder_ = std::make_shared<Binder>();
};

/// Begins a flow. The request and the response must be encodable (`pawl/codec.hpp`).
template <class Request, class Response>
FlowBuilder<Request, Response> flow(std::string name) {
  return FlowBuilder<Request, Response>(std::move(name));
}

}  // namespace pawl
