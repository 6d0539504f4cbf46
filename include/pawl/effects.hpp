// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a transition asks for besides the new state and data: timers, work, messages, the application's own
/// rows. An update collects them; all of them become durable in the transition's own commit, or none.
///
///     .on<Place>(Order::cart, Order::placed, [](Cart& cart, const Place&, pawl::Effects& effects) {
///       effects.set_timer("unpaid", 30min, Expire{});
///       effects.work("charge", Charge{.cents = cart.cents});
///       effects.send<stock>(cart.sku, Reserve{.amount = 1});
///       effects.sql({.text = "INSERT INTO placed(id) VALUES(?1)", .rows = {{cart.id}}, .expect = 1});
///     })
///
/// Collecting does nothing by itself: no clock, no I/O. Not thread-safe; lives for one decision.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/machine.hpp"
#include "pawl/sql.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// An event whose machine is known from the context only: its type's full name and its payload as JSON; also
/// itself, where it is at hand, so that it is not decoded.
struct EventValue {
  std::string_view type;
  std::string payload;
  std::shared_ptr<const void> typed{};
};

namespace effect {

/// Sets the named timer, in place of the one of that name if there is one.
struct SetTimer {
  std::string name;
  Duration after;
  EventValue event;
};
struct ClearTimer {
  std::string name;
};
struct Work {
  std::string name;
  std::string payload;
};
/// Drops every pending work of this name; a running one is asked to stop.
struct CancelWork {
  std::string name;
};
/// Pending work of this name ends without another attempt, as failed with `cancelled`: at once where no
/// attempt runs, otherwise when it returns. `interrupt` asks it to stop.
struct StopWork {
  std::string name;
  bool interrupt = true;
};
struct EnterQueue {
  std::string pool;
  std::int32_t priority = 0;
};
struct LeaveQueue {};
struct Message {
  std::string machine;
  std::string key;
  std::string event;
  std::string payload;
};

using Any =
    std::variant<SetTimer, ClearTimer, Work, CancelWork, StopWork, EnterQueue, LeaveQueue, Message, Sql>;

}  // namespace effect

/// Collects effects in the order they are asked for.
class Effects {
 public:
  explicit Effects(Time now, std::string_view machine = {}, std::string_view key = {})
      : now_(now), machine_(machine), key_(key) {}

  /// The time of the commit: log time, which never goes back.
  Time now() const { return now_; }
  /// Whose transition this is.
  std::string_view machine() const { return machine_; }
  std::string_view key() const { return key_; }

  /// After `after`, `event` is sent to this instance. Setting a name again replaces the older timer. Timers
  /// of an instance that finishes are dropped.
  template <class E>
  void set_timer(std::string name, Duration after, const E& event) {
    if (auto payload = encoded(event)) {
      effects_.emplace_back(
          effect::SetTimer{std::move(name), after, {detail::pretty_type<E>(), *std::move(payload), nullptr}});
    }
  }
  void clear_timer(std::string name) { effects_.emplace_back(effect::ClearTimer{std::move(name)}); }

  /// The handler registered under `name` is run with `payload` after the commit: at least once.
  template <class P>
  void work(std::string name, const P& payload) {
    if (auto text = encoded(payload)) effects_.emplace_back(effect::Work{std::move(name), *std::move(text)});
  }
  void cancel_work(std::string name) { effects_.emplace_back(effect::CancelWork{std::move(name)}); }
  /// Ends the work and tells the instance: what `WorkOptions::failed` makes of `cancelled` is sent once no
  /// attempt runs any more. A running one is asked to stop; with `withdraw_work` it may go on to its end.
  void stop_work(std::string name) { effects_.emplace_back(effect::StopWork{std::move(name), true}); }
  void withdraw_work(std::string name) { effects_.emplace_back(effect::StopWork{std::move(name), false}); }

  /// Takes a place in the line of a permit pool. The instance's work waits until it is its turn; then the
  /// permit is the instance's, through all its work, until it leaves or finishes. An instance stands in one
  /// line at a time.
  void enter_queue(std::string pool, std::int32_t priority = 0) {
    effects_.emplace_back(effect::EnterQueue{std::move(pool), priority});
  }
  void leave_queue() { effects_.emplace_back(effect::LeaveQueue{}); }

  /// Sends an event to another instance, of any partition, exactly once; it may be refused there.
  template <const auto& M, class E>
  void send(std::string key, const E& event) {
    static_assert(detail::knows_event<M, E>, "no transition of this machine takes an event of this type");
    if (auto payload = encoded(event)) {
      effects_.emplace_back(effect::Message{std::string(M.traits.name), std::move(key),
                                            std::string(event_name<M, E>()), *std::move(payload)});
    }
  }

  /// The same by names, where the receiver's machine is known at run time only.
  void send(effect::Message message) { effects_.emplace_back(std::move(message)); }

  /// The application's own rows, in the same transaction.
  void sql(Sql statement) { effects_.emplace_back(std::move(statement)); }

  /// What was collected, or the first value that could not be encoded.
  Result<std::vector<effect::Any>> take() {
    if (error_) return fail(*std::move(error_));
    return std::move(effects_);
  }

 private:
  template <class T>
  std::optional<std::string> encoded(const T& value) {
    auto text = encode(value);
    if (text) return *std::move(text);
    if (!error_) error_ = std::move(text).error();
    return std::nullopt;
  }

  Time now_;
  std::string_view machine_;
  std::string_view key_;
  std::vector<effect::Any> effects_;
  std::optional<Error> error_;
};

}  // namespace pawl
