// SPDX-License-Identifier: Apache-2.0
// The file with the workers, in virtual time: when it is applied, and what is logged of its mistakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "pawl/codec.hpp"
#include "pawl/names.hpp"
#include "pawl/supervisor_kit.hpp"
#include "tests/workers/types_servers.hpp"
#include "workers/config/yaml.hpp"
#include "workers/demo_tree.hpp"
#include "workers/partial_tree.hpp"
#include "workers/tree_file.hpp"
#include "workers/types/all.hpp"
#include "workers/types/process.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class TheFileOfWorkers : public ::testing::Test {
 protected:
  TheFileOfWorkers() {
    std::string pattern = std::filesystem::temp_directory_path() / "pawl-file-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_.emplace(path(), kit_.process(), log_);
  }
  ~TheFileOfWorkers() override { std::filesystem::remove_all(directory_); }

  std::string path() const { return directory_ + "/site.yaml"; }
  /// As an editor does: another file takes its place.
  void write(std::string_view text) const {
    std::ofstream(path() + ".new", std::ios::binary) << text;
    std::filesystem::rename(path() + ".new", path());
  }
  void look() { file_->poll(kit_.supervisor()); }
  void look_twice() {
    look();
    look();
  }
  std::vector<std::string> applied() {
    std::vector<std::string> names;
    const auto tree = kit_.supervisor().applied().value().first;
    for (const auto& child : tree.children) names.push_back(child.name);
    return names;
  }
  std::vector<std::string> logged() { return std::exchange(logged_, {}); }

  static constexpr const char* kTwo =
      "children:\n  - {name: a, workerType: child}\n  - {name: b, workerType: child}\n";
  static constexpr const char* kOne = "children:\n  - {name: a, workerType: child}\n";

  std::string directory_;
  std::vector<std::string> logged_;
  SupervisorKit kit_{[](Runtime&) {
                       WorkerTypes types;
                       add_worker_types(types, {});
                       return types;
                     },
                     {.supervisor = {.read_config = read_yaml}}};
  Logger log_{std::make_shared<CallbackSink>(
                  [this](const LogRecord& record) { logged_.emplace_back(record.message); }),
              [] { return Time{}; }, LogLevel::warn};
  std::optional<TreeFile> file_;
};

TEST_F(TheFileOfWorkers, IsAppliedWhenItIsTheSameAtTwoLooks) {
  write(kTwo);
  look();
  EXPECT_THAT(applied(), IsEmpty());
  look();
  EXPECT_THAT(applied(), ElementsAre("a", "b"));
}

TEST_F(TheFileOfWorkers, WhileItIsWrittenRemovesNobody) {
  write(kTwo);
  look_twice();
  write(kOne);  // the beginning of what is written
  look();
  write(std::string(kTwo) + "  - {name: c, workerType: child}\n");
  look();
  EXPECT_THAT(applied(), ElementsAre("a", "b"));
  look();
  EXPECT_THAT(applied(), ElementsAre("a", "b", "c"));
}

TEST_F(TheFileOfWorkers, IsAppliedAgainWhenThatFailed) {
  write(kTwo);
  kit_.supervisor().detach();
  look_twice();
  EXPECT_THAT(file_->problems(), SizeIs(1));
  kit_.restart();
  look();
  EXPECT_THAT(applied(), ElementsAre("a", "b"));
  EXPECT_THAT(file_->problems(), IsEmpty());
}

TEST_F(TheFileOfWorkers, ThatCannotBeReadIsAMistakeUntilItCan) {
  look_twice();
  EXPECT_THAT(file_->problems(), SizeIs(1));
  write(kOne);
  look_twice();
  EXPECT_THAT(file_->problems(), IsEmpty());
  EXPECT_THAT(applied(), ElementsAre("a"));
}

TEST_F(TheFileOfWorkers, HasItsMistakesLoggedAtMostEveryTenSeconds) {
  const auto write_with = [this](std::string_view type) {
    write(fmt::format("children:\n  - {{name: a, workerType: {}}}\n", type));
    look_twice();
  };
  write_with("chlid");
  EXPECT_THAT(logged(), ElementsAre(HasSubstr("site.yaml:2: children[0].workerType: ")));
  kit_.advance(9s);
  write_with("chidl");
  EXPECT_THAT(logged(), IsEmpty());
  EXPECT_THAT(file_->problems(), SizeIs(1));  // shown all the same
  kit_.advance(1s);
  write_with("hcild");
  EXPECT_THAT(logged(), ElementsAre(HasSubstr("hcild"), "more mistakes in the worker file"));
}

TEST_F(TheFileOfWorkers, HasVariablesWhoseValuesAreDataWhateverTheyLookLike) {
  const std::vector<std::string> values{"x\nkey: y", "a: b",    "a #b", "{a: 1}", "[1",   "&anchor",
                                        "*alias",    "!!int 5", "- x",  "'",      "\"",   "\\",
                                        "|",         "yes",     "null", "5",      "%tag", "{{ .V }}",
                                        "",          " x ",     "@x",   "? x",    "---",  "\t"};
  const std::vector<std::string> places{"address: {{ .V }}", "address: '{{ .V }}'", "address: \"{{ .V }}\"",
                                        "address: |-\n          {{ .V }}", "{address: {{ .V }}, device: d}"};
  std::string text = "children:\n";
  for (std::size_t value = 0; value < values.size(); ++value) {
    for (std::size_t place = 0; place < places.size(); ++place) {
      text += fmt::format(
          "  - name: w{}-{}\n    workerType: child\n    userSpec:\n      config: |\n        {}\n"
          "      variables: {{user: {{V: {}}}}}\n",
          value, place, places[place], encode(values[value]).value());
    }
  }
  write(text);
  look_twice();
  EXPECT_THAT(file_->problems(), IsEmpty());
  ASSERT_TRUE(kit_.wait_until(
      [&] { return kit_.supervisor().tree().size() == values.size() * places.size(); }, 1min));
  for (const auto& worker : kit_.supervisor().tree()) {
    const auto number = std::stoul(worker.identity.name.substr(1));
    const auto desired = JsonDocument::parse(worker.desired.text);
    ASSERT_TRUE(desired) << worker.identity.name << worker.problem;
    EXPECT_EQ(desired->root().find("address")->as_string(), values[number]) << worker.identity.name;
  }
}

TEST_F(TheFileOfWorkers, HasVariablesThatKeepTheirTypesWithoutQuotes) {
  write(
      "children:\n  - name: a\n    workerType: slow\n    userSpec:\n      config: |\n"
      "        delay_seconds: {{ .N }}{{ .N }}\n      variables: {user: {N: 2}}\n"
      "  - name: b\n    workerType: failing\n    userSpec:\n      config: |\n"
      "        should_fail: {{ .B }}\n        max_failures: {{ .N }}\n      variables: {user: {N: 2, B: "
      "true}}\n");
  look_twice();
  EXPECT_THAT(file_->problems(), IsEmpty());
  ASSERT_TRUE(kit_.wait_until([&] { return kit_.supervisor().tree().size() == 2; }));
  EXPECT_THAT(kit_.supervisor().show("a").value().desired.text, HasSubstr(R"("delay_seconds":22)"));
  EXPECT_THAT(kit_.supervisor().show("b").value().desired.text,
              HasSubstr(R"("should_fail":true,"max_failures":2)"));
}

TEST_F(TheFileOfWorkers, SaysTheLineOfAMistakeBehindAValueOfSeveralLines) {
  write(
      "children:\n  - name: a\n    workerType: child\n    userSpec:\n      config: |\n"
      "        address: \"{{ .V }}\"\n        devise: x\n      variables: {user: {V: \"1\\n\\n\\n2\"}}\n");
  look_twice();
  ASSERT_THAT(file_->problems(), SizeIs(1));
  EXPECT_EQ(file_->problems()[0].line, 7);
}

TEST_F(TheFileOfWorkers, HoldsTheExampleOfParentsWithChildrenAndMappedStates) {
  const pawl::test::ClosedPort closed;
  write(fmt::format(R"(children:
  - name: plant
    workerType: group
    userSpec: {{variables: {{user: {{IP: 127.0.0.1, PORT: {}}}}}}}
    children:
      - name: mqtt-connection
        workerType: mqtt_client
        userSpec:
          config: |
            url: tcp://{{{{ .IP }}}}:{{{{ .PORT }}}}
            client_id: '{{{{ "{{{{" }}}} {{{{ .internal.id }}}}'
        stateMapping:
          active: connected
          closing: stopped
)",
                    closed.port()));
  look_twice();
  EXPECT_THAT(file_->problems(), IsEmpty());
  ASSERT_TRUE(kit_.wait_for("plant/mqtt-connection", "TryingToConnect"));
  EXPECT_THAT(kit_.supervisor().show("plant/mqtt-connection").value().desired.text,
              HasSubstr(R"("client_id":"{{ plant/mqtt-connection")"));
  ASSERT_TRUE(kit_.wait_until([&] {
    return enum_name(kit_.supervisor().show("plant/mqtt-connection").value().health) == "failing";
  }));
  ASSERT_TRUE(kit_.wait_for("plant", "Impaired"));
  kit_.supervisor().park("plant").value();
  ASSERT_TRUE(kit_.wait_for("plant", "Stopped"));
  EXPECT_EQ(kit_.supervisor().show("plant/mqtt-connection").value().state, "Stopped");
  EXPECT_THAT(kit_.moves("plant"), ElementsAre("Active", "Impaired", "Closing", "Stopped"));
  kit_.supervisor().run("plant").value();
  ASSERT_TRUE(kit_.wait_for("plant/mqtt-connection", "TryingToConnect"));
}

TEST_F(TheFileOfWorkers, HoldsGroupsOfTwelveLevels) {
  std::string text = "variables: {user: {IP: 10.0.0.7}}\nchildren:\n";
  std::string indent = "  ";
  std::string path;
  for (int level = 0; level < 12; ++level, indent += "    ") {
    text += fmt::format("{0}- name: g{1}\n{0}  workerType: group\n{0}  children:\n", indent, level);
    path += fmt::format("g{}/", level);
  }
  text += fmt::format(
      "{0}- name: leaf\n{0}  workerType: child\n{0}  userSpec:\n{0}    config: |\n"
      "{0}      address: \"{{{{ .IP }}}}\"\n",
      indent);
  write(text);
  look_twice();
  EXPECT_THAT(file_->problems(), IsEmpty());
  ASSERT_TRUE(kit_.wait_for(path + "leaf", "Connected"));
  EXPECT_THAT(kit_.supervisor().show(path + "leaf").value().desired.text, HasSubstr("10.0.0.7"));
}

TEST_F(TheFileOfWorkers, HasQuotedVariablesOfChildrenRefusedWithWhatToWrite) {
  write(
      "children:\n  - name: line\n    workerType: parent\n    userSpec:\n      config: |\n"
      "        child_config: |\n          address: '{{ \"{{\" }} .IP }}'\n"
      "          device: '{{ \"{{ .DEVICE_ID }}\" }} {{ \"{{\" }} .B {{ \"}}\" }}'\n");
  look_twice();
  ASSERT_THAT(file_->problems(), SizeIs(2));
  EXPECT_EQ(describe(file_->problems()[0]),
            path() +
                ":7: children[0].userSpec.config: templates of children are handed on as they are; write "
                "{{ .IP }} without quoting the braces; expected {{ .NAME }}, or a text in quotation "
                "marks, got {{ \"{{\" }}");
  EXPECT_THAT(describe(file_->problems()[1]), HasSubstr(":8: children[0].userSpec.config: "));
  EXPECT_THAT(describe(file_->problems()[1]), HasSubstr("write {{ .DEVICE_ID }} without"));
}

TEST_F(TheFileOfWorkers, HasStoredQuotedVariablesOfChildrenRefusedWithWhatToWrite) {
  kit_.supervisor()
      .apply({.children = {{.name = "line",
                            .worker_type = "parent",
                            .user_spec = {.config = "children_count: 1\nchild_config: 'address: {{ \"{{\" }} "
                                                    ".DEVICE_ID }}'"}}}})
      .value();
  ASSERT_TRUE(kit_.wait_until([&] {
    const auto line = kit_.supervisor().show("line");
    return line && enum_name(line->health) == "config_error";
  }));
  EXPECT_THAT(kit_.supervisor().show("line").value().problem,
              HasSubstr("line 2, column 25: templates of children are handed on as they are; write "
                        "{{ .DEVICE_ID }} without quoting the braces"));
}

TEST_F(TheFileOfWorkers, HasNoMistakesInTheDemo) {
  WorkerTypes types;
  add_worker_types(types, {});
  types.add(define_worker<ProcessWorker>([](const WorkerIdentity&) -> Result<std::shared_ptr<void>> {
    return fail(Code::spec_invalid, "no tools are needed");
  }));
  const auto read = read_partial_tree(kDemoTree, "demo", types, {});
  EXPECT_THAT(read.problems, IsEmpty());
  ASSERT_TRUE(read.tree);
  EXPECT_THAT(read.tree->children, SizeIs(3));
}

TEST_F(TheFileOfWorkers, HasAMistakeLoggedOnceHoweverOftenItIsLookedAt) {
  write("children:\n  - {name: a, workerType: chlid}\n");
  for (int i = 0; i < 100; ++i) {
    look();
    kit_.advance(1s);
  }
  EXPECT_THAT(logged(), SizeIs(1));
}

}  // namespace
}  // namespace pawl::workers
