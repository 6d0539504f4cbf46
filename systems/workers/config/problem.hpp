// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The mistakes in a file, all at once.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"

namespace pawl::workers {

/// One mistake. Fields that do not apply are empty.
struct ConfigProblem {
  std::string file{};
  int line = 1;
  std::string key{};  ///< where in the file, such as "children[0].name"
  std::string problem{};
  std::string expected{};
  std::string actual{};
  std::string suggestion{};  ///< what was probably meant
  bool operator==(const ConfigProblem&) const = default;
};

/// One line: "site.yaml:4: children[0].nam: there is no such key; expected …, got …; did you mean …?"
std::string describe(const ConfigProblem& problem);

/// All of them, each on a line of its own; `config_invalid`, with the fields `file`, `line` and `key` of the
/// first and `problems`, their number. There is at least one.
Error to_error(const std::vector<ConfigProblem>& problems);

/// "a, b, c"; only the first of many.
std::string list_names(const std::vector<std::string>& names);

/// Collects mistakes. Not thread-safe.
class ConfigProblems {
 public:
  /// Reading stops at this number of mistakes.
  static constexpr std::size_t kMost = 1000;

  ConfigProblems(std::string_view file, const ConfigDocument& document) : file_(file), document_(document) {}

  /// Fills in the file and the line; `key` is a path such as "$.children[0].name".
  void add(ConfigProblem problem);
  /// The same on another line than that of the value.
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
