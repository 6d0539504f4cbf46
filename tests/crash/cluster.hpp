// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The database servers that a driver on PostgreSQL runs and kills: one, or a primary and its synchronous
/// standby.
///
///     Cluster cluster(Cluster::Kind::with_standby);
///     cluster.fail_over();      // the primary is gone, the standby is the primary
///     cluster.rejoin();         // and has a synchronous standby again

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/postgres_server.hpp"

namespace pawl::crash {

/// Used by one thread at a time. Throws std::runtime_error where something cannot be done.
class Cluster {
 public:
  enum class Kind { one_server, with_standby };
  explicit Cluster(Kind kind);

  /// Of all servers, for an engine; with these parameters besides.
  std::string url(const std::string& parameters) const;
  /// Of the server that is the primary now.
  std::string primary_url() const { return primary().url(database_); }
  /// Where other files may be put; it goes with the cluster.
  std::string directory() const { return servers_[0]->directory().string(); }

  void kill_server() { primary().kill_all(); }
  void start_server() { primary().start(); }
  void fail_over();
  void rejoin();

  /// Waits until no session of Pawl is left: what a killed worker had sent is done or gone.
  void settle() const;
  /// Waits until the owner's lease has ended.
  void outwait_lease() const;
  std::int64_t epoch() const;
  /// Entries of owners before this epoch. Their number must not grow once it has begun.
  std::int64_t entries_before(std::int64_t epoch) const;
  /// Entries that lie behind one of a later owner.
  std::int64_t stale_entries() const;

 private:
  test::Server& primary() const { return *servers_.at(primary_); }
  test::Server& other() const { return *servers_.at(1 - primary_); }
  std::string sql(const std::string& text) const { return primary().run(database_, text); }
  void wait_until(const std::string& sql) const;

  std::array<std::unique_ptr<test::Server>, 2> servers_;
  std::size_t primary_ = 0;
  std::string database_;
};

}  // namespace pawl::crash
