// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace pawl {

Result<std::unique_ptr<Store>> open_store_at(StoreOptions options) {
  constexpr std::string_view kSqlite = "sqlite:";
  const auto& where = options.where;
  if (where.starts_with("postgresql://") || where.starts_with("postgres://")) {
    return open_postgres({.url = std::move(options.where),
                          .read_only = options.read_only,
                          .create = options.create,
                          .take_over = options.take_over});
  }
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    return open_sqlite({.path = where.substr(kSqlite.size()),
                        .read_only = options.read_only,
                        .create = options.create,
                        .vfs = std::move(options.vfs),
                        .now = std::move(options.now)});
  }
  // What follows the scheme may hold a password.
  const auto scheme = where.substr(0, where.find(':'));
  return fail(
      Code::invalid_argument,
      fmt::format("store \"{}\": expected \"sqlite:PATH\" or \"postgresql://user@host/database\"", scheme));
}

Result<bool> Store::wait(Seq after, Duration most) {
  // Nothing tells one process of another's commits here, so it looks.
  constexpr Duration kPause = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + most;
  while (true) {
    PAWL_TRY(const auto entries, feed(after, 1));
    if (!entries.empty()) return true;
    const auto left = std::chrono::duration_cast<Duration>(end - std::chrono::steady_clock::now());
    if (left <= Duration::zero()) return false;
    std::this_thread::sleep_for(std::min(left, kPause));
  }
}

}  // namespace pawl
