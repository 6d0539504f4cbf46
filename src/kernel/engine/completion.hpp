// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Callbacks that are always answered, and waiting for one.
///
///     void load(std::string name, Completion<Page> done);
///
///     const auto page = await<Page>(runtime, [&](auto done) { load("a", std::move(done)); });
///
/// A lane that is destroyed drops the tasks that it has not run. A callback that such a task owns is answered
/// `stopped`, so that no caller waits forever.

#include <concepts>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "pawl/assert.hpp"
#include "pawl/error.hpp"
#include "pawl/runtime.hpp"

namespace pawl {

namespace detail {

/// The error `stopped` of a callback that is destroyed without an outcome.
std::unexpected<Error> dropped();

}  // namespace detail

/// A callback that is called exactly once: with the outcome, or with `stopped` when it is destroyed without
/// one. Used by one thread at a time.
template <class T>
class Completion {
 public:
  using Function = std::move_only_function<void(Result<T>)>;

  Completion() = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Completion> && std::constructible_from<Function, F>)
  explicit(false) Completion(F&& function) : function_(std::forward<F>(function)) {}
  Completion(Completion&& other) noexcept : function_(std::exchange(other.function_, nullptr)) {}
  Completion& operator=(Completion&& other) noexcept {
    std::swap(function_, other.function_);
    return *this;
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  ~Completion() {
    if (function_) function_(detail::dropped());
  }

  /// False: it was answered, or holds no function.
  explicit operator bool() const { return function_ != nullptr; }

  void operator()(Result<T> outcome) {
    PAWL_ASSERT(function_ != nullptr, "a callback is answered once");
    std::exchange(function_, nullptr)(std::move(outcome));
  }

 private:
  Function function_;
};

/// Calls `begin` with a callback and blocks until it is answered or dropped. Not from a task of a lane.
template <class T, class Begin>
Result<T> await(Runtime& runtime, Begin begin) {
  struct Slot {
    Gate gate;
    Result<T> outcome = detail::dropped();
  };
  /// Small enough to be kept in a `std::move_only_function` without another allocation.
  class Callback {
   public:
    explicit Callback(std::shared_ptr<Slot> slot) : slot_(std::move(slot)) {}
    Callback(Callback&&) noexcept = default;
    Callback& operator=(Callback&&) = delete;
    ~Callback() {
      if (slot_) slot_->gate.open();
    }
    void operator()(Result<T> outcome) {
      const auto slot = std::move(slot_);
      slot->outcome = std::move(outcome);
      slot->gate.open();
    }

   private:
    std::shared_ptr<Slot> slot_;
  };
  // Shared with the callback: after a simulated crash the waiter is gone before the lane's last task.
  auto slot = std::make_shared<Slot>();
  begin(Callback(slot));
  runtime.wait(slot->gate);
  return std::move(slot->outcome);
}

}  // namespace pawl
