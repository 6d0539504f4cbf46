// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Runs a command of the shell.

#include <array>
#include <cstdio>
#include <string>

namespace pawl::test {

struct Ran {
  int status = 0;
  std::string output;
};

inline Ran run_shell(const std::string& command) {
  Ran ran;
  auto* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {.status = -1, .output = "no shell"};
  std::array<char, 4096> buffer{};
  while (const auto count = fread(buffer.data(), 1, buffer.size(), pipe))
    ran.output.append(buffer.data(), count);
  ran.status = pclose(pipe);
  return ran;
}

}  // namespace pawl::test
