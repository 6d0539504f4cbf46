// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of sources share: a directory of their own, and bytes that are easy to tell apart.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "images/source/source.hpp"

namespace pawl::images::test {

/// Removed with everything in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    auto name = (std::filesystem::temp_directory_path() / "pawl_source_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

/// No two stretches of it are alike.
inline std::string some_bytes(std::size_t size) {
  std::string bytes;
  bytes.reserve(size + 16);
  for (std::uint64_t i = 0; bytes.size() < size; ++i) bytes += std::to_string(i * 2654435761U) + "\n";
  bytes.resize(size);
  return bytes;
}

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The code of a failure; `internal` where there is none, which no test expects.
template <class T>
Code code_of(const Result<T>& result) {
  return result ? Code::internal : result.error().code();
}

}  // namespace pawl::images::test
