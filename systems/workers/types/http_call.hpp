// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One HTTP request by libcurl, for `http_check.cpp`.

#include <optional>
#include <stop_token>
#include <string>

#include "pawl/error.hpp"
#include "pawl/time.hpp"
#include "workers/types/http_check.hpp"

namespace pawl::workers {

struct HttpAnswer {
  int status = 0;     ///< 0 if there was no answer
  std::string body;   ///< its first 64 KiB
  std::string error;  ///< why there is no answer; empty if there is one
  Duration taken{};   ///< until the answer's first byte
  std::optional<Time> certificate_expires{};
  bool certificate_expired = false;  ///< the reason why there is no answer
};

/// Error: `cancelled`.
Result<HttpAnswer> ask(const HttpDesired& desired, const std::stop_token& stop);

}  // namespace pawl::workers
