// SPDX-License-Identifier: Apache-2.0
// The live feed: nothing missed, nothing twice, nobody waited for.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "pawl/sim_disk.hpp"
#include "tests/server/reader.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

TEST(Events, AReaderSeesWhatHappensFromNowOn) {
  World world;
  world.engine->create<door>("early").value();
  Reader reader(world, "");
  EXPECT_THAT(reader.head, HasSubstr("Content-Type: text/event-stream"));
  world.engine->create<door>("front").value();
  world.engine->send<door>("front", Push{.force = 3}).value();
  const auto created = reader.next();
  EXPECT_EQ(created.kind, "created");
  EXPECT_EQ(member(created.data, "key"), "\"front\"");
  const auto fired = reader.next();
  EXPECT_EQ(fired.kind, "fired");
  EXPECT_EQ(member(fired.data, "payload"), R"({"force":3})");
  EXPECT_EQ(member(fired.data, "cursor"), fmt::format("\"{}\"", fired.id));
}

TEST(Events, AfterAReadThatFailedTheStreamEndsAndTheNextOneGoesOnBehindIt) {
  sim::Disk disk(1);
  // Only the feed reads here: nothing is written behind meanwhile.
  World world({}, {.store = "sqlite:pawl.db", .vfs = disk.vfs_name(), .checkpoint_every = 1h});
  world.engine->create<door>("first").value();
  Reader reader(world, "?after=begin");
  const auto seen = reader.next();
  EXPECT_EQ(member(seen.data, "key"), "\"first\"");
  disk.fail_next({.on = sim::Operation::read, .suffix = "-wal"});
  world.engine->create<door>("second").value();
  const auto end = reader.next();
  EXPECT_EQ(end.kind, "end");
  EXPECT_EQ(member(end.data, "code"), "\"store_io\"");
  // Whoever asks before the log is read again is refused, and asks again.
  while (true) {
    Reader again(world, "?after=" + seen.id);
    if (!again.head.starts_with("HTTP/1.1 200")) continue;
    EXPECT_EQ(member(again.next().data, "key"), "\"second\"");
    break;
  }
}

TEST(Events, HeadAsksForTheHeaderOnly) {
  World world;
  Client client(world.server->port());
  client.send("HEAD /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.read().head, HasSubstr("text/event-stream"));
  EXPECT_TRUE(client.at_end());
}

TEST(Events, AReaderThatComesBackMissesNothingAndSeesNothingTwice) {
  World world;
  std::string last;
  {
    Reader reader(world, "?after=begin");
    world.engine->create<door>("a").value();
    world.engine->create<door>("b").value();
    EXPECT_EQ(member(reader.next().data, "key"), "\"a\"");
    last = reader.next().id;
  }
  world.engine->create<door>("c").value();
  Reader again(world, "?after=begin", fmt::format("Last-Event-ID: {}\r\n", last));
  EXPECT_EQ(member(again.next().data, "key"), "\"c\"");
  world.engine->create<door>("d").value();
  EXPECT_EQ(member(again.next().data, "key"), "\"d\"");
}

TEST(Events, ReadingFromTheBeginMeetsWhatHappensMeanwhileWithoutAGap) {
  World world;
  constexpr int kEach = 300;
  for (int i = 0; i < kEach; ++i) world.engine->create<door>(fmt::format("old{}", i)).value();
  std::jthread writer([&] {
    for (int i = 0; i < kEach; ++i) world.engine->create<door>(fmt::format("new{}", i)).value();
  });
  Reader reader(world, "?after=begin");
  for (int i = 1; i <= 2 * kEach; ++i) ASSERT_EQ(member(reader.next().data, "seq"), std::to_string(i));
}

TEST(Events, AReaderMayBeginWithTheNewestEntries) {
  World world;
  for (int i = 0; i < 5; ++i) world.engine->create<door>(fmt::format("d{}", i)).value();
  Reader reader(world, "?recent=2");
  EXPECT_EQ(member(reader.next().data, "key"), "\"d3\"");
  EXPECT_EQ(member(reader.next().data, "key"), "\"d4\"");
  world.engine->create<door>("later").value();
  EXPECT_EQ(member(reader.next().data, "key"), "\"later\"");
  Reader all(world, "?recent=1000");
  EXPECT_EQ(member(all.next().data, "key"), "\"d0\"");
  world.expect_problem(world.call("GET", "/v1/events?recent=1001"), 400, "invalid_argument");
}

TEST(Events, TheNewestEntriesAreThoseThatRetentionHasLeft) {
  EngineOptions keeping_nothing;
  keeping_nothing.keep = Duration(0);
  World world({}, keeping_nothing);
  for (int i = 0; i < 5; ++i) world.engine->create<door>(fmt::format("d{}", i)).value();
  world.engine->retain().value();
  Reader reader(world, "?recent=1000");
  world.engine->create<door>("later").value();
  while (true) {
    const auto event = reader.next();
    ASSERT_EQ(event.kind, "created") << event.data;
    if (member(event.data, "key") == "\"later\"") break;
  }
}

TEST(Events, FiltersLetOnlyTheirOwnPass) {
  World world;
  Reader one(world, "?machine=door&key=a");
  Reader opened(world, "?machine=door&state=open");
  Reader created(world, "?kind=created");
  world.engine->create<door>("b").value();
  world.engine->create<door>("a").value();
  world.engine->send<door>("b", Push{}).value();
  world.engine->send<door>("a", Push{}).value();
  EXPECT_EQ(one.next().kind, "created");
  EXPECT_EQ(member(one.next().data, "state"), "\"open\"");
  EXPECT_EQ(member(opened.next().data, "key"), "\"b\"");
  EXPECT_EQ(member(opened.next().data, "key"), "\"a\"");
  EXPECT_EQ(member(created.next().data, "key"), "\"b\"");
  EXPECT_EQ(member(created.next().data, "key"), "\"a\"");
}

TEST(Events, WrongCursorsAreRefusedBeforeTheStreamBegins) {
  World world;
  world.expect_problem(world.call("GET", "/v1/events?after=yesterday"), 400, "cursor_invalid");
  world.expect_problem(world.call("GET", "/v1/events", {}, "Last-Event-ID: 0123.5\r\n"), 400,
                       "cursor_invalid");
  world.expect_problem(world.call("GET", "/v1/events?key=a"), 400, "invalid_argument");
}

TEST(Events, ACursorBelowTheHorizonIsGone) {
  EngineOptions options;
  options.keep = Duration(0);
  World world({}, options);
  std::string cursor;
  {
    Reader reader(world, "");
    world.engine->create<door>("a").value();
    cursor = reader.next().id;
  }
  for (int i = 0; i < 50; ++i) world.engine->create<door>(fmt::format("d{}", i)).value();
  world.engine->retain().value();
  world.expect_problem(world.call("GET", "/v1/events", {}, fmt::format("Last-Event-ID: {}\r\n", cursor)), 410,
                       "cursor_expired");
}

TEST(Events, AReaderThatDoesNotReadIsEndedWithItsCursor) {
  ServerOptions options;
  options.limits.stream_buffer = 64 << 10;
  World world(std::move(options));
  Reader slow(world, "");
  // More than the buffers of the system and of the server hold together.
  world.engine->create<door>("front").value();
  int pushed = 0;
  const auto lagged = [&] {
    return world.server->handle({.path = "/metrics"}).body.find("pawl_feed_lagged_total 1\n") !=
           std::string::npos;
  };
  while (!lagged() && pushed < 100'000) {
    Gate done;
    constexpr int kBatch = 500;
    std::atomic<int> left{kBatch};
    for (int i = 0; i < kBatch; ++i) {
      world.engine->submit(Transaction{}.create<door>(fmt::format("d{}-{}", pushed, std::string(400, 'x'))),
                           [&](const Result<std::vector<Instance>>&) {
                             if (--left == 0) done.open();
                           });
      ++pushed;
    }
    world.runtime.wait(done);
  }
  ASSERT_TRUE(lagged());
  std::string last;
  auto event = slow.next();
  for (; event.kind == "created"; event = slow.next()) last = event.id;
  EXPECT_EQ(event.kind, "end");
  EXPECT_EQ(member(event.data, "code"), "\"subscriber_lagged\"");
  EXPECT_THAT(event.data, HasSubstr(last));
  EXPECT_TRUE(slow.at_end());
}

TEST(Events, ASilentStreamShowsThatItLivesAndMovesTheCursorOfWhoFilters) {
  ServerOptions options;
  options.limits.heartbeat = 10ms;
  World world(std::move(options));
  Client client(world.server->port());
  client.send("GET /v1/events?machine=door&kind=fired HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  client.read_until("\r\n\r\n");
  EXPECT_THAT(client.read_until("\n\n"), testing::MatchesRegex("id: [0-9a-f]+\\.0\n\n"));
  EXPECT_EQ(client.read_until("\n\n"), ": still here\n\n");
  world.engine->create<door>("a").value();
  auto text = client.read_until("\n\n");
  while (text == ": still here\n\n") text = client.read_until("\n\n");
  EXPECT_THAT(text, testing::MatchesRegex("id: [0-9a-f]+\\.1\n\n"));
}

TEST(Events, DrainingEndsStreamsWithTheirCursor) {
  World world;
  Reader reader(world, "");
  world.engine->create<door>("a").value();
  const auto last = reader.next().id;
  EXPECT_TRUE(world.server->drain(10s));
  const auto end = reader.next();
  EXPECT_EQ(end.kind, "end");
  EXPECT_EQ(member(end.data, "code"), "\"stopped\"");
  EXPECT_THAT(end.data, HasSubstr(last));
  EXPECT_TRUE(reader.at_end());
}

TEST(Events, StreamsAboveTheLimitAreRefused) {
  ServerOptions options;
  options.limits.streams = 1;
  World world(std::move(options));
  Reader first(world, "");
  world.expect_problem(world.call("GET", "/v1/events"), 503, "overloaded");
}

}  // namespace
}  // namespace pawl::test
