// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What is wrong in a file, all of it at once.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"

namespace pawl::workers {

/// One mistake. What does not apply is empty.
struct ConfigProblem {
  std::string file{};
  int line = 1;
  std::string key{};  ///< where in the file, such as "children[0].name"
  std::string problem{};
  std::string expected{};
  std::string actual{};
  std::string suggestion{};  ///< what was perhaps meant
  bool operator==(const ConfigProblem&) const = default;
};

/// One line: "site.yaml:4: children[0].nam: there is no such key; expected …, got …; did you mean …?"
std::string describe(const ConfigProblem& problem);

/// All of them, each on a line of its own; `config_invalid`, with the fields `file`, `line` and `key` of the
/// first and `problems`, their number. There is at least one.
Error to_error(const std::vector<ConfigProblem>& problems);

/// "a, b, c", of many the first.
std::string list_names(const std::vector<std::string>& names);

/// Collects mistakes. Not thread-safe.
class ConfigProblems {
 public:
  /// Mistakes beyond these are not looked at any more: a reader has enough of them.
  static constexpr std::size_t kMost = 1000;

  ConfigProblems(std::string_view file, const ConfigDocument& document) : file_(file), document_(document) {}

  /// The file and the line are filled in; `key` is a path such as "$.children[0].name".
  void add(ConfigProblem problem);
  /// The same on a line that is not the value's.
  void add_on_line(int line, ConfigProblem problem);
  bool is_full() const { return found_.size() >= kMost; }

  int line_of(std::string_view path) const;
  const std::vector<ConfigProblem>& found() const { return found_; }

 private:
  std::string file_;
  const ConfigDocument& document_;
  std::vector<ConfigProblem> found_{};
};

}  // namespace pawl::workers
