// SPDX-License-Identifier: Apache-2.0
#include "pawl/fire.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pawl {

Error refusal(Verdict verdict, const Refused& refused) {
  const auto subject = refused.key.empty() ? std::string(refused.machine)
                                           : fmt::format("{} \"{}\"", refused.machine, refused.key);
  const auto legal = fmt::format("{}", fmt::join(refused.legal, ", "));
  const auto is = fmt::format("{} is {}", subject, refused.state);
  std::vector<Error::Field> fields{{"machine", std::string(refused.machine)},
                                   {"key", std::string(refused.key)},
                                   {"state", std::string(refused.state)},
                                   {"event", std::string(refused.event)},
                                   {"legal", legal}};
  if (refused.finished) {
    return {Code::finished_instance,
            fmt::format("{}, which is final: it accepts nothing more, not {}", is, refused.event),
            std::move(fields)};
  }
  if (verdict == Verdict::guarded) {
    return {Code::guard_refused, fmt::format("{}: a guard refused {}", is, refused.event), std::move(fields)};
  }
  return {Code::illegal_event, fmt::format("{}: it does not accept {}; legal: {}", is, refused.event, legal),
          std::move(fields)};
}

}  // namespace pawl
