// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pawl/codec.hpp"
#include "tests/workers/types_servers.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/address.hpp"
#include "workers/types/tcp_check.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

constexpr Time kNow{std::chrono::hours(490'000)};

TcpObserved seen(std::uint32_t successes, std::uint32_t failures) {
  return {.check = {.up = successes > 0, .successes = successes, .failures = failures, .error = "refused"}};
}

TEST(TcpCheck, IsHealthyOrNotAfterSoManyChecksInARow) {
  Table<TcpCheck> table;
  const TcpDesired desired{.address = "h:1", .unhealthy_after = 2, .healthy_after = 3};
  EXPECT_EQ(table.next<check::Stopped>({}, desired), "go Checking");
  EXPECT_EQ(table.next<check::Checking>(seen(0, 0), desired), "stay");
  EXPECT_EQ(table.next<check::Checking>(seen(2, 0), desired), "stay");
  EXPECT_EQ(table.next<check::Checking>(seen(3, 0), desired), "go Healthy");
  EXPECT_EQ(table.next<check::Checking>(seen(0, 1), desired), "stay");
  EXPECT_EQ(table.next<check::Checking>(seen(0, 2), desired), "go Unhealthy");
  EXPECT_EQ(table.reason(), "down, 2 in a row: refused");
  EXPECT_EQ(table.next<check::Healthy>(seen(3, 0), desired), "stay");
  EXPECT_EQ(table.next<check::Healthy>(seen(0, 1), desired), "stay");
  EXPECT_EQ(table.reason(), "down, 1 in a row: refused");
  EXPECT_EQ(table.next<check::Healthy>(seen(0, 2), desired), "go Unhealthy");
  EXPECT_EQ(table.next<check::Unhealthy>(seen(0, 2), desired), "stay");
  EXPECT_EQ(table.next<check::Unhealthy>(seen(2, 0), desired), "stay");
  EXPECT_EQ(table.next<check::Unhealthy>(seen(3, 0), desired), "go Healthy");
  EXPECT_EQ(table.stop<check::Checking>({}, desired), "go Stopped");
  EXPECT_EQ(table.stop<check::Healthy>({}, desired), "go Stopped");
  EXPECT_EQ(table.stop<check::Unhealthy>({}, desired), "go Stopped");
  EXPECT_EQ(table.never_given(), "");
}

TEST(TcpCheck, SaysTheSameAsLongAsNothingChanges) {
  const Listener listener;
  CheckRun run;
  const TcpDesired desired{.address = listener.address(), .timeout = 2s, .healthy_after = 2};
  const auto check = [&](Time now) {
    return TcpCheck::collect(run, desired, collect_context(now)).value().check;
  };
  EXPECT_EQ(check(kNow).successes, 1U);
  EXPECT_EQ(check(kNow + 1s).successes, 2U);
  const auto third = check(kNow + 2s);
  EXPECT_TRUE(third.up);
  EXPECT_EQ(third.successes, 2U);
  EXPECT_EQ(third.since, kNow);
  EXPECT_EQ(third.error, "");
  EXPECT_NE(third.latency, Latency::unknown);
}

TEST(TcpCheck, SeesThatNobodyListensAnyMoreAndSinceWhen) {
  Listener listener;
  CheckRun run;
  const TcpDesired desired{.address = listener.address(), .timeout = 2s, .unhealthy_after = 2};
  const auto check = [&](Time now) {
    return TcpCheck::collect(run, desired, collect_context(now)).value().check;
  };
  EXPECT_TRUE(check(kNow).up);
  listener.close();
  EXPECT_EQ(check(kNow + 1s).failures, 1U);
  EXPECT_EQ(check(kNow + 2s).failures, 2U);
  const auto down = check(kNow + 3s);
  EXPECT_FALSE(down.up);
  EXPECT_EQ(down.failures, 2U);
  EXPECT_EQ(down.since, kNow + 1s);
  EXPECT_EQ(down.error, "Connection refused");
  EXPECT_EQ(down.latency, Latency::unknown);
}

/// Fills the queue of a listener that accepts nobody: whoever comes next gets no answer.
class FullListener {
 public:
  FullListener() : listener_(0) {
    const TcpDesired quick{.address = listener_.address(), .timeout = 50ms};
    CheckRun run;
    eventually([&] { return !TcpCheck::collect(run, quick, collect_context(kNow)).value().check.up; });
  }
  std::string address() const { return listener_.address(); }

 private:
  Listener listener_;
};

TEST(TcpCheck, TakesNoAnswerWithinItsTimeAsDown) {
  const FullListener full;
  CheckRun run;
  // The connections that filled the queue are closed, but nobody has accepted them.
  const auto seen_now =
      TcpCheck::collect(run, {.address = full.address(), .timeout = 20ms}, collect_context(kNow)).value();
  EXPECT_FALSE(seen_now.check.up);
  EXPECT_EQ(seen_now.check.error, "no answer within 0.02s");
}

TEST(TcpCheck, IsStoppedWhileItWaitsAndThenSaysNothing) {
  const FullListener full;
  CheckRun run;
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  const auto cancelled = TcpCheck::collect(run, {.address = full.address(), .timeout = 60s},
                                           collect_context(kNow, stop.get_token()));
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), Code::cancelled);
}

TEST(TcpCheck, SaysThatANameDoesNotExist) {
  CheckRun run;
  const auto seen_now =
      TcpCheck::collect(run, {.address = "nowhere.invalid:1", .timeout = 2s}, collect_context(kNow)).value();
  EXPECT_TRUE(seen_now.check.error.starts_with("the name cannot be resolved")) << seen_now.check.error;
}

TEST(TcpCheck, RefusesAConfigurationThatCannotBeMeant) {
  EXPECT_TRUE(TcpCheck::derive({.address = "host:80"}));
  EXPECT_EQ(TcpCheck::derive({.address = "host"}).error().code(), Code::spec_invalid);
  EXPECT_EQ(TcpCheck::derive({.address = "host:80", .timeout = 3s}).error().field("field"), "timeout");
  EXPECT_EQ(TcpCheck::derive({.address = "host:80", .unhealthy_after = 0}).error().code(),
            Code::spec_invalid);
  EXPECT_EQ(decode<TcpDesired>("{}").error().code(), Code::missing_field);
}

TEST(Addresses, AreAHostAndAPort) {
  const auto six = parse_address("[::1]:502").value();
  EXPECT_EQ(six.host, "::1");
  EXPECT_EQ(six.port, 502);
  EXPECT_EQ(parse_address("host", 1883).value().port, 1883);
  EXPECT_EQ(parse_address("host:1", 1883).value().port, 1);
  for (const auto* wrong : {"", ":1", "host:", "host:x", "host:0", "host:65536", "::1:502", "[::1",
                            "[::1]502", "ho st:1", "host:1/x"}) {
    EXPECT_EQ(parse_address(wrong, 0).error().code(), Code::spec_invalid) << wrong;
  }
}

TEST(Steps, AreLeftOnlyWhereTheMeasurementHasClearlyLeftThem) {
  EXPECT_EQ(settle_latency(Latency::unknown, 900us), Latency::within_1ms);
  EXPECT_EQ(settle_latency(Latency::within_1ms, 1900us), Latency::within_1ms);
  EXPECT_EQ(settle_latency(Latency::within_1ms, 2100us), Latency::within_5ms);
  EXPECT_EQ(settle_latency(Latency::within_5ms, 600us), Latency::within_5ms);
  EXPECT_EQ(settle_latency(Latency::within_5ms, 400us), Latency::within_1ms);
  EXPECT_EQ(settle_latency(Latency::unknown, 2s), Latency::longer);
  EXPECT_EQ(settle_latency(Latency::longer, 300ms), Latency::longer);
  EXPECT_EQ(settle_latency(Latency::longer, 3ms), Latency::within_5ms);
  EXPECT_EQ(settle_rate(Rate::none, 5000), Rate::more);
  EXPECT_EQ(settle_rate(Rate::more, 0.5), Rate::below_1);
}

}  // namespace
}  // namespace pawl::test
