// SPDX-License-Identifier: Apache-2.0
#include "pawl/log.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "pawl/runtime.hpp"

namespace {

using namespace std::chrono_literals;
using pawl::Duration;
using pawl::LogField;
using pawl::Logger;
using pawl::LogLevel;
using pawl::LogRecord;
using pawl::Secret;
using pawl::Time;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Time kNow = std::chrono::sys_days(std::chrono::year(2026) / 11 / 15) + 21h + 40min;

/// A logger whose lines land in vectors.
struct Log {
  std::vector<std::string> json;
  std::vector<std::string> text;
  Logger logger{std::make_shared<pawl::CallbackSink>([this](const LogRecord& record) {
                  pawl::append_json(json.emplace_back(), record);
                  pawl::append_text(text.emplace_back(), record);
                }),
                [] { return kNow; }, LogLevel::trace};
};

std::string json_of(std::initializer_list<LogField> fields) {
  Log log;
  log.logger.info("m", fields);
  const std::string_view line = log.json.at(0);
  const std::string_view head = R"({"time":"2026-11-15T21:40:00.000000Z","level":"info","message":"m")";
  EXPECT_TRUE(line.starts_with(head)) << line;
  EXPECT_TRUE(line.ends_with("}\n")) << line;
  return std::string(line.substr(head.size(), line.size() - head.size() - 2));
}

std::string text_of(std::initializer_list<LogField> fields) {
  Log log;
  log.logger.info("a message of thirty-two columns.", fields);
  const std::string_view line = log.text.at(0);
  const std::string_view head = "2026-11-15T21:40:00.000000Z INFO  a message of thirty-two columns.";
  EXPECT_TRUE(line.starts_with(head)) << line;
  EXPECT_TRUE(line.ends_with("\n")) << line;
  return std::string(line.substr(head.size(), line.size() - head.size() - 1));
}

TEST(Log, AJsonLineHasTimeLevelMessageAndTypedFields) {
  Log log;
  const std::string path = "/var/lib/pawl";
  log.logger.info("store opened", {{"path", path}, {"instances", 42}, {"took", 1500us}, {"ok", true}});
  EXPECT_THAT(log.json,
              ElementsAre(R"({"time":"2026-11-15T21:40:00.000000Z","level":"info","message":"store opened",)"
                          R"("path":"/var/lib/pawl","instances":42,"took":0.001500,"ok":true})"
                          "\n"));
}

TEST(Log, ATextLineIsAligned) {
  Log log;
  log.logger.info("store opened", {{"path", "/var/lib/pawl"}, {"took", 1500us}});
  log.logger.error("größer", {{"n", 1}});
  log.logger.warn("nothing to add");
  EXPECT_THAT(log.text,
              ElementsAre("2026-11-15T21:40:00.000000Z INFO  store opened                     "
                          "path=/var/lib/pawl took=1.5ms\n",
                          "2026-11-15T21:40:00.000000Z ERROR größer                           n=1\n",
                          "2026-11-15T21:40:00.000000Z WARN  nothing to add\n"));
}

TEST(Log, ColourOnlyWhenAsked) {
  const LogField fields[]{{"k", 1}};
  const LogRecord record{kNow, LogLevel::error, "m", fields};
  std::string plain;
  pawl::append_text(plain, record);
  std::string coloured;
  pawl::append_text(coloured, record, true);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(coloured, HasSubstr("\x1b[1;31mERROR\x1b[0m"));
}

TEST(Log, EveryTypeHasItsForm) {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(json_of({{"v", "text"}}), R"(,"v":"text")");
  EXPECT_EQ(json_of({{"v", std::string_view("view")}}), R"(,"v":"view")");
  EXPECT_EQ(json_of({{"v", false}}), R"(,"v":false)");
  EXPECT_EQ(json_of({{"v", least}}), R"(,"v":-9223372036854775808)");
  EXPECT_EQ(json_of({{"v", most}}), R"(,"v":18446744073709551615)");
  EXPECT_EQ(json_of({{"v", std::uint8_t{7}}}), R"(,"v":7)");
  EXPECT_EQ(json_of({{"v", 0.1}}), R"(,"v":0.1)");
  EXPECT_EQ(json_of({{"v", 1e300}}), R"(,"v":1e+300)");
  EXPECT_EQ(json_of({{"v", kNow}}), R"(,"v":"2026-11-15T21:40:00.000000Z")");
  EXPECT_EQ(json_of({{"v", Secret("hunter2")}}), R"(,"v":"***")");
}

TEST(Log, NumbersThatJsonDoesNotKnowAreStrings) {
  EXPECT_EQ(json_of({{"v", NAN}}), R"(,"v":"nan")");
  EXPECT_EQ(json_of({{"v", -INFINITY}}), R"(,"v":"-inf")");
}

TEST(Log, ANullTextIsShownAsSuch) {
  const char* none = nullptr;
  EXPECT_EQ(json_of({{"v", none}}), ",\"v\":\"(null)\"");
}

TEST(Log, DurationsAreSecondsInJson) {
  EXPECT_EQ(json_of({{"v", 2h}}), R"(,"v":7200.000000)");
  EXPECT_EQ(json_of({{"v", -1us}}), R"(,"v":-0.000001)");
  EXPECT_EQ(json_of({{"v", Duration::min()}}), R"(,"v":-9223372036854.775808)");
}

TEST(Log, DurationsAreReadableInText) {
  EXPECT_EQ(text_of({{"v", 0us}}), " v=0us");
  EXPECT_EQ(text_of({{"v", 850us}}), " v=850us");
  EXPECT_EQ(text_of({{"v", 12'045us}}), " v=12.045ms");
  EXPECT_EQ(text_of({{"v", 100ms}}), " v=100ms");
  EXPECT_EQ(text_of({{"v", 10s}}), " v=10s");
  EXPECT_EQ(text_of({{"v", 2s + 250ms}}), " v=2.25s");
  EXPECT_EQ(text_of({{"v", -2h}}), " v=-7200s");
  EXPECT_EQ(text_of({{"v", -1500us}}), " v=-1.5ms");
  EXPECT_EQ(text_of({{"v", Duration::min()}}), " v=-9223372036854.775808s");
}

TEST(Log, TextValuesAreQuotedWhenTheirEndWouldBeUnclear) {
  EXPECT_EQ(text_of({{"v", "plain/word-1"}}), " v=plain/word-1");
  EXPECT_EQ(text_of({{"v", ""}}), R"( v="")");
  EXPECT_EQ(text_of({{"v", "two words"}}), R"( v="two words")");
  EXPECT_EQ(text_of({{"v", "a=b"}}), R"( v="a=b")");
  EXPECT_EQ(text_of({{"v", R"(say "x\y")"}}), R"( v="say \"x\\y\"")");
}

TEST(Log, LineBreaksAndControlCharactersAreEscaped) {
  const std::string evil = "a\nb\r\t\x1b[31m\x7f" + std::string(1, '\0');
  EXPECT_EQ(json_of({{"v", evil}}), R"(,"v":"a\nb\r\t\u001b[31m\u007f\u0000")");
  EXPECT_EQ(text_of({{"v", evil}}), R"( v="a\nb\r\t\u001b[31m\u007f\u0000")");
  Log log;
  log.logger.info("first\nsecond \x1b[2J");
  EXPECT_THAT(log.text.at(0), HasSubstr(R"(first\nsecond \u001b[2J)"));
}

TEST(Log, UnicodeLineBreaksAndDirectionMarksAreEscaped) {
  EXPECT_EQ(json_of({{"v", "\xC2\x85 \xE2\x80\xA8 \xE2\x80\xAE"}}), R"(,"v":"\u0085 \u2028 \u202e")");
}

TEST(Log, InvalidUtf8IsReplaced) {
  EXPECT_EQ(json_of({{"v", "ok \xC3\xA9 \xF0\x9F\x90\xBE"}}), ",\"v\":\"ok é 🐾\"");
  EXPECT_EQ(json_of({{"v", "\xFFx"}}), ",\"v\":\"\uFFFDx\"");
  EXPECT_EQ(json_of({{"v", "\xC3"}}), ",\"v\":\"\uFFFD\"") << "cut off";
  EXPECT_EQ(json_of({{"v", "\xC0\xAF"}}), ",\"v\":\"\uFFFD\uFFFD\"") << "overlong";
  EXPECT_EQ(json_of({{"v", "\xED\xA0\x80"}}), ",\"v\":\"\uFFFD\uFFFD\uFFFD\"") << "surrogate";
}

TEST(Log, LongTextsAreCutWithAMark) {
  const std::string large(pawl::kLogTextLimit + 10, 'x');
  const std::string kept(pawl::kLogTextLimit, 'x');
  EXPECT_EQ(json_of({{"v", large}}), ",\"v\":\"" + kept + "…+10 bytes\"");
  EXPECT_EQ(text_of({{"v", large}}), " v=\"" + kept + "…+10 bytes\"");
  EXPECT_EQ(json_of({{"v", kept}}), ",\"v\":\"" + kept + "\"") << "the limit itself is allowed";
  Log log;
  log.logger.info(std::string(1'000'000, 'm'), {{std::string(1'000'000, 'k'), std::string(1'000'000, 'v')}});
  EXPECT_LT(log.json.at(0).size(), 3 * pawl::kLogTextLimit + 200);
}

TEST(Log, TheCutDoesNotSplitACharacter) {
  std::string large(pawl::kLogTextLimit - 1, 'x');
  large.append("é!");
  const std::string json = json_of({{"v", large}});
  EXPECT_THAT(json, HasSubstr("x…+3 bytes"));
  EXPECT_THAT(json, Not(HasSubstr("\uFFFD")));
}

TEST(Log, SecretsAreNeverShown) {
  const Secret secret("hunter2");
  Log log;
  log.logger.with({{"bound", secret}, {"token", "hunter2"}})
      .info("login", {{"x", secret}, {"Cookie", "hunter2"}});
  EXPECT_THAT(log.json.at(0), Not(HasSubstr("hunter2")));
  EXPECT_THAT(log.text.at(0), HasSubstr("bound=*** token=*** x=*** Cookie=***"));
  EXPECT_EQ(secret.reveal(), "hunter2");
}

TEST(Log, KeysThatLookLikeSecretsAreKnown) {
  for (const auto* key :
       {"password", "PASSWORD", "db.password", "passwd", "passphrase", "token", "accessToken", "secret",
        "client_secret", "Authorization", "proxy-authorization", "cookie", "Set-Cookie", "api_key", "apikey",
        "X-Api-Key", "credentials", "private_key"}) {
    EXPECT_TRUE(pawl::looks_secret(key)) << key;
  }
  for (const auto* key : {"", "path", "key", "pass", "author", "took", "api", "secre", "session"}) {
    EXPECT_FALSE(pawl::looks_secret(key)) << key;
  }
}

TEST(Log, BoundFieldsComeFirstOnEveryLine) {
  Log log;
  const Logger feeds = log.logger.with({{"system", std::string("feeds with a long enough name")}});
  const Logger cve = feeds.with({{"provider", "cve"}});
  cve.info("run", {{"n", 1}});
  feeds.info("idle");
  EXPECT_THAT(log.text.at(0), HasSubstr(R"( system="feeds with a long enough name" provider=cve n=1)"));
  EXPECT_THAT(log.text.at(1), Not(HasSubstr("provider")));
}

TEST(Log, ALaterFieldOfTheSameKeyReplacesTheEarlierOne) {
  Log log;
  log.logger.with({{"k", 1}, {"other", 2}}).info("m", {{"k", 3}});
  EXPECT_THAT(log.json.at(0), HasSubstr(R"("message":"m","k":3,"other":2})"));
}

TEST(Log, AFieldCannotPoseAsTheLinesOwnTimeLevelOrMessage) {
  EXPECT_EQ(json_of({{"level", "error"}}), R"(,"field.level":"error")");
}

TEST(Log, LinesBelowTheLevelAreNotWritten) {
  Log log;
  log.logger.set_level(LogLevel::warn);
  log.logger.info("no");
  EXPECT_FALSE(log.logger.enabled(LogLevel::info));
  log.logger.warn("yes");
  EXPECT_EQ(log.json.size(), 1u);
}

TEST(Log, TheLevelIsSharedByAllLoggersOfOneOrigin) {
  Log log;
  const Logger bound = log.logger.with({{"k", 1}});
  log.logger.set_level(LogLevel::error);
  EXPECT_FALSE(bound.enabled(LogLevel::warn));
}

TEST(Log, EachLevelHasItsCall) {
  Log log;
  log.logger.trace("m");
  log.logger.debug("m");
  log.logger.info("m");
  log.logger.warn("m");
  log.logger.error("m");
  EXPECT_THAT(log.json, ElementsAre(HasSubstr(R"("level":"trace")"), HasSubstr(R"("level":"debug")"),
                                    HasSubstr(R"("level":"info")"), HasSubstr(R"("level":"warn")"),
                                    HasSubstr(R"("level":"error")")));
}

TEST(Log, LevelsAreParsedByName) {
  EXPECT_EQ(pawl::parse_log_level("debug").value(), LogLevel::debug);
  const auto refused = pawl::parse_log_level("loud");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().to_string(),
            "PAWL-2008 unknown_name: \"loud\" is not a log level; expected trace, debug, info, warn or error "
            "(name=loud)");
}

TEST(Log, ADefaultLoggerDiscards) {
  const Logger none;
  EXPECT_FALSE(none.enabled(LogLevel::error));
  none.set_level(LogLevel::trace);
  none.with({{"k", 1}}).error("nobody hears this");
}

/// Only its clock is of use here.
class ClockRuntime final : public pawl::Runtime {
 public:
  Time now() override { return now_; }
  pawl::Instant instant() override { return {}; }
  std::uint64_t random() override { return 0; }
  std::unique_ptr<pawl::Lane> open_lane(std::string) override { return nullptr; }
  std::unique_ptr<pawl::ThreadPool> open_thread_pool(std::string, pawl::ThreadPool::Options) override {
    return nullptr;
  }
  bool wait(pawl::Gate&, std::optional<Duration>) override { return false; }
  bool fault(std::string_view) override { return false; }

  Time now_;
};

TEST(Log, TheTimeComesFromTheRuntime) {
  ClockRuntime runtime;
  std::vector<Time> seen;
  const Logger logger(
      std::make_shared<pawl::CallbackSink>([&](const LogRecord& record) { seen.push_back(record.time); }),
      runtime);
  runtime.now_ = kNow;
  logger.info("m");
  runtime.now_ = kNow + 1s;
  logger.info("m");
  EXPECT_THAT(seen, ElementsAre(kNow, kNow + 1s));
}

}  // namespace
