// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The machine of the engine's benchmarks: about 200 bytes of data, an event of about 120, a guard and an
/// update in every transition.

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "pawl/machine.hpp"
#include "pawl/verify.hpp"

namespace bench {

enum class Meter { idle, charging };

struct Session {
  std::string station = "DE-4411-berlin-mitte-07";
  std::string tariff = "night-and-weekend-2026";
  std::string driver = "f3b1c2d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d";
  std::int64_t watt_hours = 0;
  std::int64_t cents = 0;
  std::uint32_t readings = 0;
  std::string last_reading = "2026-01-01T00:00:00Z";
};

struct Reading {
  std::uint32_t watt_hours = 0;
  std::uint32_t cents = 0;
  std::string at = "2026-03-14T15:09:26Z";
  std::string meter = "keba-p30-17.419.322-connector-2";
};

inline constexpr auto meter = [] {
  constexpr auto plausible = pawl::when([](const Session& session, const Reading& reading) {
    return reading.watt_hours < 100'000 && session.watt_hours >= 0;
  });
  constexpr auto add = [](Session& session, const Reading& reading) {
    session.watt_hours += reading.watt_hours;
    session.cents += reading.cents;
    session.readings += 1;
    session.last_reading = reading.at;
  };
  return pawl::machine<Meter, Session>("meter")
      .initial(Meter::idle)
      .on<Reading>(Meter::idle, Meter::charging, plausible, add)
      .on<Reading>(Meter::charging, Meter::idle, plausible, add)
      .endless();
}();
static_assert(pawl::verified<meter>);

/// 24 bytes.
inline std::string key_of(std::uint64_t number) { return fmt::format("meter-{:018}", number); }

}  // namespace bench
