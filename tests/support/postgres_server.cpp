// SPDX-License-Identifier: Apache-2.0
#include "tests/support/postgres_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <libpq-fe.h>
#include <poll.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace pawl::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPort = "5432";  // part of the socket's name only

[[noreturn]] void give_up(const std::string& why) { throw std::runtime_error(why); }

std::string program(const std::string& name) {
  const auto programs = postgres_programs();
  if (!programs) give_up("PostgreSQL is not installed");
  return *programs + "/" + name;
}

/// Replaces this process. Only used between fork and exec.
[[noreturn]] void become(const std::vector<std::string>& arguments) {
  std::vector<char*> raw;
  for (const auto& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  execvp(raw[0], raw.data());
  _exit(127);
}

/// A process between fork and exec, or one that never execs, must not hold what belongs to others: the end of
/// a pipe that it keeps open would never be seen.
void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  if (low > 3) close_range(3, static_cast<unsigned>(low) - 1, 0);
  if (high > low + 1) close_range(static_cast<unsigned>(low) + 1, static_cast<unsigned>(high) - 1, 0);
  close_range(static_cast<unsigned>(high) + 1, ~0U, 0);
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    pid_t process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc{}) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    // "pid (name) state parent …", where the name may hold anything.
    const auto end = text.rfind(") ");
    pid_t its_parent = 0;
    if (end == std::string::npos) continue;
    std::from_chars(text.data() + end + 4, text.data() + text.size(), its_parent);
    if (its_parent == parent) found.push_back(process);
  }
  return found;
}

/// Child of the test: starts the server, reports its process id, and ends it when nobody holds the leash.
[[noreturn]] void guard(const std::vector<std::string>& arguments, const std::string& log, int leash,
                        int report, const fs::path& directory, pid_t parent) {
  setpgid(0, 0);                     // a signal to the test's group is not meant for the server
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // what a killed server leaves behind comes here
  close_all_but(leash, report);
  const pid_t server = fork();
  if (server == 0) {
    const int out = open(log.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    close(leash);
    become(arguments);
  }
  if (::write(report, &server, sizeof server) != sizeof server) _exit(1);
  close(report);
  char byte = 0;
  int status = 0;
  while (true) {
    pollfd waits{.fd = leash, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, 20) > 0 && read(leash, &byte, 1) <= 0) break;
    if (waitpid(server, &status, WNOHANG) == server) {  // somebody else has ended it
      while (waitpid(-1, &status, 0) > 0) continue;
      _exit(0);
    }
  }
  kill(server, SIGQUIT);
  while (waitpid(-1, &status, 0) > 0) continue;
  // The test has died: nobody else tidies up.
  if (getppid() != parent) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
  }
  _exit(0);
}

}  // namespace

std::optional<std::string> postgres_programs() {
  for (const char* version : {"17", "16", "15"}) {
    auto path = fmt::format("/usr/lib/postgresql/{}/bin", version);
    if (fs::exists(path + "/initdb")) return path;
  }
  return std::nullopt;
}

std::vector<std::string> as_postgres(std::vector<std::string> arguments) {
  if (geteuid() != 0) return arguments;
  std::vector<std::string> all{"setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "--"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

std::string run_program(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) give_up("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    become(arguments);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;)
    output.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) give_up(fmt::format("{} failed: {}", fmt::join(arguments, " "), output));
  return output;
}

void Server::make_directory(fs::path parent) {
  if (parent.empty())
    parent = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
  auto name = (fs::absolute(parent) / "pawl_pg_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) give_up("no temporary directory");
  directory_ = name;
  if (geteuid() != 0) return;
  const auto* user = getpwnam("postgres");
  if (user == nullptr || chown(name.c_str(), user->pw_uid, user->pw_gid) != 0)
    give_up("there is no user postgres");
}

void Server::configure(const Settings& settings) const {
  std::ofstream file(directory_ / "data" / "postgresql.auto.conf", std::ios::app);
  file << "listen_addresses = ''\nport = " << kPort
       << "\nshared_buffers = '16MB'\nmax_connections = 80\nlogging_collector = off\n"
          "wal_retrieve_retry_interval = '100ms'\n"
          "dynamic_shared_memory_type = mmap\n";  // files that go with the directory
  for (const auto& [name, value] : settings) file << name << " = '" << value << "'\n";
}

Server::Server(const Settings& settings, const fs::path& parent) {
  make_directory(parent);
  run_program(as_postgres({program("initdb"), "-D", (directory_ / "data").string(), "-U", "postgres", "-A",
                           "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "--no-instructions"}));
  configure(settings);
  start();
}

Server::Server(const Server& primary, Settings settings) {
  make_directory({});
  run_program(as_postgres({program("pg_basebackup"), "-h", primary.directory().string(), "-p", kPort, "-U",
                           "postgres", "-D", (directory_ / "data").string(), "-X", "stream", "-c", "fast",
                           "--no-sync"}));
  settings["primary_conninfo"] = connection_to(primary);
  configure(settings);
  run_program(as_postgres({"touch", (directory_ / "data" / "standby.signal").string()}));
  start();
}

std::string Server::connection_to(const Server& primary) const {
  return fmt::format("host={} port={} user=postgres application_name=standby", primary.directory().string(),
                     kPort);
}

Server::~Server() {
  stop_with(SIGQUIT);
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void Server::start() {
  std::array<int, 2> leash{};
  std::array<int, 2> report{};
  if (pipe2(leash.data(), O_CLOEXEC) != 0 || pipe2(report.data(), O_CLOEXEC) != 0) give_up("no pipe");
  // Not in the configuration, which pg_rewind copies from one server to the other.
  const auto arguments =
      as_postgres({program("postgres"), "-D", (directory_ / "data").string(), "-k", directory_.string()});
  const auto log = (directory_ / "log").string();
  const auto parent = getpid();
  guard_ = fork();
  if (guard_ == 0) {
    close(leash[1]);
    close(report[0]);
    guard(arguments, log, leash[0], report[1], directory_, parent);
  }
  close(leash[0]);
  close(report[1]);
  leash_ = leash[1];
  const bool told = read(report[0], &server_, sizeof server_) == sizeof server_;
  close(report[0]);
  if (!told) give_up("the server was not started");
  wait_until_ready();
}

void Server::wait_until_ready() const {
  for (int i = 0; i < 1000; ++i) {
    const auto text =
        fmt::format("host={} port={} user=postgres dbname=postgres", directory_.string(), kPort);
    if (PQping(text.c_str()) == PQPING_OK) return;
    if (kill(server_, 0) != 0) break;
    poll(nullptr, 0, 20);
  }
  std::ifstream log(directory_ / "log");
  give_up("the server does not answer: " + std::string(std::istreambuf_iterator<char>(log), {}));
}

void Server::stop_with(int signal) {
  if (guard_ < 0) return;
  kill(server_, signal);
  int status = 0;
  waitpid(guard_, &status, 0);
  close(leash_);
  guard_ = -1;
  leash_ = -1;
}

void Server::crash() { stop_with(SIGQUIT); }
void Server::stop() { stop_with(SIGINT); }

void Server::kill_all() {
  if (guard_ < 0) return;
  kill(server_, SIGSTOP);  // so that it starts no more of them
  for (const pid_t process : children_of(server_)) kill(process, SIGKILL);
  stop_with(SIGKILL);
}

void Server::follow(const Server& primary) {
  const auto data = directory_ / "data";
  // pg_rewind learns of a promotion from the last checkpoint.
  primary.run("postgres", "CHECKPOINT");
  run_program(as_postgres({program("pg_rewind"), "--target-pgdata", data.string(), "--source-server",
                           connection_to(primary) + " dbname=postgres", "--no-sync"}));
  configure({{"primary_conninfo", connection_to(primary)}});
  run_program(as_postgres({"touch", (data / "standby.signal").string()}));
  start();
}

void Server::promote() {
  run_program(as_postgres({program("pg_ctl"), "promote", "-w", "-D", (directory_ / "data").string()}));
}

void Server::copy_by_dump(const std::string& from, const std::string& to) const {
  const auto file = (directory_ / "dump.sql").string();
  const auto with = [&](const char* name, const std::string& database) {
    return std::vector<std::string>{
        program(name), "-h", directory_.string(), "-p", kPort, "-U", "postgres", "-d", database, "-f", file};
  };
  run_program(as_postgres(with("pg_dump", from)));
  auto restore = with("psql", to);
  restore.insert(restore.end(), {"-q", "-v", "ON_ERROR_STOP=1"});
  run_program(as_postgres(restore));
}

void Server::change(const std::string& setting, const std::string& value) {
  run("postgres", fmt::format("ALTER SYSTEM SET {} = '{}'", setting, value));
  run("postgres", "SELECT pg_reload_conf()");
}

std::string Server::socket_file() const { return (directory_ / fmt::format(".s.PGSQL.{}", kPort)).string(); }

std::string Server::url(const std::string& database, const std::string& parameters) const {
  return fmt::format("postgresql://postgres@/{}?host={}&port={}{}", database, directory_.string(), kPort,
                     parameters);
}

std::string Server::create_database() {
  if (!empty_.empty()) {
    auto name = std::move(empty_.back());
    empty_.pop_back();
    return name;
  }
  auto name = fmt::format("d{}", ++databases_);
  run("postgres", "CREATE DATABASE " + name);
  return name;
}

void Server::drop_database(const std::string& name) {
  // Emptied rather than dropped: making a database takes longer than most tests.
  run("postgres",
      fmt::format("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'", name));
  run("postgres", fmt::format("ALTER DATABASE {} RESET ALL", name));
  run(name,
      "SET client_min_messages = warning; DO $$DECLARE one text; BEGIN FOR one IN SELECT nspname FROM "
      "pg_namespace WHERE nspname !~ '^pg_' AND "
      "nspname <> 'information_schema' LOOP EXECUTE format('DROP SCHEMA %I CASCADE', one); END LOOP; END$$");
  run(name, "CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC");
  empty_.push_back(name);
}

std::string Server::run(const std::string& database, const std::string& sql) const {
  const std::unique_ptr<PGconn, decltype(&PQfinish)> db(PQconnectdb(url(database).c_str()), &PQfinish);
  if (PQstatus(db.get()) != CONNECTION_OK) give_up(PQerrorMessage(db.get()));
  const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(db.get(), sql.c_str()), &PQclear);
  const auto status = PQresultStatus(result.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) give_up(PQerrorMessage(db.get()));
  return PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
}

Server& shared_server() {
  static Server server;
  return server;
}

}  // namespace pawl::test
