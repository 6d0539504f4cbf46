// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/cluster.hpp"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>

namespace pawl::crash {
namespace {

constexpr const char* kReplicated = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'";

}  // namespace

Cluster::Cluster(Kind kind) {
  // Both settings are for pg_rewind.
  servers_[0] =
      std::make_unique<test::Server>(test::Settings{{"wal_log_hints", "on"}, {"wal_keep_size", "1GB"}});
  database_ = servers_[0]->create_database();
  if (kind == Kind::one_server) return;
  servers_[1] =
      std::make_unique<test::Server>(*servers_[0], test::Settings{{"synchronous_standby_names", "standby"}});
  servers_[0]->change("synchronous_standby_names", "standby");
  wait_until(kReplicated);
}

std::string Cluster::url(const std::string& parameters) const {
  if (!servers_[1]) return servers_[0]->url(database_, parameters);
  return fmt::format("postgresql://postgres@/{}?host={},{}&port=5432,5432{}", database_,
                     servers_[0]->directory().string(), servers_[1]->directory().string(), parameters);
}

void Cluster::fail_over() {
  primary().kill_all();
  other().promote();
  primary_ = 1 - primary_;
}

void Cluster::rejoin() {
  other().follow(primary());
  wait_until(kReplicated);
}

void Cluster::wait_until(const std::string& text) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (sql(text) != "t") {
    if (std::chrono::steady_clock::now() > end) throw std::runtime_error("it never came to: " + text);
  }
}

void Cluster::settle() const {
  wait_until("SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pawl'");
}

void Cluster::outwait_lease() const { wait_until("SELECT until <= clock_timestamp() FROM pawl.leases"); }

std::int64_t Cluster::epoch() const { return std::stoll(sql("SELECT epoch FROM pawl.shards")); }

std::int64_t Cluster::entries_before(std::int64_t epoch) const {
  return std::stoll(sql(fmt::format("SELECT count(*) FROM pawl.log WHERE epoch < {}", epoch)));
}

std::int64_t Cluster::stale_entries() const {
  if (sql("SELECT to_regclass('pawl.log') IS NULL") == "t") return 0;
  return std::stoll(
      sql("SELECT count(*) FROM (SELECT epoch < lag(epoch) OVER (ORDER BY seq) AS back FROM pawl.log) x "
          "WHERE back"));
}

}  // namespace pawl::crash
