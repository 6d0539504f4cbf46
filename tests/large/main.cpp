// SPDX-License-Identifier: Apache-2.0
// large_store: makes a store of many instances and does to it what its operators will: copies it under load,
// kills and reopens it, reads it with SQL, cuts its log.
//
//     large_store --instances 1000000
//     instances=1000000 backup=sound reopened=1000000 seconds=1.9 queries=ok bytes=612368384->301006848
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "bench/engine_machine.hpp"
#include "pawl/engine.hpp"

namespace pawl::large {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::uint64_t instances = 20'000;
  fs::path directory;
  std::string store() const { return (directory / "pawl.db").string(); }
  std::string copy() const { return (directory / "copy.db").string(); }
};

Result<std::unique_ptr<Engine>> open(Runtime& runtime, const std::string& path,
                                     std::optional<Duration> keep = std::nullopt) {
  Machines machines;
  machines.add<bench::meter>();
  return Engine::open(runtime, std::move(machines), {.store = "sqlite:" + path, .keep = keep});
}

/// Sends `count` transactions that `make` makes, a thousand at a time, until all are durable.
template <class Make>
Result<void> send_all(Engine& engine, std::uint64_t count, Make make) {
  constexpr std::uint64_t kAtOnce = 1000;
  std::atomic<std::uint64_t> sent = 0;
  std::atomic<std::uint64_t> left = count;
  std::atomic<bool> refused = false;
  Gate finished;
  std::function<void()> next = [&] {
    const auto number = sent++;
    if (number >= count) return;
    engine.submit(make(number), [&](const auto& outcome) {
      if (!outcome) refused = true;
      if (--left == 0) return finished.open();
      next();
    });
  };
  for (std::uint64_t i = 0; i < std::min(count, kAtOnce); ++i) next();
  ThreadRuntime().wait(finished);
  if (refused) return fail(Code::internal, "a transaction was refused");
  return {};
}

Transaction reading(const Options& options, std::uint64_t number) {
  return Transaction{}.send<bench::meter>(bench::key_of(number * 7919 % options.instances),
                                          bench::Reading{.watt_hours = 5});
}

/// Fills the store and copies it while it is written to; then ends like a crash.
Result<void> fill_and_copy(const Options& options) {
  ThreadRuntime runtime;
  PAWL_TRY(const auto engine, open(runtime, options.store()));
  PAWL_CHECK(send_all(*engine, options.instances, [](std::uint64_t number) {
    return Transaction{}.create<bench::meter>(bench::key_of(number));
  }));
  Result<void> copied;
  {
    const std::jthread copier([&] { copied = engine->backup(options.copy()); });
    PAWL_CHECK(send_all(*engine, 2 * options.instances,
                        [&](std::uint64_t number) { return reading(options, number); }));
  }
  PAWL_CHECK(copied);
  std::raise(SIGKILL);
  return {};
}

Result<void> fill_in_a_process_of_its_own(const Options& options) {
  const auto child = fork();
  if (child == 0) {
    const auto done = fill_and_copy(options);
    fmt::print(stderr, "{}\n", done ? "not killed" : done.error().to_string());
    std::_Exit(1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
    return fail(Code::internal, "the store could not be filled");
  return {};
}

Result<void> check_copy(const Options& options) {
  ThreadRuntime runtime;
  PAWL_TRY(const auto engine, open(runtime, options.copy()));
  PAWL_TRY(const auto problems, engine->check());
  if (!problems.empty()) return fail(Code::store_corrupt, problems.front());
  if (engine->report().instances == options.instances) return {};
  return fail(Code::internal, fmt::format("the copy has {} instances", engine->report().instances));
}

/// With the shell of SQLite, as the page on storage says.
Result<void> check_queries(const Options& options) {
  const auto output = options.directory / "count";
  const auto child = fork();
  if (child == 0) {
    if (std::freopen(output.c_str(), "w", stdout) == nullptr) std::_Exit(1);
    const auto store = options.store();
    ::execlp("sqlite3", "sqlite3", "-readonly", store.c_str(),
             "SELECT count(*) FROM pawl_instances WHERE machine = 'meter'", nullptr);
    std::_Exit(1);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    return fail(Code::internal, "the shell of SQLite failed");
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(output.c_str(), "r"), &std::fclose);
  unsigned long long count = 0;
  if (!file || std::fscanf(file.get(), "%llu", &count) != 1 || count != options.instances)
    return fail(Code::internal, fmt::format("a query counts {} instances", count));
  return {};
}

struct Reopened {
  std::size_t instances = 0;
  double seconds = 0;
};

Result<Reopened> reopen(const Options& options) {
  ThreadRuntime runtime;
  const auto begin = std::chrono::steady_clock::now();
  PAWL_TRY(const auto engine, open(runtime, options.store()));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const auto instances = engine->report().instances;
  if (instances != options.instances)
    return fail(Code::internal, fmt::format("{} instances after the crash", instances));
  return Reopened{instances, taken.count()};
}

/// Cuts the whole log.
Result<void> cut(const Options& options) {
  ThreadRuntime runtime;
  PAWL_TRY(const auto engine, open(runtime, options.store(), Duration::zero()));
  PAWL_CHECK(send_all(*engine, 1000, [&](std::uint64_t number) { return reading(options, number); }));
  PAWL_CHECK(engine->retain());
  PAWL_TRY(const auto problems, engine->check());
  if (!problems.empty()) return fail(Code::store_corrupt, problems.front());
  return {};
}

Result<void> run(const Options& options) {
  PAWL_CHECK(fill_in_a_process_of_its_own(options));
  PAWL_CHECK(check_copy(options));
  PAWL_CHECK(check_queries(options));
  PAWL_TRY(const auto reopened, reopen(options));
  const auto before = fs::file_size(options.store());
  PAWL_CHECK(cut(options));
  const auto after = fs::file_size(options.store());
  fmt::print("instances={} backup=sound reopened={} seconds={:.1f} queries=ok bytes={}->{}\n",
             options.instances, reopened.instances, reopened.seconds, before, after);
  if (after >= before) return fail(Code::internal, "the file did not shrink");
  return {};
}

}  // namespace
}  // namespace pawl::large

int main(int argc, char** argv) {
  pawl::large::Options options;
  CLI::App app("Makes a large store and copies, kills, reopens, reads and cuts it.");
  app.add_option("--instances", options.instances)->check(CLI::Range(1000, 100'000'000));
  CLI11_PARSE(app, argc, argv);
  auto pattern = (std::filesystem::temp_directory_path() / "pawl-large-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) return EXIT_FAILURE;
  options.directory = pattern;
  const auto done = pawl::large::run(options);
  std::filesystem::remove_all(options.directory);
  if (done) return EXIT_SUCCESS;
  fmt::print("{}\n", done.error().to_string());
  return EXIT_FAILURE;
}
