// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Work that is done elsewhere, by another process or in another language: claimed, kept by heartbeats,
/// completed. `WorkOptions::lease` declares such work.
///
///     auto claimed = engine->claim("shipping", {"pack"}, 30s).value();   // waits for work
///     if (claimed) {
///       while (packing()) engine->heartbeat(claimed->lease).value();     // stop if `stop` is set
///       engine->complete(claimed->lease, pawl::reply(Packed{}));
///     }
///
/// All of these are values.

#include <cstdint>
#include <string>

#include "pawl/time.hpp"

namespace pawl {

/// Identifies one attempt at one piece of work. Its holder may complete the work until the lease ends.
struct Lease {
  std::string machine;
  std::string key;
  std::int64_t number = 0;
  std::uint32_t attempt = 0;
};

struct ClaimedWork {
  Lease lease;
  std::string work;        ///< its name
  std::string request_id;  ///< see `WorkContext::request_id`
  std::string payload;     ///< JSON
  std::string data;        ///< of the instance when the attempt began, JSON
  Duration duration{};     ///< the next heartbeat must come within it
};

struct LeaseStatus {
  Duration duration{};
  bool stop = false;  ///< the attempt is asked to stop
};

}  // namespace pawl
