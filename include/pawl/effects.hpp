// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a transition requests besides the new state and data: timers, work, messages, rows of the
/// application. An update collects them; they become durable together with the transition.
///
///     .on<Place>(Order::cart, Order::placed, [](Cart& cart, const Place&, pawl::Effects& effects) {
///       effects.set_timer("unpaid", 30min, Expire{});
///       effects.work("charge", Charge{.cents = cart.cents});
///       effects.send<stock>(cart.sku, Reserve{.amount = 1});
///       effects.sql({.text = "INSERT INTO placed(id) VALUES(?1)", .rows = {{cart.id}}, .expect = 1});
///     })
///
/// Collecting has no side effects. Not thread-safe; valid for one decision.

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

/// An event whose machine follows from the context: the full name of its type and its payload as JSON.
/// `typed` is the event itself, if available, which saves decoding it.
struct EventValue {
  std::string_view type;
  std::string payload;
  std::shared_ptr<const void> typed{};
};

namespace effect {

/// Sets the named timer; replaces an older one of that name.
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
/// Drops all pending work of this name; a running attempt is asked to stop.
struct CancelWork {
  std::string name;
};
/// Pending work of this name ends without another attempt and fails with `cancelled`: at once, or when its
/// running attempt has returned. `interrupt` asks that attempt to stop.
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
  /// The instance whose transition this is.
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

  /// Runs the handler registered under `name` with `payload` after the commit, at least once.
  template <class P>
  void work(std::string name, const P& payload) {
    if (auto text = encoded(payload)) effects_.emplace_back(effect::Work{std::move(name), *std::move(text)});
  }
  void cancel_work(std::string name) { effects_.emplace_back(effect::CancelWork{std::move(name)}); }
  /// Ends the work and tells the instance: once no attempt runs, the event that `WorkOptions::failed` returns
  /// for `cancelled` is sent. `stop_work` asks a running attempt to stop; `withdraw_work` lets it finish.
  void stop_work(std::string name) { effects_.emplace_back(effect::StopWork{std::move(name), true}); }
  void withdraw_work(std::string name) { effects_.emplace_back(effect::StopWork{std::move(name), false}); }

  /// Enters the queue of a permit pool. The instance's work waits until the instance is admitted; it then
  /// keeps the permit through all its work, until it leaves the queue or finishes. An instance is in at most
  /// one queue.
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

  /// The same by names, for a receiver whose machine is known at run time only.
  void send(effect::Message message) { effects_.emplace_back(std::move(message)); }

  /// A statement on the application's tables, in the same transaction.
  void sql(Sql statement) { effects_.emplace_back(std::move(statement)); }

  /// The collected effects, or the error of the first value that could not be encoded.
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
