// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the driver asks for and what it has been told: the record against which the store is audited.

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/random.hpp"
#include "tests/crash/request.hpp"

namespace pawl::crash {

/// A seeded sequence of requests. Not thread-safe.
class Load {
 public:
  explicit Load(std::uint64_t seed) : random_(seed) {}

  /// A new request: first those that create the instances, then increments and transfers.
  const Request& next();
  /// An answer was received whole.
  Result<void> note(const Answer& answer);
  /// One of an owner that has a successor by now, who was asked the same. Only what it says to be durable
  /// counts: a refusal was right when it was made.
  Result<void> note_late(const Answer& answer);

  /// Requests whose outcome is unknown, in their order. They are repeated under the same request id.
  const std::map<std::int64_t, Request>& open() const { return open_; }
  /// Every answer so far, in the order of arrival.
  const std::vector<Answer>& answers() const { return answers_; }
  std::int64_t acknowledged() const { return acknowledged_; }
  const Request& request(std::int64_t number) const { return all_[static_cast<std::size_t>(number - 1)]; }

 private:
  Request draw();

  Random random_;
  std::vector<Request> all_;
  std::map<std::int64_t, Request> open_;
  std::vector<Answer> answers_;
  std::set<std::int64_t> late_;
  std::int64_t acknowledged_ = 0;
};

}  // namespace pawl::crash
