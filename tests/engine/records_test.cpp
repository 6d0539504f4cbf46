// SPDX-License-Identifier: Apache-2.0
#include "kernel/engine/records.hpp"

#include <gtest/gtest.h>

#include "pawl/codec.hpp"

namespace {

using pawl::Duration;
using pawl::Extras;
using pawl::Time;

const Time kAsked = Time(Duration(1'763'250'000'000'000));

Extras one_piece_of_work() {
  return {
      .work = {
          {.number = 2048, .name = "charge", .payload = R"({"cents":7})", .asked = kAsked, .attempt = 1}}};
}

const std::string kWork = R"({"number":2048,"name":"charge","payload":"{\"cents\":7}",)"
                          R"("asked":"2025-11-15T23:40:00.000000Z","attempt":1})";

TEST(Records, WhatIsEmptyIsNotWritten) {
  EXPECT_EQ(pawl::encode(one_piece_of_work()).value(), R"({"work":[)" + kWork + "]}");
}

TEST(Records, WhatOlderReleasesWroteIsRead) {
  EXPECT_EQ(pawl::decode<Extras>(R"({"timers":[],"work":[)" + kWork + R"(],"outbox":[]})").value(),
            one_piece_of_work());
}

TEST(Records, EveryPartIsReadAsItWasWritten) {
  const Extras all{
      .timers = {{.name = "late",
                  .generation = 3,
                  .due = kAsked + Duration(1),
                  .set = kAsked,
                  .event = "Late",
                  .payload = "{}"}},
      .work = one_piece_of_work().work,
      .outbox = {{.number = 2049, .machine = "stock", .key = "lamp", .event = "Reserve", .payload = "{}"}},
      .queue = pawl::QueueRecord{.pool = "line", .priority = -1, .asked = kAsked}};
  EXPECT_EQ(pawl::decode<Extras>(pawl::encode(all).value()).value(), all);
}

TEST(Records, WhatIsBrokenSaysWhere) {
  EXPECT_EQ(pawl::decode<Extras>(R"({"work":[{"number":"x"}]})").error().message(),
            "$.work[0].number: expected integer, got string");
}

}  // namespace
