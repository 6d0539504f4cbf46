// SPDX-License-Identifier: Apache-2.0
#pragma once

/// SQLite stores for tests: each in a directory of its own that is removed afterwards.

#include <filesystem>
#include <memory>
#include <string>

#include "tests/store/conformance.hpp"

namespace pawl::test {

/// A new, empty directory; removed with everything in it.
class Directory {
 public:
  Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory();
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class SqlitePlace final : public Place {
 public:
  Result<std::unique_ptr<Store>> open(const PlaceOptions& options) override;
  Result<std::unique_ptr<Store>> open_read_only() override;
  Result<std::unique_ptr<Store>> open_after_crash(std::unique_ptr<Store> store,
                                                  const PlaceOptions& options) override;
  std::string backup_path() override { return directory_.file("backup.db"); }
  Result<std::unique_ptr<Store>> open_backup() override;

 private:
  SqliteOptions options(const PlaceOptions& wanted) const;

  Directory directory_;
  std::string path_ = directory_.file("pawl.db");
  int crashes_ = 0;
};

}  // namespace pawl::test
