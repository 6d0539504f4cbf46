// SPDX-License-Identifier: Apache-2.0
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace pawl {
namespace {

std::size_t bytes_of(const EntryView& entry) {
  return entry.machine.size() + entry.key.size() + entry.partition.size() + entry.state.size() +
         entry.event.size() + entry.payload.size() + entry.data.size() + entry.extra.size();
}

/// Extra room for entries of bookkeeping, which repeat the contents of the previous entry and add little.
/// Otherwise an instance at the limit could never begin its work or have its messages acknowledged.
std::size_t limit_of(EntryKind kind, std::size_t entry_bytes) {
  constexpr std::size_t kBookkeeping = std::size_t{64} << 10;
  const bool supplied = kind == EntryKind::created || kind == EntryKind::fired;
  return supplied ? entry_bytes : entry_bytes + kBookkeeping;
}

}  // namespace

Result<void> check_write(const Write& write, std::size_t entry_bytes) {
  for (const auto& entry : write.entries) {
    const auto bytes = bytes_of(entry);
    const auto limit = limit_of(entry.kind, entry_bytes);
    if (bytes <= limit) continue;
    return fail(Code::too_large,
                fmt::format("the entry of instance {} has {} bytes of text; the limit is {}",
                            entry.id.to_string(), bytes, limit),
                {{"bytes", std::to_string(bytes)}, {"limit", std::to_string(limit)}});
  }
  if (write.request && write.entries.empty()) {
    return fail(Code::invalid_argument, "a request id needs an entry to be stored with");
  }
  return {};
}

Result<std::unique_ptr<Store>> open_store_at(StoreOptions options) {
  constexpr std::string_view kSqlite = "sqlite:";
  const auto& where = options.where;
  if (where.starts_with("postgresql://") || where.starts_with("postgres://")) {
    return open_postgres({.url = std::move(options.where),
                          .read_only = options.read_only,
                          .create = options.create,
                          .take_over = options.take_over,
                          .query_limits = options.query_limits});
  }
  if (where.starts_with(kSqlite) && where.size() > kSqlite.size()) {
    return open_sqlite({.path = where.substr(kSqlite.size()),
                        .read_only = options.read_only,
                        .create = options.create,
                        .query_limits = options.query_limits,
                        .vfs = std::move(options.vfs),
                        .now = std::move(options.now)});
  }
  // The rest of the URL may contain a password.
  const auto scheme = where.substr(0, where.find(':'));
  return fail(
      Code::invalid_argument,
      fmt::format("store \"{}\": expected \"sqlite:PATH\" or \"postgresql://user@host/database\"", scheme));
}

Result<bool> Store::wait(Seq after, Duration most) {
  // Nothing notifies this process of the commits of another one, so poll.
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
