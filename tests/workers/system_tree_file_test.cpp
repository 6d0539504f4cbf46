// SPDX-License-Identifier: Apache-2.0
// The file with the workers, in virtual time: when it is applied, and what is logged of its mistakes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "pawl/supervisor_kit.hpp"
#include "workers/config/yaml.hpp"
#include "workers/tree_file.hpp"
#include "workers/types/all.hpp"

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
  void look() { file_->look(kit_.supervisor()); }
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
  EXPECT_THAT(logged(), ElementsAre(HasSubstr("hcild"), "more mistakes in the file of workers"));
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
