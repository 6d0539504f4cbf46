// SPDX-License-Identifier: Apache-2.0
// How the embedded dashboard is served: what a browser may keep, what it may load, and what stays the API's.
#include "server/dashboard.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <numeric>

#include "tests/server/world.hpp"

namespace pawl::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The first embedded file below /assets/ with this ending.
std::string asset(std::string_view ending) {
  for (const auto& file : server::embedded_files()) {
    if (file.path.starts_with("/assets/") && file.path.ends_with(ending)) return std::string(file.path);
  }
  return "no such asset";
}

TEST(Dashboard, ItsPageIsServedToAnybody) {
  const auto auth = make_auth({.cheap_passwords = true});
  World world(ServerOptions{.auth = auth.get()});
  const auto answer = world.call("GET", "/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(answer.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(answer.body, HasSubstr("/assets/"));
}

TEST(Dashboard, AddressesInsideThePageAreThePage) {
  World world;
  const auto page = world.call("GET", "/").body;
  for (const auto* path : {"/machines/door", "/instances/door/front.door", "/instances?machine=door",
                           "/systems/nothing", "/login", "/vault"}) {
    const auto answer = world.call("GET", path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.body, page) << path;
  }
}

TEST(Dashboard, TheApiIsNotShadowed) {
  World world;
  for (const auto* path : {"/v1", "/v1/", "/v1/machine", "/v2/machines", "/metrics/more", "/healthz/x",
                           "/readyz/x", "/favicon.ico", "/robots.txt", "/assets/index-old.js", "/assets/"}) {
    world.expect_problem(world.call("GET", path), 404, "unknown_route");
  }
  EXPECT_EQ(world.call("GET", "/metrics").header("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  world.expect_problem(world.call("POST", "/machines/door", "{}"), 404, "unknown_route");
}

TEST(Dashboard, AssetsAreKeptForEverAndThePageIsAskedForAgain) {
  World world;
  EXPECT_EQ(world.call("GET", asset(".js")).header("Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(world.call("GET", asset(".js")).header("Content-Type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(world.call("GET", asset(".css")).header("Content-Type"), "text/css; charset=utf-8");
  EXPECT_EQ(world.call("GET", "/favicon.svg").header("Content-Type"), "image/svg+xml");
  const auto page = world.call("GET", "/");
  EXPECT_EQ(page.header("Cache-Control"), "no-cache");
  const auto again = world.call("GET", "/", {}, fmt::format("If-None-Match: {}\r\n", page.header("ETag")));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
}

TEST(Dashboard, ItComesCompressedToWhoReadsThatAndPlainToOthers) {
  World world;
  const auto path = asset(".js");
  const auto packed = world.call("GET", path, {}, "Accept-Encoding: gzip, br\r\n");
  EXPECT_EQ(packed.header("Content-Encoding"), "gzip");
  EXPECT_EQ(packed.header("Vary"), "Accept-Encoding");
  EXPECT_THAT(packed.body, StartsWith("\x1f\x8b"));
  const auto plain = world.call("GET", path);
  EXPECT_EQ(plain.header("Content-Encoding"), "");
  EXPECT_EQ(plain.header("ETag"), packed.header("ETag"));
  EXPECT_GT(plain.body.size(), packed.body.size());
}

TEST(Dashboard, ThePageMayLoadNothingFromElsewhereAndIsInNoFrame) {
  World world;
  const auto policy = world.call("GET", "/").header("Content-Security-Policy");
  EXPECT_THAT(policy, StartsWith("default-src 'self';"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, testing::Not(HasSubstr("unsafe")));
}

TEST(Dashboard, IsCountedByItself) {
  World world;
  world.call("GET", "/");
  const auto metrics = world.call("GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("pawl_http_requests_total{route=\"dashboard\",status=\"2xx\"} 1\n"));
}

TEST(Dashboard, IsSmall) {
  const auto files = server::embedded_files();
  const auto bytes = std::accumulate(files.begin(), files.end(), std::size_t{0},
                                     [](auto sum, const auto& file) { return sum + file.gzip.size(); });
  EXPECT_GT(bytes, 10'000);
  EXPECT_LT(bytes, 120 * 1024);
}

}  // namespace
}  // namespace pawl::test
