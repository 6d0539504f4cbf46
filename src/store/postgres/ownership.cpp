// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/ownership.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "store/postgres/backoff.hpp"

namespace pawl::postgres {
namespace {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

/// Microseconds of a clock that includes suspended time.
std::int64_t boot_time() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

Error locked(const std::string& pid, const std::string& host, const std::string& since, Duration left) {
  return Error(
      Code::store_locked,
      fmt::format("process {} on {} owns the store since {}; its lease ends in {} unless it is renewed. "
                  "Stop it, or take the store over explicitly",
                  pid, host, since, to_string(left)),
      {{"pid", pid}, {"host", host}, {"since", since}, {"lease_left", to_string(left)}});
}

// Identifies the place of a store in its cluster: a copied database or a restored table has another one.
#define PAWL_PG_PLACE                                                                 \
  "(SELECT oid FROM pg_database WHERE datname = current_database())::text || '/' || " \
  "'{s}.pawl_meta'::regclass::oid::text"

/// Condition: the store was written elsewhere before. An empty or missing value means that the store is new
/// or was moved here.
constexpr const char* kRenewIncarnation =
    "UPDATE {s}.pawl_meta SET value = $1 WHERE name = 'incarnation' AND EXISTS(SELECT 1 FROM {s}.pawl_meta "
    "WHERE name = 'system' AND value NOT IN ('', $2) OR name = 'place' AND value <> " PAWL_PG_PLACE ")";
constexpr const char* kNotePlace = "INSERT INTO {s}.pawl_meta VALUES('place', " PAWL_PG_PLACE
                                   ") ON CONFLICT (name) DO UPDATE SET value = excluded.value";

}  // namespace

Ownership::Ownership(const PostgresOptions& options, const Names& names)
    : options_(options), names_(names), owner_id_(make_incarnation()), host_(host_name()) {}

Result<Ownership::Holder> Ownership::holder(Connection& db) {
  PAWL_TRY(
      const auto row,
      db.run(names_("SELECT epoch, owner, until > clock_timestamp(), pid, host, "
                    "CASE WHEN isfinite(since) THEN (extract(epoch FROM since) * 1000000)::bigint END, "
                    "EXISTS(SELECT 1 FROM pg_stat_activity a WHERE a.pid = l.backend AND a.backend_start = "
                    "l.backend_start AND a.datname = current_database()), CASE WHEN isfinite(until) THEN "
                    "(extract(epoch FROM until - "
                    "clock_timestamp()) * 1000000)::bigint ELSE 0 END FROM {s}.leases l WHERE shard = 0")));
  if (row.count() != 1) return fail(Code::store_corrupt, "the table 'leases' has no row for shard 0");
  return Holder{.epoch = row.integer(0, 0),
                .mine = row.text(0, 1) == owner_id_,
                .alive = row.boolean(0, 2),
                .connected = row.boolean(0, 6),
                .pid = std::to_string(row.integer(0, 3)),
                .host = row.text(0, 4),
                .since = to_string(row.time(0, 5)),
                .left = std::max(Duration(row.integer(0, 7)), Duration::zero())};
}

void Ownership::end_backend(Connection& db, std::int64_t epoch) {
  // If the role may not do this, the server itself ends an idle transaction, and raising the epoch waits for
  // it. The lease of a copy still names the backend of the original, which is in another database.
  static_cast<void>(
      db.run(names_("SELECT pg_terminate_backend(a.pid) FROM pg_stat_activity a JOIN {s}.leases l ON a.pid = "
                    "l.backend AND a.backend_start = l.backend_start WHERE l.epoch = $1 AND a.pid <> "
                    "pg_backend_pid() AND a.datname = current_database()"),
             Params().int8(epoch)));
}

Result<bool> Ownership::raise(Connection& db, const Holder& seen, bool force, const ServerFacts& facts) {
  const auto begun = boot_time();
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(options_.patience).count();
  db.queue("BEGIN ISOLATION LEVEL READ COMMITTED");
  db.queue(fmt::format("SET LOCAL lock_timeout = {}", std::max<std::int64_t>(milliseconds, 1)));
  // Waits for every transaction of the last owner that holds the row; later ones cannot commit.
  db.queue(names_("UPDATE {s}.shards SET epoch = epoch + 1 WHERE shard = 0 AND epoch = $1 RETURNING epoch"),
           Params().int8(seen.epoch));
  db.queue(
      names_(
          "UPDATE {s}.leases SET epoch = $1 + 1, owner = $2, until = clock_timestamp() + $3 * interval '1 "
          "microsecond', pid = $4, host = $5, since = CASE WHEN owner = $2 THEN since ELSE clock_timestamp() "
          "END, backend = pg_backend_pid(), backend_start = (SELECT backend_start FROM pg_stat_activity "
          "WHERE "
          "pid = pg_backend_pid()) WHERE shard = 0 AND epoch = $1 AND ($6 = 1 OR until <= "
          "clock_timestamp())"),
      Params()
          .int8(seen.epoch)
          .text(owner_id_)
          .int8(options_.lease.count())
          .int4(getpid())
          .text(host_)
          .int4(force ? 1 : 0));
  // A copy is another incarnation, for which cursors of the original are invalid.
  db.queue(names_(kRenewIncarnation), Params().text(make_incarnation()).text(facts.system));
  db.queue(names_(kNotePlace));
  queue_meta(db, names_, "system", facts.system);
  queue_meta(db, names_, "timeline", facts.timeline);
  db.queue("SELECT pg_notify($1, 'owner ' || $2)",
           Params().text(names_.channel()).text(std::to_string(seen.epoch + 1)));
  auto results = db.sync();
  if (!results) {
    db.roll_back();
    return fail(std::move(results).error());
  }
  if ((*results)[2].count() != 1 || (*results)[3].affected() != 1) {
    db.roll_back();
    return false;
  }
  PAWL_CHECK(db.run("COMMIT"));
  // A commit that its standby has not confirmed proves nothing; the next commit waits for both.
  if (db.take_unreplicated()) return false;
  timeline_.store(facts.timeline, std::memory_order_release);
  epoch_.store(seen.epoch + 1, std::memory_order_release);
  // Subtract a tenth for clocks that run at different speeds.
  valid_until_.store(begun + options_.lease.count() * 9 / 10, std::memory_order_release);
  return true;
}

Result<void> Ownership::claim(Connection& db, const ServerFacts& facts) {
  const std::scoped_lock lock(mutex_);
  // The lease of a dead owner expires within its duration; after that, other owners have come and gone.
  Backoff backoff(options_.lease + std::chrono::seconds(1));
  while (true) {
    PAWL_TRY(const auto seen, holder(db));
    const bool free = seen.mine || !seen.alive || options_.take_over;
    if (free) {
      end_backend(db, seen.epoch);
      PAWL_TRY(const bool raised, raise(db, seen, seen.mine || options_.take_over, facts));
      if (raised) return {};
    } else if (seen.connected) {
      return fail(locked(seen.pid, seen.host, seen.since, seen.left));
    }
    if (!backoff.again()) return fail(locked(seen.pid, seen.host, seen.since, seen.left));
  }
}

Result<void> Ownership::reclaim(Connection& db, const ServerFacts& facts) {
  const std::scoped_lock lock(mutex_);
  Backoff backoff(options_.patience);
  while (true) {
    PAWL_TRY(const auto seen, holder(db));
    if (!seen.mine) {
      return fail(Code::store_fenced,
                  fmt::format("process {} on {} has taken the store over with epoch {}", seen.pid, seen.host,
                              seen.epoch),
                  {{"pid", seen.pid}, {"host", seen.host}, {"epoch", std::to_string(seen.epoch)}});
    }
    end_backend(db, seen.epoch);
    PAWL_TRY(const bool raised, raise(db, seen, true, facts));
    if (raised) return {};
    if (!backoff.again()) return fail(Code::store_io, "the epoch of this owner could not be raised in time");
  }
}

Result<void> Ownership::renew(Connection& db) {
  const std::scoped_lock lock(mutex_);
  const auto begun = boot_time();
  PAWL_TRY(
      const auto done,
      db.run(
          names_(
              "UPDATE {s}.leases SET until = clock_timestamp() + $2 * interval '1 microsecond' WHERE shard "
              "= 0 AND epoch = $1"),
          Params().int8(epoch()).int8(options_.lease.count())));
  if (done.affected() != 1) {
    valid_until_.store(0, std::memory_order_release);
    return fail(Code::store_fenced, fmt::format("another owner has followed the one with epoch {}", epoch()));
  }
  if (db.take_unreplicated()) return fail(Code::store_io, "the standby has not confirmed the lease");
  valid_until_.store(begun + options_.lease.count() * 9 / 10, std::memory_order_release);
  return {};
}

void Ownership::release(Connection& db) {
  const std::scoped_lock lock(mutex_);
  valid_until_.store(0, std::memory_order_release);
  // If this fails, the lease expires.
  static_cast<void>(db.run(names_("UPDATE {s}.leases SET until = '-infinity' WHERE shard = 0 AND epoch = $1"),
                           Params().int8(epoch())));
}

Result<void> Ownership::check() const {
  if (boot_time() < valid_until_.load(std::memory_order_acquire)) return {};
  return fail(Code::store_fenced,
              "this owner's lease has expired; another owner may have taken the store over",
              {{"lease", "lapsed"}});
}

}  // namespace pawl::postgres
