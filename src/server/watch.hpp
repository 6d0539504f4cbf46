// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ends streams whose reader loses access while reading.

#include <functional>
#include <memory>

#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/runtime.hpp"

namespace pawl::server {

/// Authorizes each reader again after a change of users, tokens or logins, and periodically, because tokens
/// and logins expire. A reader that has lost access gets an end event and nothing else. Thread-safe.
class Watch {
 public:
  using Check = std::function<Result<void>(const http::Request&, const http::Route&)>;

  Watch(Runtime& runtime, Duration at_least_every, Check check);

  /// Wraps the stream. The route must outlive it.
  std::shared_ptr<http::Stream> over(std::shared_ptr<http::Stream> stream,
                                     std::shared_ptr<const http::Request> request, const http::Route& route);

  /// Wakes every stream, so that its reader is authorized again now. Not on an I/O thread.
  void changed();

 private:
  struct Readers;
  class Watched;
  std::shared_ptr<Readers> readers_;
};

}  // namespace pawl::server
