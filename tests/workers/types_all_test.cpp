// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/types_table.hpp"
#include "workers/types/all.hpp"
#include "workers/types/process.hpp"

namespace pawl::test {
namespace {

TEST(WorkerTypesOfTheProduct, AreThere) {
  WorkerTypes types;
  workers::add_worker_types(types, {});
  EXPECT_TRUE(types.validate());
  std::vector<std::string> names;
  for (const auto& type : types.all()) names.push_back(type->name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("child", "failing", "file_watch", "group", "helloworld",
                                                   "http_check", "mqtt_client", "panic", "parent", "slow",
                                                   "tcp_check"));
}

TEST(WorkerTypesOfTheProduct, DeclareTheirOwnFieldsAsConfidential) {
  WorkerTypes types;
  workers::add_worker_types(types, {});
  workers::add_process_without_shim(types);
  std::map<std::string, std::vector<std::string>> declared;
  for (const auto& type : types.all()) {
    for (const auto& field : type->confidential) {
      EXPECT_THAT(type->fields, testing::Contains(field.substr(0, field.find('[')))) << type->name;
      declared[type->name].push_back(field);
    }
  }
  const std::map<std::string, std::vector<std::string>> expected{{"group", {"children"}},
                                                                 {"http_check", {"headers", "expect_body"}},
                                                                 {"mqtt_client", {"username"}},
                                                                 {"parent", {"child_config"}},
                                                                 {"process", {"environment", "command[1:]"}}};
  EXPECT_EQ(declared, expected);
}

TEST(WorkerTypesOfTheProduct, HaveToolsAndObserveSomethingThatCanBeReadAgain) {
  WorkerTypes types;
  workers::add_worker_types(types, {});
  const std::map<std::string, std::string> configs{{"file_watch", R"({"path": "/none"})"},
                                                   {"http_check", R"({"url": "http://127.0.0.1:1/"})"},
                                                   {"mqtt_client", R"({"url": "mqtt://127.0.0.1:1"})"},
                                                   {"tcp_check", R"({"address": "127.0.0.1:1"})"}};
  for (const auto& type : types.all()) {
    const auto config = configs.find(type->name);
    const auto desired = type->derive(config == configs.end() ? "{}" : config->second).value();
    const auto tools = type->make_tools(somebody()).value();
    const auto seen = type->collect(tools.get(), desired.get(), collect_context(Time{}));
    ASSERT_TRUE(seen) << type->name << ": " << seen.error().to_string();
    EXPECT_TRUE(type->read_observed(seen->text)) << type->name << ": " << seen->text;
    EXPECT_TRUE(type->derive(type->show_desired(desired.get()).value())) << type->name;
  }
}

}  // namespace
}  // namespace pawl::test
