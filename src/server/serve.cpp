// SPDX-License-Identifier: Apache-2.0
#include "server/serve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "kernel/suggestion.hpp"
#include "pawl/auth.hpp"
#include "pawl/flows.hpp"
#include "pawl/server.hpp"
#include "server/lapse.hpp"
#include "server/listen.hpp"

namespace pawl::server {
namespace {

constexpr std::string_view kAllSystems = "all";

/// Threads inherit the mask, so only `sigtimedwait` below receives the signals.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

/// The systems that the configuration names, in its order.
Result<std::vector<System*>> choose(const Config& config, const Systems& available) {
  auto wanted = config.systems;
  if (std::ranges::find(wanted, kAllSystems) != wanted.end()) {
    wanted.clear();
    for (const auto& system : available) wanted.push_back(system->name());
  }
  if (config.demo && std::ranges::find(wanted, "demo") == wanted.end()) wanted.emplace_back("demo");
  std::vector<std::string> known;
  for (const auto& system : available) known.push_back(system->name());
  std::vector<System*> chosen;
  for (const auto& name : wanted) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      return fail(Code::config_invalid,
                  fmt::format("systems: there is no system \"{}\"{}", name, suggestion(name, known)));
    }
    chosen.push_back(available[static_cast<std::size_t>(found - known.begin())].get());
  }
  return chosen;
}

/// Private to the server: the store holds the hashes of passwords and tokens.
Result<void> make_directory(const std::string& path, const Logger& log) {
  namespace fs = std::filesystem;
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure) {
    return fail(Code::store_io,
                fmt::format("the directory {} cannot be created: {}", path, failure.message()));
  }
  const auto others = fs::perms::group_all | fs::perms::others_all;
  const auto mode = fs::status(path, failure).permissions();
  if (!failure && (mode & others) != fs::perms::none) {
    log.warn("other users can read the server's data directory",
             {{"directory", path}, {"hint", "chmod 700"}});
  }
  return {};
}

Result<std::unique_ptr<Engine>> open_engine(Runtime& runtime, const Config& config,
                                            const std::vector<System*>& systems, Flows& flows,
                                            const Logger& log) {
  PAWL_CHECK(make_directory(config.data, log));
  Machines machines;
  auto options = config.engine;
  options.store = config.store.empty() ? "sqlite:" + (std::filesystem::path(config.data) / "pawl.db").string()
                                       : config.store;
  options.log = log;
  const bool demo =
      std::ranges::any_of(systems, [](const System* system) { return system->name() == "demo"; });
  for (auto* system : systems) {
    PAWL_CHECK(system->prepare({.data = config.data, .demo = demo, .log = log}));
    system->add_flows(flows);
    system->add_machines(machines);
    if (auto migrations = system->migrations(); !migrations.empty()) {
      options.migrations.emplace(system->name(), std::move(migrations));
    }
    // Sizes from the configuration take precedence.
    options.pools.merge(system->pools());
  }
  PAWL_CHECK(flows.validate());
  flows.add_machines(machines);
  return Engine::open(runtime, std::move(machines), std::move(options));
}

/// Keeps flows attached to the engine for its lifetime.
class Attached {
 public:
  explicit Attached(Flows& flows) : flows_(flows) {}
  ~Attached() { flows_.detach(); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

  Result<void> begin(Engine& engine, const Logger& log) {
    PAWL_TRY(const auto found, flows_.attach(engine));
    for (const auto& [flow, step, runs, known] : found) {
      // `attach` has warned of runs at unknown steps.
      if (known) log.info("runs go on", {{"flow", flow}, {"step", step}, {"runs", runs}});
    }
    return {};
  }

 private:
  Flows& flows_;
};

/// Systems that have started. Stops them on destruction, also if a later one fails to start.
class Started {
 public:
  Started() = default;
  ~Started() { stop(); }
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  Result<void> begin(System& system, Runtime& runtime, Engine& engine) {
    PAWL_CHECK(system.start(runtime, engine));
    systems_.push_back(&system);
    return {};
  }
  void stop() {
    for (auto* system : std::exchange(systems_, {})) system->stop();
  }

 private:
  std::vector<System*> systems_;
};

std::optional<Duration> watchdog_interval() {
  const char* text = std::getenv("WATCHDOG_USEC");
  std::int64_t micros = 0;
  if (text == nullptr || std::from_chars(text, text + std::strlen(text), micros).ec != std::errc{}) {
    return std::nullopt;
  }
  return Duration(micros / 2);
}

void reload_now(Server& server, const Logger& log, const Config& running, const Systems& available,
                const Result<Config>& fresh) {
  if (!fresh) {
    log.error("the configuration was not reloaded", {{"error", fresh.error().to_string()}});
  } else {
    log.set_level(fresh->log_level);
    const auto waiting = keys_that_need_restart(running, *fresh, available);
    if (!waiting.empty()) {
      log.warn("changed keys need a restart", {{"keys", fmt::format("{}", fmt::join(waiting, ", "))}});
    }
    if (const auto done = server.reload_certificate(); !done) {
      log.error("the certificate was not reloaded", {{"error", done.error().to_string()}});
    }
    log.info("reloaded");
  }
}

/// Handles signals until one ends the process. Error: the store's failure; a restarted process recovers.
Result<void> handle_signals(const sigset_t& signals, const Engine& engine,
                            const std::function<void()>& reload) {
  const auto watchdog = watchdog_interval();
  const Duration glance =
      std::min<Duration>(watchdog.value_or(std::chrono::seconds(1)), std::chrono::seconds(1));
  const timespec patience{glance.count() / 1'000'000, (glance.count() % 1'000'000) * 1000};
  while (true) {
    const int signal = sigtimedwait(&signals, nullptr, &patience);
    if (signal == SIGTERM || signal == SIGINT) return {};
    if (signal == SIGHUP) {
      notify_manager("RELOADING=1");
      reload();
      notify_manager("READY=1");
    }
    PAWL_CHECK(check_engine(engine));
    if (watchdog) notify_manager("WATCHDOG=1");
  }
}

}  // namespace

void notify_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || *path == '\0' || std::strlen(path) >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, std::strlen(path));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + std::strlen(path));
  if (*path == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  // Without a service manager this is a no-op.
  (void)::sendto(socket, state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&address),
                 length);
  ::close(socket);
}

Result<std::vector<System*>> check_config(const Config& config, const Systems& available) {
  PAWL_TRY(auto systems, choose(config, available));
  PAWL_CHECK(check_listening(config.server, config.auth));
  return systems;
}

Result<void> check_engine(const Engine& engine) {
  PAWL_TRY(auto subscription, engine.subscribe(""));
  const auto followed = subscription.next(Duration(0), 1);
  if (!followed && !is_lapse(followed.error())) return fail(followed.error());
  return {};
}

ServerOptions server_options(const Config& config) {
  auto options = config.server;
  options.backups = (std::filesystem::path(config.data) / "backups").string();
  if (config.store.starts_with("postgres")) {
    options.backups_elsewhere =
        "the store is in PostgreSQL: back it up there, with pg_dump or pg_basebackup (docs/postgresql.md)";
  }
  return options;
}

Result<void> serve(const Config& config, const Systems& available,
                   const std::function<Result<Config>()>& reload) {
  const auto signals = block_signals();
  ::umask(S_IRWXG | S_IRWXO);
  ThreadRuntime runtime;
  const Logger log(std::make_shared<StreamSink>(2, StreamSink::Options{.format = config.log_format}), runtime,
                   config.log_level);
  const auto auth = config.auth ? make_auth() : nullptr;
  PAWL_TRY(const auto systems, check_config(config, available));
  auto parts = systems;
  if (auth) parts.push_back(auth.get());
  Flows flows(runtime, {.log = log});
  PAWL_TRY(const auto engine, open_engine(runtime, config, parts, flows, log));
  Attached attached(flows);
  PAWL_CHECK(attached.begin(*engine, log));
  if (auth) PAWL_CHECK(auth->start(runtime, *engine));
  Started started;
  for (auto* system : systems) PAWL_CHECK(started.begin(*system, runtime, *engine));
  auto options = server_options(config);
  options.systems = systems;
  options.flows = &flows;
  options.auth = auth.get();
  options.log = log;
  PAWL_TRY(auto server, Server::start(runtime, *engine, options));
  const auto host = options.listen.substr(0, options.listen.rfind(':'));
  const auto address =
      fmt::format("{}://{}:{}", options.certificate.empty() ? "http" : "https", host, server->port());
  fmt::print("Pawl is ready: {}\n", address);
  if (const auto first = auth ? auth->first_login() : std::nullopt) {
    fmt::print("First login: user {}, one-time password {}\n", first->user, first->password);
  }
  if (const auto code = auth && config.login_link ? auth->make_login_code() : std::nullopt) {
    // Behind the #, so that it is neither sent nor logged on the way to the page.
    fmt::print("Dashboard, logs you in once: {}/login#{}\n", address, *code);
  }
  std::fflush(stdout);
  notify_manager("READY=1");
  const auto ended =
      handle_signals(signals, *engine, [&] { reload_now(*server, log, config, available, reload()); });
  notify_manager("STOPPING=1");
  std::signal(SIGHUP, SIG_IGN);  // reloading makes no sense any more, and the default would end the process
  // From here on a signal ends the process at once, which is safe: every commit is durable.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  log.info("stopping", {{"drain", config.drain_timeout}});
  if (!server->drain(config.drain_timeout)) log.warn("drain_timeout passed; open requests were cut off");
  started.stop();
  server.reset();
  return ended;
}

}  // namespace pawl::server
