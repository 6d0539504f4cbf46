// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "workers/process/process.hpp"
#include "workers/process/protocol.hpp"

namespace pawl::workers {
namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr std::size_t kMostLineBytes = std::size_t{1} << 20U;
constexpr std::size_t kLeastLineBytes = 16;
constexpr std::size_t kMostLogBytes = std::size_t{1} << 34U;

std::unexpected<Error> wrong(std::string_view field, std::string message) {
  return fail(Code::invalid_argument, std::move(message), {{"field", std::string(field)}});
}

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

bool is_program(const std::string& path) {
  struct stat about{};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

/// The environment of the process; its own settings override the server's.
std::map<std::string, std::string> environment_of(const ProcessSpec& spec) {
  static constexpr std::array<std::string_view, 4> kSafe{"PATH", "HOME", "LANG", "TZ"};
  auto all = spec.environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view setting(*entry);
    const auto at = setting.find('=');
    if (at == std::string_view::npos || at == 0) continue;
    const auto key = setting.substr(0, at);
    const bool wanted = spec.inherit_environment || std::ranges::find(kSafe, key) != kSafe.end();
    // Do not inherit the mark: a server that is itself supervised has the mark of another shim.
    if (wanted && key != shim::kMarkVariable) all.emplace(key, setting.substr(at + 1));
  }
  all.emplace("PATH", kDefaultPath);
  return all;
}

Result<std::string> find_program(const std::string& name, const std::string& path) {
  if (name.starts_with('/')) {
    if (is_program(name)) return name;
    return wrong("command", fmt::format("{} is not a file that may be executed", name));
  }
  if (name.find('/') != std::string::npos) {
    return wrong("command", fmt::format("{} is a relative path; give an absolute one, or a name that is in "
                                        "PATH",
                                        name));
  }
  std::string_view rest = path;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(':'), rest.size());
    // Skip empty and relative directories: they depend on the working directory of the server.
    const std::string candidate = fmt::format("{}/{}", rest.substr(0, end), name);
    if (candidate.starts_with('/') && is_program(candidate)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return wrong("command",
               fmt::format("no program {} in PATH, which is {}; give its absolute path", name, path));
}

Result<void> check_texts(const ProcessSpec& spec) {
  if (spec.command.empty() || spec.command.front().empty()) {
    return wrong("command", "the command is empty; name a program and its arguments");
  }
  if (std::ranges::any_of(spec.command, has_nul)) {
    return wrong("command", "an argument of the command holds a NUL byte, which no process can get");
  }
  for (const auto& [key, value] : spec.environment) {
    if (key.empty() || key.find('=') != std::string::npos || has_nul(key) || has_nul(value)) {
      return wrong("environment",
                   fmt::format("the variable \"{}\" cannot be set: a name is not empty and has "
                               "no '=', and neither name nor value hold a NUL byte",
                               key));
    }
    if (key == shim::kMarkVariable) return wrong("environment", fmt::format("{} is set by the server", key));
  }
  return {};
}

Result<void> check_rest(const ProcessSpec& spec) {
  struct stat about{};
  if (!spec.directory.starts_with('/') || has_nul(spec.directory)) {
    return wrong("directory", fmt::format("\"{}\" is not an absolute path", spec.directory));
  }
  if (::stat(spec.directory.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
    return wrong("directory", fmt::format("{} is not a directory; make it before the start", spec.directory));
  }
  if (spec.line_bytes < kLeastLineBytes || spec.line_bytes > kMostLineBytes) {
    return wrong("line_bytes", fmt::format("{} bytes to a line; {} to {} are possible", spec.line_bytes,
                                           kLeastLineBytes, kMostLineBytes));
  }
  const std::size_t least = 2 * (spec.line_bytes + shim::kLongestFrame);
  if (spec.log_bytes < least || spec.log_bytes > kMostLogBytes) {
    return wrong("log_bytes", fmt::format("{} bytes of log; {} (two of the longest lines) to {} are possible",
                                          spec.log_bytes, least, kMostLogBytes));
  }
  if (spec.open_files && *spec.open_files < 8) {
    return wrong("open_files", fmt::format("{} open files; at least 8 are needed", *spec.open_files));
  }
  if (spec.address_space && *spec.address_space == 0) {
    return wrong("address_space", "0 bytes of address space; leave it out for no limit");
  }
  return {};
}

void put(std::string& text, shim::Tag tag, std::string_view value) {
  text += static_cast<char>(tag);
  text += value;
  text += '\0';
}

}  // namespace

std::string_view name(ProcessState state) {
  switch (state) {
    case ProcessState::absent:
      return "absent";
    case ProcessState::starting:
      return "starting";
    case ProcessState::running:
      return "running";
    case ProcessState::exited:
      return "exited";
    case ProcessState::failed_to_start:
      return "failed_to_start";
    case ProcessState::lost:
      return "lost";
  }
  return "?";
}

Result<void> validate(const ProcessSpec& spec) {
  PAWL_CHECK(encode_for_shim(spec));
  return {};
}

Result<std::string> encode_for_shim(const ProcessSpec& spec) {
  PAWL_CHECK(check_texts(spec));
  PAWL_CHECK(check_rest(spec));
  const auto environment = environment_of(spec);
  PAWL_TRY(const auto program, find_program(spec.command.front(), environment.at("PATH")));
  std::string text;
  put(text, shim::Tag::program, program);
  put(text, shim::Tag::directory, spec.directory);
  for (const auto& argument : spec.command) put(text, shim::Tag::argument, argument);
  for (const auto& [key, value] : environment) put(text, shim::Tag::setting, key + "=" + value);
  put(text, shim::Tag::log_bytes, std::to_string(spec.log_bytes));
  put(text, shim::Tag::line_bytes, std::to_string(spec.line_bytes));
  if (spec.open_files) put(text, shim::Tag::open_files, std::to_string(*spec.open_files));
  if (spec.address_space) put(text, shim::Tag::memory, std::to_string(*spec.address_space));
  return text;
}

}  // namespace pawl::workers
