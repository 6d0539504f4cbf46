// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Replies that may take long, such as waiting for the end of a run. A server that stops answers them at once
/// instead of waiting.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "pawl/http.hpp"

namespace pawl::server {

/// Thread-safe.
class Waits {
 public:
  Waits() : state_(std::make_shared<State>()) {}

  /// A reply to use in place of `reply`; calling it after the destruction of this is a no-op.
  http::Reply hold(http::Reply reply);
  /// Refuses all waiting and later replies with `stopped`.
  void close();

 private:
  struct State {
    std::mutex mutex;
    bool closed = false;
    std::uint64_t last = 0;
    std::map<std::uint64_t, http::Reply> replies;
  };
  std::shared_ptr<State> state_;
};

}  // namespace pawl::server
