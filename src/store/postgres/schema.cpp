// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/schema.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <random>

namespace pawl::postgres {
namespace {

/// Migration n brings a schema from version n to n + 1. Released ones never change.
constexpr auto kMigrations = std::to_array<const char*>({
    R"sql(
CREATE TABLE {s}.pawl_meta(name text PRIMARY KEY, value text NOT NULL);
INSERT INTO {s}.pawl_meta VALUES('schema', '0'), ('incarnation', ''), ('high', '0'), ('flushed', '0'),
  ('horizon', '0'), ('last_at', '0'), ('system', ''), ('timeline', '0');
CREATE TABLE {s}.shards(shard int PRIMARY KEY, epoch bigint NOT NULL);
INSERT INTO {s}.shards VALUES(0, 0);
CREATE TABLE {s}.leases(
  shard int PRIMARY KEY,
  epoch bigint NOT NULL,
  owner text NOT NULL,
  until timestamptz NOT NULL,
  pid int NOT NULL,
  host text NOT NULL,
  since timestamptz NOT NULL,
  backend int NOT NULL,
  backend_start timestamptz NOT NULL
);
INSERT INTO {s}.leases VALUES(0, 0, '', '-infinity', 0, '', '-infinity', 0, '-infinity');
CREATE TABLE {s}.batches(epoch bigint NOT NULL, batch bigint NOT NULL, PRIMARY KEY(epoch, batch));
CREATE TABLE {s}.machines(number int PRIMARY KEY, name text NOT NULL UNIQUE);
CREATE TABLE {s}.log(
  seq bigint NOT NULL,
  epoch bigint NOT NULL,
  id uuid NOT NULL,
  machine int NOT NULL,
  kind smallint NOT NULL,
  version bigint NOT NULL,
  generation bigint NOT NULL,
  prev bigint NOT NULL,
  at bigint NOT NULL,
  state text NOT NULL,
  schema bigint NOT NULL,
  finished boolean NOT NULL,
  event text,
  payload text,
  data text,
  extra text,
  key text,
  partition text,
  request uuid,
  content bigint,
  members int,
  PRIMARY KEY(seq)
) PARTITION BY RANGE(seq);
CREATE INDEX log_request ON {s}.log(request) WHERE request IS NOT NULL;
CREATE TYPE {s}.log_row AS (
  seq bigint, epoch bigint, id uuid, machine int, kind smallint, version bigint, generation bigint,
  prev bigint, at bigint, state text, schema bigint, finished boolean, event text, payload text, data text,
  extra text, key text, partition text, request uuid, content bigint, members int
);
CREATE TABLE {s}.heads(
  id uuid PRIMARY KEY,
  machine int NOT NULL,
  key text NOT NULL,
  partition text,
  generation bigint NOT NULL,
  version bigint NOT NULL,
  seq bigint NOT NULL,
  state text NOT NULL,
  created_at bigint NOT NULL,
  at bigint NOT NULL,
  finished_seq bigint,
  has_extra boolean NOT NULL,
  kind smallint,
  prev bigint,
  schema bigint,
  event text,
  payload text,
  data text,
  extra text
) WITH (fillfactor = 70);
CREATE INDEX heads_finished ON {s}.heads(finished_seq) WHERE finished_seq IS NOT NULL;
CREATE TYPE {s}.head_row AS (
  id uuid, machine int, generation bigint, version bigint, seq bigint, state text, at bigint,
  finished boolean, has_extra boolean, begins bigint, created_at bigint
);
CREATE TABLE {s}.ephemeral(
  id uuid NOT NULL,
  name text NOT NULL,
  value text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY(id, name)
) WITH (fillfactor = 70);
CREATE TYPE {s}.ephemeral_row AS (id uuid, name text, value text, at bigint);
CREATE FUNCTION {s}.pawl_fence(expected bigint) RETURNS void LANGUAGE plpgsql AS $fence$
DECLARE
  present bigint;
BEGIN
  -- FOR SHARE: a takeover waits for this transaction, or this one for the takeover and then finds no row.
  PERFORM 1 FROM {s}.shards WHERE shard = 0 AND epoch = expected FOR SHARE;
  IF FOUND THEN RETURN; END IF;
  SELECT epoch INTO present FROM {s}.shards WHERE shard = 0;
  RAISE EXCEPTION 'the owner with epoch % was followed by one with epoch %', expected, present
    USING ERRCODE = 'PAWL1';
END
$fence$;
CREATE VIEW {s}.pawl_instances AS
WITH tail AS (
  SELECT id, max(seq) AS seq, max(key) AS key, max(at) FILTER (WHERE kind = 1) AS begun
  FROM {s}.log WHERE seq > (SELECT value::bigint FROM {s}.pawl_meta WHERE name = 'flushed') GROUP BY id
), newest AS (
  SELECT heads.id, greatest(heads.seq, tail.seq) AS seq, heads.key,
    coalesce(tail.begun, heads.created_at) AS created_at
  FROM {s}.heads LEFT JOIN tail ON tail.id = heads.id
  UNION ALL
  SELECT id, seq, key, begun FROM tail WHERE NOT EXISTS (SELECT 1 FROM {s}.heads WHERE heads.id = tail.id)
)
SELECT machines.name AS machine, newest.key, coalesce(log.state, heads.state) AS state,
  coalesce(log.generation, heads.generation) AS generation, coalesce(log.version, heads.version) AS version,
  coalesce(log.finished, heads.finished_seq IS NOT NULL) AS finished,
  to_timestamp(newest.created_at / 1e6) AS created_at, to_timestamp(coalesce(log.at, heads.at) / 1e6) AS at,
  coalesce(log.data, heads.data) AS data, newest.seq, newest.id
FROM newest LEFT JOIN {s}.log ON log.seq = newest.seq LEFT JOIN {s}.heads ON heads.id = newest.id
JOIN {s}.machines ON machines.number = coalesce(log.machine, heads.machine);
)sql",
});
static_assert(kMigrations.size() == kSchemaVersion);

constexpr auto kOwnTables = std::to_array<std::string_view>(
    {"pawl_meta", "machines", "log", "heads", "ephemeral", "pawl_instances", "shards", "leases", "batches"});

std::int64_t to_integer(std::string_view text) {
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Error newer(std::int64_t version, const Names& names) {
  return Error(
      Code::store_newer,
      fmt::format("schema \"{}\" has version {}, this program knows versions up to {}; use a newer program",
                  names.schema(), version, kSchemaVersion),
      {{"file_schema", std::to_string(version)}, {"known_schema", std::to_string(kSchemaVersion)}});
}

Result<void> create_schema(Connection& db, const Names& names, std::int64_t version) {
  // CREATE SCHEMA needs a privilege even if the schema exists, for example created by an administrator.
  PAWL_TRY(const auto there,
           db.run("SELECT 1 FROM pg_namespace WHERE nspname = $1", Params().text(names.schema())));
  std::string script;
  if (there.count() == 0) script += names("CREATE SCHEMA {s};");
  for (auto next = version; next < kSchemaVersion; ++next)
    script += names(kMigrations.at(static_cast<std::size_t>(next)));
  if (version == 0) {
    script += names(fmt::format("UPDATE {{s}}.pawl_meta SET value = '{}' WHERE name = 'incarnation';",
                                make_incarnation()));
  }
  script +=
      names(fmt::format("UPDATE {{s}}.pawl_meta SET value = '{}' WHERE name = 'schema';", kSchemaVersion));
  return db.run_script(script);
}

}  // namespace

std::string Names::operator()(std::string_view sql) const {
  std::string out;
  while (true) {
    const auto at = sql.find("{s}");
    out += sql.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += schema_;
    sql.remove_prefix(at + 3);
  }
}

std::string Names::announcement(std::string_view text) const {
  return fmt::format(
      "SELECT pg_notify('{0}', {1}) WHERE NOT pg_try_advisory_xact_lock(hashtextextended('{0}', 1))",
      channel(), text);
}

std::string Names::listener_lock() const {
  return fmt::format("SELECT pg_advisory_lock_shared(hashtextextended('{}', 1))", channel());
}

bool is_own_table(std::string_view name) {
  return name.starts_with("log_p") || std::ranges::find(kOwnTables, name) != kOwnTables.end();
}

Result<ServerFacts> server_facts(Connection& db) {
  constexpr int kOldest = 150000;
  if (PQserverVersion(db.get()) < kOldest) {
    return fail(Code::invalid_argument, fmt::format("the server is PostgreSQL {}; 15 or newer is needed",
                                                    PQserverVersion(db.get()) / 10000));
  }
  db.queue(
      "SELECT current_setting('server_encoding'), current_setting('synchronous_commit'), "
      "current_setting('fsync'), "
      "current_setting('full_page_writes'), current_setting('synchronous_standby_names'), "
      "(SELECT system_identifier::text FROM pg_control_system()), "
      "CASE WHEN pg_is_in_recovery() THEN '00000000' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, "
      "8) END");
  PAWL_TRY(const auto results, db.sync());
  const auto& row = results.front();
  if (row.text(0, 0) != "UTF8") {
    return fail(Code::invalid_argument,
                fmt::format("the database's encoding is {}; a store needs UTF8", row.text(0, 0)));
  }
  ServerFacts facts{.system = row.text(0, 5), .synchronous_commit = row.text(0, 1)};
  const auto line = row.text(0, 6);
  std::from_chars(line.data(), line.data() + line.size(), facts.timeline, 16);
  if (facts.synchronous_commit == "off") facts.unsafe.emplace_back("synchronous_commit = off");
  if (row.text(0, 2) == "off") facts.unsafe.emplace_back("fsync = off");
  if (row.text(0, 3) == "off") facts.unsafe.emplace_back("full_page_writes = off");
  for (const auto& setting : facts.unsafe) {
    facts.weakened_guarantees.push_back(
        fmt::format("{}: a crash of the server may lose commits that were acknowledged", setting));
  }
  if (row.text(0, 4).empty()) {
    facts.weakened_guarantees.emplace_back(
        "no synchronous standby: commits survive crashes of the server, but not the loss of its disk, and a "
        "failover "
        "to a standby may lose the newest");
  } else if (facts.synchronous_commit == "local") {
    facts.weakened_guarantees.emplace_back(
        "synchronous_commit = local: commits do not wait for the synchronous standby, a failover may lose "
        "the "
        "newest commits");
  }
  return facts;
}

Result<std::int64_t> stored_version(Connection& db, const Names& names) {
  PAWL_TRY(
      const auto there,
      db.run("SELECT 1 FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE n.nspname = $1 AND "
             "relname = 'pawl_meta'",
             Params().text(names.schema())));
  if (there.count() == 0) return 0;
  PAWL_TRY(const auto version, db.run(names("SELECT value FROM {s}.pawl_meta WHERE name = 'schema'")));
  return version.count() == 0 ? 0 : to_integer(version.text(0, 0));
}

Result<void> migrate(Connection& db, const Names& names, Create create) {
  PAWL_TRY(const auto seen, stored_version(db, names));
  if (seen > kSchemaVersion) return fail(newer(seen, names));
  if (seen == kSchemaVersion) return {};
  if (seen == 0 && create == Create::no) {
    return fail(Code::invalid_argument, fmt::format("the schema \"{}\" contains no store", names.schema()));
  }
  PAWL_CHECK(db.run("BEGIN"));
  // If two programs start at once, the second waits here and then finds everything done.
  auto done = db.run("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
                     Params().text("pawl migrate " + names.schema()));
  Result<std::int64_t> version = seen;
  if (done) version = stored_version(db, names);
  Result<void> made;
  if (!done) made = fail(std::move(done).error());
  if (made && !version) made = fail(std::move(version).error());
  if (made && *version > kSchemaVersion) made = fail(newer(*version, names));
  if (made && *version < kSchemaVersion) made = create_schema(db, names, *version);
  if (!made) {
    db.roll_back();
    return fail(std::move(made).error().while_(fmt::format("preparing schema \"{}\"", names.schema())));
  }
  PAWL_CHECK(db.run("COMMIT"));
  return {};
}

Result<Meta> read_meta(Connection& db, const Names& names) {
  PAWL_TRY(const auto rows, db.run(names("SELECT name, value FROM {s}.pawl_meta")));
  Meta meta;
  for (int i = 0; i < rows.count(); ++i) {
    const auto name = rows.bytes(i, 0);
    const auto value = rows.bytes(i, 1);
    if (name == "schema") meta.schema = to_integer(value);
    if (name == "incarnation") meta.incarnation = value;
    if (name == "high") meta.high = to_integer(value);
    if (name == "flushed") meta.flushed = to_integer(value);
    if (name == "horizon") meta.horizon = to_integer(value);
    if (name == "last_at") meta.last_at = Time(Duration(to_integer(value)));
    if (name == "system") meta.system = value;
    if (name == "timeline") meta.timeline = to_integer(value);
  }
  if (meta.incarnation.size() != 32) {
    return fail(Code::store_corrupt,
                fmt::format("pawl_meta: the incarnation '{}' is not 32 hexadecimal digits",
                            meta.incarnation.substr(0, 64)));
  }
  return meta;
}

void queue_meta(Connection& db, const Names& names, std::string_view name, std::string_view value) {
  db.queue(names("UPDATE {s}.pawl_meta SET value = $2 WHERE name = $1"), Params().text(name).text(value));
}

std::string make_incarnation() {
  std::random_device random;
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{:08x}", random());
  return text;
}

}  // namespace pawl::postgres
