// SPDX-License-Identifier: Apache-2.0
#include "cli/credentials.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "cli/text.hpp"

namespace pawl::cli {
namespace {

constexpr std::size_t kMostBytes = 64U << 10U;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::string() : std::string(text);
}

std::unexpected<Error> cannot(std::string_view what, const std::string& path) {
  return fail(Code::invalid_argument, fmt::format("{} cannot be {}: {}", printable(path), what,
                                                  std::generic_category().message(errno)));
}

/// Reads a file with secrets. Checks the opened file, so that it cannot be replaced in between.
Result<std::string> read_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return cannot("read", path);
  struct stat facts{};
  std::string text(kMostBytes + 1, '\0');
  const bool known = ::fstat(file, &facts) == 0;
  const auto bytes = ::read(file, text.data(), text.size());
  ::close(file);
  if (!known || bytes < 0) return cannot("read", path);
  if ((facts.st_mode & 077U) != 0 && S_ISREG(facts.st_mode)) {
    return fail(
        Code::forbidden,
        fmt::format(
            "{} can be read by others (mode {:o}); a file with a token is for its owner alone: chmod 600",
            printable(path), facts.st_mode & 0777U));
  }
  text.resize(static_cast<std::size_t>(bytes));
  if (text.size() > kMostBytes) return fail(Code::too_large, fmt::format("{} is too large", printable(path)));
  return text;
}

/// A token goes into a header, so it is one word.
Result<std::string> one_word(const std::string& text, const std::string& where) {
  const auto begin = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const auto end = text.find_last_not_of(" \t\r\n");
  const auto token = begin == text.size() ? std::string() : text.substr(begin, end + 1 - begin);
  const bool good =
      !token.empty() && std::ranges::all_of(token, [](char byte) { return byte > 0x20 && byte < 0x7F; });
  if (good) return token;
  return fail(Code::invalid_argument,
              fmt::format("{} holds no token; expected one word such as pawl_…", where));
}

}  // namespace

std::string credentials_path() {
  if (auto path = environment("PAWL_CREDENTIALS"); !path.empty()) return path;
  auto place = environment("XDG_CONFIG_HOME");
  if (place.empty() && !environment("HOME").empty()) place = environment("HOME") + "/.config";
  return place.empty() ? std::string() : place + "/pawl/credentials";
}

Result<std::string> find_token(const Url& url, const std::string& file) {
  if (!file.empty()) {
    PAWL_TRY(const auto text, read_private(file));
    return one_word(text, printable(file));
  }
  if (const auto given = environment("PAWL_TOKEN"); !given.empty()) return one_word(given, "PAWL_TOKEN");
  const auto path = credentials_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::string();
  PAWL_TRY(const auto text, read_private(path));
  std::istringstream lines(text);
  for (std::string address, token; lines >> address >> token;) {
    if (address == url.text()) return one_word(token, printable(path));
  }
  return std::string();
}

Result<void> keep_token(const Url& url, const std::string& token) {
  const auto path = credentials_path();
  if (path.empty())
    return fail(Code::invalid_argument, "cannot store a token: neither PAWL_CREDENTIALS nor HOME is set");
  std::error_code failure;
  const auto parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, failure);
  std::string kept;
  if (std::filesystem::exists(path, failure)) {
    PAWL_TRY(const auto text, read_private(path));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with(url.text() + " ")) kept += line + "\n";
    }
  }
  kept += fmt::format("{} {}\n", url.text(), token);
  // Written to a temporary file and renamed, so that the file is always whole.
  const auto fresh = path + ".new";
  ::unlink(fresh.c_str());
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return cannot("written", fresh);
  const bool written = ::write(file, kept.data(), kept.size()) == static_cast<ssize_t>(kept.size());
  ::close(file);
  if (!written || ::rename(fresh.c_str(), path.c_str()) != 0) return cannot("written", path);
  return {};
}

}  // namespace pawl::cli
