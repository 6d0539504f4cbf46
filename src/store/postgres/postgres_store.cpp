// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/postgres_store.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "store/log_check.hpp"

namespace pawl::postgres {
namespace {

/// Connections of one kind.
constexpr std::size_t kReaders = 4;

/// Gap in the numbers after a failover: an asynchronous standby may lack the newest entries, whose numbers
/// readers have seen.
constexpr Seq kFailoverGap = Seq{1} << 20;

}  // namespace

PostgresStore::PostgresStore(PostgresOptions options, Address address)
    : options_(std::move(options)),
      address_(std::move(address)),
      names_(options_.schema),
      ownership_(options_, names_),
      listener_(options_, address_, names_, status_, ownership_),
      writer_(options_, address_, names_, status_, ownership_, listener_),
      lookups_(kReaders, [this] { return Reader::open(options_, address_, names_); }),
      ranges_(kReaders, [this] { return Reader::open(options_, address_, names_); }),
      queries_(kReaders, [this] { return Reader::open_for_queries(options_, address_, names_); }) {
  address_.set_default("connect_timeout", "10");
  address_.set_default("fallback_application_name", "pawl");
  // The kernel detects a peer that has vanished; without these, a wait would never end.
  address_.set_default("tcp_user_timeout", "10000");
  address_.set_default("keepalives_idle", "10");
  address_.set_default("keepalives_interval", "3");
  address_.set_default("keepalives_count", "3");
  if (!options_.read_only) address_.set_default("target_session_attrs", "read-write");
}

PostgresStore::~PostgresStore() {
  listener_.stop();
  // Closing only saves the next opening some replaying; if it fails, the log still has everything.
  static_cast<void>(writer_.close());
}

Result<void> PostgresStore::open() {
  if (options_.flush_every < 1 || options_.partition_entries < 1) {
    return fail(Code::invalid_argument, "flush_every and partition_entries must be positive");
  }
  PAWL_CHECK(check_query_limits(options_.query_limits));
  return options_.read_only ? open_reader() : open_owner();
}

Result<ServerFacts> PostgresStore::checked_facts(Connection& db) const {
  PAWL_TRY(auto facts, server_facts(db));
  if (facts.unsafe.empty() || options_.unsafe) return facts;
  const auto settings = fmt::format("{}", fmt::join(facts.unsafe, ", "));
  return fail(
      Code::store_unsafe,
      fmt::format("the server has {}, so that it would lose acknowledged commits; set it on, or accept that "
                  "with pawl_unsafe=1 in the URL",
                  settings),
      {{"settings", settings}});
}

Result<StoreInfo> PostgresStore::facts(Connection& db, const Meta& meta) const {
  StoreInfo info{.incarnation = meta.incarnation, .horizon = meta.horizon};
  db.queue(names_("SELECT seq, at FROM {s}.log WHERE seq > $1 ORDER BY seq DESC LIMIT 1"),
           Params().int8(meta.horizon));
  db.queue(names_("SELECT epoch FROM {s}.shards WHERE shard = 0"));
  PAWL_TRY(const auto results, db.sync());
  const bool found = results[0].count() != 0;
  info.last = std::max(meta.horizon, found ? results[0].integer(0, 0) : 0);
  info.last_at = std::max(meta.last_at, found ? results[0].time(0, 1) : Time{});
  info.epoch = results[1].count() == 0 ? 0 : results[1].integer(0, 0);
  info.read_only = options_.read_only;
  return info;
}

Result<void> PostgresStore::open_owner() {
  PAWL_TRY(auto db, Connection::open(address_, {.patience = options_.patience}));
  PAWL_TRY(auto server, checked_facts(db));
  PAWL_CHECK(migrate(db, names_, options_.create ? Create::yes : Create::no));
  PAWL_TRY(const auto before, read_meta(db, names_));
  const bool same = before.system == server.system;
  if (same && server.timeline < before.timeline) {
    return fail(
        Code::store_diverged,
        fmt::format("the server is on timeline {}, but this store was on timeline {} already: an old primary "
                    "answers",
                    server.timeline, before.timeline),
        {{"timeline", std::to_string(server.timeline)}, {"seen", std::to_string(before.timeline)}});
  }
  PAWL_CHECK(ownership_.claim(db, server));
  PAWL_TRY(const auto meta, read_meta(db, names_));
  PAWL_TRY(auto info, facts(db, meta));
  Seq next = std::max({info.last, meta.high, meta.horizon}) + 1;
  if (same && server.timeline > before.timeline) next += kFailoverGap;
  info.weakened_guarantees = server.weakened_guarantees;
  status_.set(std::move(info));
  PAWL_CHECK(writer_.open(std::move(db), std::move(server), next, meta.flushed));
  return listener_.start();
}

Result<void> PostgresStore::open_reader() {
  PAWL_TRY(auto db, Connection::open(address_, {.patience = options_.patience, .read_only = true}));
  PAWL_TRY(const auto version, stored_version(db, names_));
  if (version == 0) {
    return fail(Code::invalid_argument, fmt::format("the schema \"{}\" contains no store", names_.schema()));
  }
  PAWL_CHECK(migrate(db, names_, Create::no));
  PAWL_TRY(const auto meta, read_meta(db, names_));
  PAWL_TRY(auto info, facts(db, meta));
  status_.set(std::move(info));
  return {};
}

Result<void> PostgresStore::still_owner() const {
  PAWL_CHECK(status_.usable());
  return options_.read_only ? Result<void>{} : ownership_.check();
}

Result<void> PostgresStore::load(const std::function<void(const StoredHead&)>& visit) {
  // Not retried: visited heads cannot be taken back.
  PAWL_CHECK(status_.usable());
  PAWL_TRY(auto reader, ranges_.lease());
  return reader->load(visit);
}

Result<std::optional<Entry>> PostgresStore::head_entry(const InstanceId& id, Seq seq) {
  return reading(lookups_, [&](Reader& reader) { return reader.head_entry(id, seq); });
}

Result<std::vector<Entry>> PostgresStore::history(const InstanceId& id, Seq head, Seq before,
                                                  std::size_t limit) {
  return reading(ranges_, [&](Reader& reader) { return reader.history(id, head, before, limit); });
}

Result<std::vector<Entry>> PostgresStore::feed(Seq after, std::size_t limit) {
  return reading(ranges_, [&](Reader& reader) { return reader.feed(after, limit); });
}

Result<bool> PostgresStore::wait(Seq after, Duration most) {
  // Listen first, then read: a commit between the two is notified.
  PAWL_CHECK(listener_.start());
  PAWL_TRY(const auto entries, feed(after, 1));
  if (!entries.empty()) return true;
  return listener_.wait(after, most);
}

Result<std::optional<StoredRequest>> PostgresStore::find_request(const std::array<std::uint8_t, 16>& id) {
  PAWL_CHECK(status_.usable());
  if (writer_.batch_is_mine()) {
    if (const auto* found = writer_.batch_request(id)) return *found;
    if (!writer_.may_know(id)) return std::nullopt;
  }
  return reading(lookups_, [&](Reader& reader) { return reader.find_request(id); });
}

Result<std::vector<Ephemeral>> PostgresStore::ephemerals(const InstanceId& id) {
  return reading(lookups_, [&](Reader& reader) { return reader.ephemerals(id); });
}

Result<Seq> PostgresStore::seq_before(Time time) {
  return reading(lookups_, [&](Reader& reader) { return reader.seq_before(time); });
}

Result<StoreCheck> PostgresStore::check() {
  PAWL_CHECK(status_.usable());
  // Not from the pool: this takes long and the pool is small.
  PAWL_TRY(const auto reader, Reader::open(options_, address_, names_));
  return reader->check();
}

Result<StoreRepair> PostgresStore::repair() {
  PAWL_TRY(const auto found, check());
  StoreRepair result;
  if (!found.missing.empty()) PAWL_CHECK(writer_.rebuild_heads(found.missing));
  for (const auto& head : found.missing) result.repaired.push_back(repaired_sentence(head));
  PAWL_TRY(result.left, check());
  return result;
}

Result<std::vector<std::vector<SqlValue>>> PostgresStore::query(const Sql& statement,
                                                                const std::stop_token& stop) {
  QueryWatch watch(options_.query_limits, closing_.get_token(), stop);
  return reading_on([&] { return queries_.lease(watch); },
                    [&](Reader& reader) {
                      watch.begin();
                      return reader.query(statement, watch, options_.query_limits);
                    });
}

}  // namespace pawl::postgres

namespace pawl {

Result<std::unique_ptr<Store>> open_postgres(PostgresOptions options) {
  PAWL_TRY(auto address, postgres::Address::parse(options));
  const auto shown = address.shown();
  auto store = std::make_unique<postgres::PostgresStore>(std::move(options), std::move(address));
  if (auto opened = store->open(); !opened) {
    return fail(std::move(opened).error().while_(fmt::format("opening the store at {}", shown)));
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace pawl
