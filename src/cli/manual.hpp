// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Completions for shells and the manual page, generated from the command line's own description.

#include <string>
#include <vector>

#include "pawl/error.hpp"

namespace pawl::cli {

struct CommandOption {
  std::vector<std::string> names;  ///< "--limit", "-n"; of an argument: its name alone
  std::string value;               ///< what it takes, such as TEXT; empty for a flag
  std::string description;
  std::vector<std::string> choices{};  ///< where it takes one of these
  bool positional = false;
  bool required = false;
  bool many = false;
};

struct Command {
  std::string name;
  std::string description;
  std::vector<CommandOption> options;
  std::vector<Command> verbs;
};

/// For bash, zsh or fish. Error: `unknown_name`.
Result<std::string> completion(const Command& root, const std::string& shell);

/// The manual page as roff.
std::string manual(const Command& root, const std::string& version);

}  // namespace pawl::cli
