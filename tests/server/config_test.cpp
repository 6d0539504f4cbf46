// SPDX-License-Identifier: Apache-2.0
// pawl.yaml: what is read, what is refused and where, and that the documentation says the same.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "server/config.hpp"
#include "server/serve.hpp"

namespace pawl::server {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string refusal(std::string_view yaml) {
  const auto config = parse_config(yaml, "pawl.yaml");
  EXPECT_FALSE(config) << yaml;
  if (config) return {};
  EXPECT_EQ(config.error().code(), Code::config_invalid);
  return config.error().message();
}

TEST(Config, AnEmptyFileMeansTheDefaults) {
  const auto config = parse_config("", "pawl.yaml").value();
  EXPECT_EQ(config.server.listen, "127.0.0.1:7420");
  EXPECT_FALSE(config.demo);
}

TEST(Config, EveryKindOfValueIsRead) {
  const auto config = parse_config(R"(
listen: "[::1]:80"
demo: true
allow_programs_without_auth: true
systems: [feeds, fleet]
log: {level: debug, format: json}
drain_timeout: 1.5s
limits:
  body_bytes: 2MiB
  connections: 7
engine:
  keep: 30d
  forget_finished: never
  pools: {uplink: 4}
)",
                                   "pawl.yaml")
                          .value();
  EXPECT_EQ(config.server.listen, "[::1]:80");
  EXPECT_TRUE(config.demo);
  EXPECT_TRUE(config.server.allow_programs_without_auth);
  EXPECT_THAT(config.systems, testing::ElementsAre("feeds", "fleet"));
  EXPECT_EQ(config.log_level, LogLevel::debug);
  EXPECT_EQ(config.log_format, LogFormat::json);
  EXPECT_EQ(config.drain_timeout, 1500ms);
  EXPECT_EQ(config.server.limits.body_bytes, std::size_t{2} << 20);
  EXPECT_EQ(config.server.limits.connections, 7);
  EXPECT_EQ(config.engine.keep, 720h);
  EXPECT_EQ(config.engine.forget_finished, std::nullopt);
  EXPECT_EQ(config.engine.pools.at("uplink"), 4);
}

TEST(Config, AnUnknownKeyIsRefusedWithItsLineAndASuggestion) {
  EXPECT_THAT(refusal("demo: true\nlisen: 127.0.0.1:1\n"),
              HasSubstr("pawl.yaml:2: there is no key \"lisen\" (did you mean \"listen\"?)"));
  EXPECT_THAT(refusal("limits:\n  header_byte: 1KiB\n"), HasSubstr("pawl.yaml:2: there is no key "
                                                                   "\"limits.header_byte\" (did you mean "
                                                                   "\"limits.header_bytes\"?)"));
  EXPECT_THAT(refusal("colour: red\n"), HasSubstr("docs/configuration.md"));
}

TEST(Config, AWrongValueIsRefusedWithItsLineAndWhatWouldBeRight) {
  EXPECT_THAT(refusal("\ndemo: maybe\n"), HasSubstr("pawl.yaml:2: \"demo\" is true or false, not \"maybe\""));
  EXPECT_THAT(refusal("limits: {connections: 0}"), HasSubstr("a number from 1 to 1000000, not \"0\""));
  EXPECT_THAT(refusal("limits: {connections: -1}"), HasSubstr("not \"-1\""));
  EXPECT_THAT(refusal("limits: {body_bytes: 1TB}"), HasSubstr("such as 65536, 64KiB or 1MiB"));
  EXPECT_THAT(refusal("limits: {idle_timeout: 10}"), HasSubstr("a duration such as 500ms"));
  EXPECT_THAT(refusal("limits: {idle_timeout: 0s}"), HasSubstr("a duration"));
  EXPECT_THAT(refusal("engine: {keep: always}"), HasSubstr("or never"));
  EXPECT_THAT(refusal("log: {level: loud}"), HasSubstr("trace, debug, info, warn or error"));
  EXPECT_THAT(refusal("log: {format: xml}"), HasSubstr("text or json"));
  EXPECT_THAT(refusal("systems: feeds"), HasSubstr("a list of names"));
  EXPECT_THAT(refusal("engine: {pools: {a: 0}}"), HasSubstr("pool names with their sizes"));
  EXPECT_THAT(refusal("listen: [1]"), HasSubstr("a text"));
}

TEST(Config, WhatIsNoConfigurationIsRefused) {
  EXPECT_THAT(refusal("demo: [true\n"), HasSubstr("this is not YAML"));
  EXPECT_THAT(refusal("- a\n- b\n"), HasSubstr("holds keys with values"));
  EXPECT_THAT(refusal("limits: 5"), HasSubstr("holds keys of its own"));
  EXPECT_THAT(refusal("demo: true\ndemo: false\n"), HasSubstr("given twice"));
  EXPECT_THAT(refusal("? [a]\n: b\n"), HasSubstr("a key is a name"));
  EXPECT_THAT(refusal("tls: {certificate: a.pem}"), HasSubstr("given together"));
  EXPECT_THAT(refusal(std::string(10'000, '[')), HasSubstr("this is not YAML"));
  EXPECT_THAT(refusal(std::string(2 << 20, '#')), HasSubstr("larger than"));
  EXPECT_FALSE(load_config("no/such/pawl.yaml"));
}

TEST(Config, TheDefaultsAsAFileAreTheDefaults) {
  const auto config = parse_config(default_config(), "defaults").value();
  const Config defaults;
  EXPECT_EQ(config.server.listen, defaults.server.listen);
  EXPECT_EQ(config.data, defaults.data);
  EXPECT_EQ(config.drain_timeout, defaults.drain_timeout);
  EXPECT_EQ(config.server.threads, defaults.server.threads);
  EXPECT_EQ(config.server.handler_threads, defaults.server.handler_threads);
  const auto& limits = config.server.limits;
  EXPECT_EQ(limits.header_bytes, HttpLimits{}.header_bytes);
  EXPECT_EQ(limits.body_bytes, HttpLimits{}.body_bytes);
  EXPECT_EQ(limits.connections, HttpLimits{}.connections);
  EXPECT_EQ(limits.connections_per_address, HttpLimits{}.connections_per_address);
  EXPECT_EQ(limits.connections_per_user, HttpLimits{}.connections_per_user);
  EXPECT_EQ(limits.connections_reserved, HttpLimits{}.connections_reserved);
  EXPECT_EQ(limits.idle_timeout, HttpLimits{}.idle_timeout);
  EXPECT_EQ(limits.header_timeout, HttpLimits{}.header_timeout);
  EXPECT_EQ(limits.body_timeout, HttpLimits{}.body_timeout);
  EXPECT_EQ(limits.write_timeout, HttpLimits{}.write_timeout);
  EXPECT_EQ(limits.streams, HttpLimits{}.streams);
  EXPECT_EQ(limits.streams_per_address, HttpLimits{}.streams_per_address);
  EXPECT_EQ(limits.streams_per_user, HttpLimits{}.streams_per_user);
  EXPECT_EQ(limits.streams_reserved, HttpLimits{}.streams_reserved);
  EXPECT_EQ(limits.stream_buffer, HttpLimits{}.stream_buffer);
  EXPECT_EQ(limits.heartbeat, HttpLimits{}.heartbeat);
  EXPECT_EQ(config.engine.work_threads, EngineOptions{}.work_threads);
  EXPECT_EQ(config.engine.queue, EngineOptions{}.queue);
  EXPECT_EQ(config.engine.batch, EngineOptions{}.batch);
  EXPECT_EQ(config.engine.cache_bytes, EngineOptions{}.cache_bytes);
  EXPECT_EQ(config.engine.keep, EngineOptions{}.keep);
  EXPECT_EQ(config.engine.forget_finished, EngineOptions{}.forget_finished);
}

/// A system with one setting.
class Kettle final : public System {
 public:
  std::string name() const override { return "kettle"; }
  std::vector<Setting> settings() override {
    return {{.name = "litres",
             .type = "1 or 2",
             .default_value = "1",
             .description = "how much it holds",
             .set = [this](std::string_view text) -> Result<void> {
               if (text != "1" && text != "2") return fail(Code::invalid_argument, "1 or 2");
               litres = text == "2" ? 2 : 1;
               return {};
             }}};
  }
  int litres = 1;
};

TEST(Config, ASystemHasKeysOfItsOwn) {
  Systems systems;
  systems.push_back(std::make_unique<Kettle>());
  ASSERT_TRUE(parse_config("kettle: {litres: 2}", "f", systems));
  EXPECT_EQ(dynamic_cast<Kettle&>(*systems.front()).litres, 2);
  EXPECT_THAT(default_config(systems), HasSubstr("kettle:\n  litres: 1  # how much it holds\n"));
}

TEST(Config, WhatASystemRefusesIsRefusedWithItsLineAndWhatWouldBeRight) {
  Systems systems;
  systems.push_back(std::make_unique<Kettle>());
  const auto wrong = parse_config("demo: true\nkettle:\n  litres: 3\n", "f.yaml", systems);
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), HasSubstr("f.yaml:3: \"kettle.litres\" is 1 or 2, not \"3\""));
  EXPECT_FALSE(parse_config("kettle: {litres: [1]}", "f", systems));
  EXPECT_THAT(parse_config("kettle: {liters: 1}", "f", systems).error().message(),
              HasSubstr("kettle.litres"));
}

TEST(Config, WhatAReloadCannotChangeIsNamed) {
  Systems systems;
  systems.push_back(std::make_unique<Kettle>());
  const auto config = [&](std::string_view yaml) { return parse_config(yaml, "f", systems).value(); };
  const auto running = config("drain_timeout: 10s\nsystems: [a]\nlog: {level: warn}\n");
  EXPECT_THAT(keys_that_need_restart(running, running, systems), testing::IsEmpty());
  EXPECT_THAT(keys_that_need_restart(running, config("systems: [a]"), systems), testing::IsEmpty())
      << "a level can be changed, and a default may be left out";
  EXPECT_THAT(keys_that_need_restart(running,
                                     config("listen: 127.0.0.1:1\nengine: {pools: {a: 1}}\n"
                                            "kettle: {litres: 2}\nlimits: {streams: 1}"),
                                     systems),
              testing::ElementsAre("listen", "systems", "limits.streams", "engine.pools", "kettle.litres"));
}

TEST(Config, WhatCannotBeStartedIsRefusedBeforeTheStart) {
  Systems systems;
  systems.push_back(std::make_unique<Kettle>());
  const auto refused = [&](std::string_view yaml) {
    const auto checked = check_config(parse_config(yaml, "f", systems).value(), systems);
    return checked ? "nothing is wrong" : checked.error().to_string();
  };
  EXPECT_EQ(refused("systems: [kettle]\nlisten: '[::1]:0'"), "nothing is wrong");
  EXPECT_THAT(refused("systems: [kettel]"), HasSubstr("did you mean \"kettle\""));
  EXPECT_THAT(refused("listen: here"), HasSubstr("not an address with a port"));
  EXPECT_THAT(refused("listen: 127.0.0.1:99999"), HasSubstr("not an address with a port"));
  EXPECT_THAT(refused("listen: localhost:7420"), HasSubstr("not an IP address"));
  EXPECT_THAT(refused("listen: 0.0.0.0:7420"), HasSubstr("unsafe_address"));
  EXPECT_EQ(refused("listen: 0.0.0.0:7420\nallow_insecure: true"), "nothing is wrong");
  EXPECT_THAT(refused("tls: {certificate: no.pem, key: no.pem}"), HasSubstr("no.pem"));
}

TEST(Config, AStoreInPostgresqlIsBackedUpByItsOwnTools) {
  const auto options = [](std::string_view yaml) { return server_options(parse_config(yaml, "f").value()); };
  EXPECT_EQ(options("store: sqlite:a.db").backups_elsewhere, "");
  EXPECT_THAT(options("store: postgresql://me@here/pawl").backups_elsewhere, HasSubstr("pg_dump"));
}

TEST(Config, TheDocumentationListsEveryKeyWithItsDefault) {
  std::vector<std::string> expected;
  for (const auto& key : config_keys()) {
    expected.push_back(fmt::format("| `{}` | {} | `{}` | {}{} |", key.name, key.type, key.default_value,
                                   key.description, key.reloadable ? " (reloaded on SIGHUP)" : ""));
  }
  std::vector<std::string> found;
  std::ifstream page(PAWL_SOURCE_DIR "/docs/configuration.md");
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("| `")) found.push_back(line);
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace pawl::server
