// SPDX-License-Identifier: Apache-2.0
// What comes over the wire: well-formed, malformed, too large, too slow, several at once.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <zlib.h>

#include <atomic>
#include <thread>

#include "tests/engine/broken_store.hpp"
#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

ServerOptions with(HttpLimits limits) {
  ServerOptions options;
  options.limits = limits;
  return options;
}

std::string unzipped(const std::string& packed) {
  std::string text(1 << 20, '\0');
  z_stream zip{};
  EXPECT_EQ(inflateInit2(&zip, 15 + 16), Z_OK);
  zip.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  zip.avail_in = static_cast<uInt>(packed.size());
  zip.next_out = reinterpret_cast<Bytef*>(text.data());
  zip.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&zip, Z_FINISH), Z_STREAM_END);
  text.resize(zip.total_out);
  inflateEnd(&zip);
  return text;
}

TEST(Wire, OneConnectionServesRequestsOneAfterTheOther) {
  World world;
  Client client(world.server->port());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.call("GET", "/healthz").status, 200);
}

TEST(Wire, PipelinedRequestsAreAnsweredInTheirOrder) {
  World world;
  Client client(world.server->port());
  client.send(
      "GET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
      "GET /v1/nothing HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
      "GET /v1/instances HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"
      "GET /v1/pools HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  EXPECT_EQ(client.read().body, R"({"status":"alive"})");
  EXPECT_EQ(client.read().status, 404);
  EXPECT_EQ(client.read().body, R"({"instances":[]})");
  EXPECT_THAT(client.read().body, HasSubstr("uplink"));
}

std::string creation(std::string_view key) {
  const auto body = fmt::format(R"({{"key":"{}"}})", key);
  return fmt::format(
      "POST /v1/instances/door HTTP/1.1\r\nHost: [::1]:80\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
}

TEST(Wire, PipelinedCommitsAreAnsweredInTheirOrder) {
  World world;
  Client client(world.server->port());
  std::string all;
  for (int i = 0; i < 50; ++i) all += creation(fmt::format("door-{}", i));
  client.send(all);
  for (int i = 0; i < 50; ++i) {
    const auto answer = client.read();
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(member(answer.body, "key"), fmt::format("\"door-{}\"", i));
  }
}

TEST(Wire, AnAnswerNeverReachesAnotherClientThanItsOwn) {
  World world;
  for (int i = 0; i < 50; ++i) {
    // Gone before the answer; the next connection mostly gets the same number.
    Client(world.server->port()).send(creation(fmt::format("gone-{}", i)));
    Client client(world.server->port());
    client.send(creation(fmt::format("here-{}", i)));
    const auto answer = client.read();
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(member(answer.body, "key"), fmt::format("\"here-{}\"", i));
  }
}

TEST(Wire, AClientThatAsksForItGetsTheConnectionClosed) {
  World world;
  Client client(world.server->port());
  const auto answer = client.call("GET", "/healthz", {}, "Connection: close\r\n");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(client.at_end());
}

TEST(Wire, HeadIsAnsweredLikeGetWithoutABody) {
  World world;
  Client client(world.server->port());
  client.send(
      "HEAD /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\nGET /healthz HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  const auto head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 18\r\n"));
  EXPECT_EQ(client.read().body, R"({"status":"alive"})");
}

TEST(Wire, BytesThatAreNoRequestAreRefusedAndTheConnectionIsClosed) {
  World world;
  for (const std::string bytes :
       {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/1.1\r\nbroken header\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n", "POST /v1/instances/door HTTP/1.1\r\nContent-Length: x\r\n\r\n"}) {
    Client client(world.server->port());
    client.send(bytes);
    const auto answer = client.read();
    world.expect_problem(answer, 400, "malformed_request");
    EXPECT_EQ(answer.header("Connection"), "close") << bytes;
    EXPECT_TRUE(client.at_end());
  }
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Wire, AMethodThatNobodyTakesIsRefused) {
  World world;
  world.expect_problem(world.call("BREW", "/healthz"), 405, "method_not_allowed");
}

TEST(Wire, AHeaderAboveTheLimitIsRefused) {
  World world(with({.header_bytes = 1024}));
  const auto header = fmt::format("X-Long: {}\r\n", std::string(2000, 'x'));
  world.expect_problem(world.call("GET", "/healthz", {}, header), 431, "header_too_large");
}

TEST(Wire, ABodyAboveTheLimitIsRefusedBeforeItIsRead) {
  World world(with({.body_bytes = 1000}));
  const std::string body = R"({"key":")" + std::string(200'000, 'x') + "\"}";
  world.expect_problem(world.call("POST", "/v1/instances/door", body), 413, "too_large");
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Wire, AChunkedBodyAboveTheLimitIsRefused) {
  World world(with({.body_bytes = 1000}));
  Client client(world.server->port());
  client.send("POST /v1/instances/door HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) client.send("64\r\n" + std::string(100, 'x') + "\r\n");
  world.expect_problem(client.read(), 413, "too_large");
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Wire, AHeaderThatComesTooSlowlyIsRefused) {
  World world(with({.header_timeout = 20ms}));
  Client client(world.server->port());
  client.send("GET /healthz HTTP/1.1\r\nHost:");
  world.expect_problem(client.read(), 408, "slow_request");
  EXPECT_TRUE(client.at_end());
}

TEST(Wire, ABodyThatComesTooSlowlyIsRefusedAndNothingIsDone) {
  World world(with({.body_timeout = 20ms}));
  Client client(world.server->port());
  client.send(
      "POST /v1/instances/door HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{");
  world.expect_problem(client.read(), 408, "slow_request");
  EXPECT_EQ(world.last_seq(), 0);
}

TEST(Wire, AnIdleConnectionIsClosedWithoutAWord) {
  World world(with({.idle_timeout = 20ms}));
  Client client(world.server->port());
  EXPECT_TRUE(client.at_end());
}

TEST(Wire, AConnectionAboveTheLimitIsToldSo) {
  World world(with({.connections = 1}));
  Client first(world.server->port());
  EXPECT_EQ(first.call("GET", "/healthz").status, 200);
  Client second(world.server->port());
  const auto answer = second.read();
  world.expect_problem(answer, 503, "overloaded");
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_TRUE(second.at_end());
  EXPECT_EQ(first.call("GET", "/healthz").status, 200);
}

TEST(Wire, ABodyIsAskedForWhenTheClientWaitsForThat) {
  World world;
  Client client(world.server->port());
  client.send(
      "POST /v1/instances/door HTTP/1.1\r\nHost: [::1]:80\r\nContent-Type: application/json\r\n"
      "Content-Length: 11\r\n"
      "Expect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send(R"({"key":"a"})");
  EXPECT_EQ(client.read().status, 201);
}

TEST(Wire, LongTextsAreCompressedForWhoAcceptsIt) {
  World world;
  const auto plain = world.call("GET", "/v1/openapi.json");
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  const auto packed = world.call("GET", "/v1/openapi.json", {}, "Accept-Encoding: br, gzip;q=0.8\r\n");
  EXPECT_EQ(packed.header("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.header("Vary"), "Accept-Encoding");
  EXPECT_LT(packed.body.size(), plain.body.size() / 2);
  EXPECT_EQ(unzipped(packed.body), plain.body);
  EXPECT_EQ(
      world.call("GET", "/v1/openapi.json", {}, "Accept-Encoding: gzip;q=0\r\n").header("Content-Encoding"),
      "");
  EXPECT_EQ(world.call("GET", "/healthz", {}, "Accept-Encoding: gzip\r\n").header("Content-Encoding"), "");
}

TEST(Wire, DrainingClosesIdleConnectionsAndRefusesNewOnes) {
  World world;
  Client idle(world.server->port());
  EXPECT_EQ(idle.call("GET", "/healthz").status, 200);
  EXPECT_TRUE(world.server->drain(10s));
  EXPECT_TRUE(idle.at_end());
}

TEST(Wire, DrainingLetsARunningRequestFinish) {
  class Slow final : public System {
   public:
    explicit Slow(Runtime& runtime) : runtime_(runtime) {}
    std::string name() const override { return "slow"; }
    std::vector<http::Route> routes(Engine&) override {
      return {{.path = "/v1/slow",
               .id = "slow",
               .summary = "waits",
               .run = [this](const http::Request&) -> Result<http::Response> {
                 begun.open();
                 runtime_.wait(go_on);
                 return http::Response{.body = "{}"};
               }}};
    }
    Gate begun;
    Gate go_on;

   private:
    Runtime& runtime_;
  };
  ThreadRuntime runtime;
  Slow slow(runtime);
  ServerOptions options;
  options.systems = {&slow};
  World world(std::move(options));
  Client client(world.server->port());
  client.send("GET /v1/slow HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  runtime.wait(slow.begun);
  EXPECT_FALSE(world.server->drain(10ms));
  slow.go_on.open();
  const auto answer = client.read();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(world.server->drain(10s));
}

TEST(Wire, AServerStopsWhileClientsAreConnectedAndEventsAreOnTheirWay) {
  World world;
  world.engine->create<door>("a").value();
  Client idle(world.server->port());
  Client half(world.server->port());
  half.send("GET /hea");
  Client stream(world.server->port());
  stream.send("GET /v1/events?after=begin HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  EXPECT_THAT(stream.read_until("\n\n"), HasSubstr("text/event-stream"));
  world.server.reset();
  EXPECT_TRUE(idle.at_end());
}

TEST(Wire, AnAddressThatOthersReachIsRefused) {
  World world;
  const auto refused = Server::start(world.runtime, *world.engine, {.listen = "0.0.0.0:0"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::unsafe_address);
  ServerOptions told{.listen = "0.0.0.0:0"};
  told.allow_insecure = true;
  EXPECT_TRUE(Server::start(world.runtime, *world.engine, told));
}

TEST(Wire, AnAddressInUseIsReported) {
  World world;
  const auto address = fmt::format("127.0.0.1:{}", world.server->port());
  const auto refused = Server::start(world.runtime, *world.engine, {.listen = address});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr(address));
}

/// A disk that stalls: a commit waits until it is let go on.
struct Stall {
  std::atomic<bool> armed = false;
  Gate reached;
  std::atomic<bool> over = false;
};
class StallingStore final : public StoreAround {
 public:
  StallingStore(std::unique_ptr<Store> inside, Stall& stall)
      : StoreAround(std::move(inside)), stall_(stall) {}

  Result<void> commit() override {
    if (stall_.armed.exchange(false)) {
      stall_.reached.open();
      stall_.over.wait(false);
    }
    return inside_->commit();
  }

 private:
  Stall& stall_;
};

TEST(Wire, ADiskThatStallsHoldsUpNobodyWhoReads) {
  Stall stall;
  ServerOptions options;
  options.threads = 1;
  World world(options, {}, [&](Runtime& runtime, const EngineOptions& how) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(runtime, how));
    return std::make_unique<StallingStore>(std::move(store), stall);
  });
  world.engine->create<door>("front").value();
  Client writer(world.server->port());
  stall.armed = true;
  writer.send(
      "POST /v1/instances/door/front/events HTTP/1.1\r\nHost: localhost\r\n"
      "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"event\":\"Push\"}");
  world.runtime.wait(stall.reached);
  EXPECT_EQ(world.call("GET", "/v1/instances/door/front").status, 200);
  stall.over = true;
  stall.over.notify_all();
  EXPECT_EQ(writer.read().status, 200);
}

}  // namespace
}  // namespace pawl::test
