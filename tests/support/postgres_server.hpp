// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A PostgreSQL server of the tests' own, in a temporary directory, reachable by a Unix socket only. It ends
/// with its object, and also where the test program dies: a process in between watches over it.
///
///     Server server;                                     // initdb and start: about a second
///     const auto url = server.url(server.create_database());

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace pawl::test {

/// Where Debian keeps the server's programs; nothing where PostgreSQL is not installed.
std::optional<std::string> postgres_programs();

using Settings = std::map<std::string, std::string>;

/// Used by one thread at a time. Throws std::runtime_error where something cannot be done.
class Server {
 public:
  /// Below `parent`; in memory where none is given, because a sync costs nothing there.
  explicit Server(const Settings& settings = {}, const std::filesystem::path& parent = {});
  /// A standby that follows `primary`.
  Server(const Server& primary, Settings settings);
  Server& operator=(const Server&) = delete;
  ~Server();

  /// An empty database that nobody else uses, until `drop_database`.
  std::string create_database();
  void drop_database(const std::string& name);
  /// With these parameters besides, e.g. "&pawl_lease=1s".
  std::string url(const std::string& database, const std::string& parameters = "") const;
  const std::filesystem::path& directory() const { return directory_; }
  std::string socket_file() const;

  /// Runs statements as the superuser in a database; returns the first column of the first row, if any.
  std::string run(const std::string& database, const std::string& sql) const;

  /// As an administrator restores a dump in another database of the server, which must exist.
  void copy_by_dump(const std::string& from, const std::string& to) const;

  void start();
  /// SIGQUIT: the server ends at once and recovers when it is started again.
  void crash();
  /// kill -9 of the server and of all its processes.
  void kill_all();
  /// Stops after the connections have ended.
  void stop();
  /// Makes a standby a primary.
  void promote();
  /// Makes a server that has ended a standby of `primary`, whatever it has that the other one lacks. Both
  /// need `wal_log_hints`.
  void follow(const Server& primary);
  void change(const std::string& setting, const std::string& value);

 private:
  void make_directory(std::filesystem::path parent);
  void configure(const Settings& settings) const;
  std::string connection_to(const Server& primary) const;
  void stop_with(int signal);
  void wait_until_ready() const;

  std::filesystem::path directory_;
  int databases_ = 0;
  std::vector<std::string> empty_;  ///< to be used again
  pid_t guard_ = -1;
  pid_t server_ = -1;
  int leash_ = -1;  ///< its end tells the guard that this process is gone
};

/// Runs a program, waits, and returns its output; throws with that where it fails.
std::string run_program(const std::vector<std::string>& arguments);
/// The same as the user `postgres` where this is root, whom PostgreSQL refuses.
std::vector<std::string> as_postgres(std::vector<std::string> arguments);

/// The server that the tests of this program share; started when it is first asked for.
Server& shared_server();

/// Skips a test visibly where PostgreSQL is not installed.
#define PAWL_NEEDS_POSTGRES() \
  if (!::pawl::test::postgres_programs()) GTEST_SKIP() << "PostgreSQL 15 is not installed"

}  // namespace pawl::test
