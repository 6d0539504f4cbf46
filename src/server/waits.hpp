// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Answers that may take long, such as that of a request that waits for the end of a run. A server that stops
/// does not wait for them: it gives them at once.

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

  /// What to call in place of `reply`; it may be called when this is gone, and does nothing then.
  http::Reply hold(http::Reply reply);
  /// Refuses all that wait with `stopped`, and what comes later.
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
