// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Streams of readers who may be shut out while they read.

#include <functional>
#include <memory>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/runtime.hpp"

namespace pawl::server {

/// Asks again for each reader after something about users, tokens or logins has changed, and now and then,
/// because some of them end by themselves. Who would not be let in any more gets an end and nothing else.
/// Thread-safe.
class Watch {
 public:
  using Check = std::function<Result<void>(const http::Request&, const http::Route&)>;

  Watch(Runtime& runtime, Duration at_least_every, Check check);

  /// The same stream, watched. The route must outlive it.
  std::shared_ptr<http::Stream> over(std::shared_ptr<http::Stream> stream,
                                     std::shared_ptr<const http::Request> request, const http::Route& route);

  /// Wakes every stream, so that its reader is looked at now. Not on a thread that does I/O.
  void changed();

 private:
  struct Readers;
  class Watched;
  std::shared_ptr<Readers> readers_;
};

}  // namespace pawl::server
