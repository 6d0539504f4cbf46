// SPDX-License-Identifier: Apache-2.0
// Each error code has its page in docs/errors, and each page its code.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "pawl/error.hpp"

namespace {

const std::filesystem::path kPages = std::filesystem::path(PAWL_SOURCE_DIR) / "docs" / "errors";

int number(const pawl::CodeInfo& code) { return static_cast<int>(code.code); }

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path << " cannot be read";
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string page(const pawl::CodeInfo& code) { return read(kPages / fmt::format("{}.md", number(code))); }

TEST(ErrorPages, EveryCodeHasAPageThatBeginsWithItsNumberNameAndSummary) {
  for (const auto& code : pawl::all_codes()) {
    EXPECT_THAT(page(code), testing::StartsWith(
                                fmt::format("# PAWL-{} {}\n\n{}\n", number(code), code.name, code.summary)));
  }
}

TEST(ErrorPages, EveryPageSaysWhatHappenedAndWhatToDo) {
  for (const auto& code : pawl::all_codes()) {
    const std::string text = page(code);
    for (const std::string section : {"What happened", "What to do"}) {
      const std::string heading = "\n\n## " + section + "\n\n";
      const auto begin = text.find(heading);
      ASSERT_NE(begin, std::string::npos) << code.name << " lacks: " << section;
      const std::string body = text.substr(begin + heading.size(), 40);
      EXPECT_FALSE(body.empty() || body.starts_with('#')) << code.name << " has nothing under: " << section;
    }
  }
}

TEST(ErrorPages, NoPageIsWithoutACode) {
  std::set<std::string> expected{"README.md"};
  for (const auto& code : pawl::all_codes()) expected.insert(fmt::format("{}.md", number(code)));
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(kPages)) {
    found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

TEST(ErrorPages, TheIndexListsEveryCodeOnceInOrder) {
  std::vector<std::string> expected;
  for (const auto& code : pawl::all_codes()) {
    expected.push_back(
        fmt::format("| [PAWL-{0}]({0}.md) | `{1}` | {2} |", number(code), code.name, code.summary));
  }
  std::vector<std::string> found;
  std::ifstream index(kPages / "README.md");
  for (std::string line; std::getline(index, line);) {
    if (line.starts_with("| [PAWL-")) found.push_back(line);
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
