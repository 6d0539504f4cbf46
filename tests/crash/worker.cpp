// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/worker.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <string>
#include <utility>

#include "kernel/engine/open_engine.hpp"
#include "pawl/codec.hpp"
#include "pawl/engine.hpp"
#include "tests/crash/request.hpp"
#include "tests/engine/broken_store.hpp"

namespace pawl::crash {
namespace {

using namespace std::chrono_literals;

/// One call for one line: short enough that it is written whole or not at all.
Result<void> write_line(int file, std::string line) {
  line += '\n';
  const auto written = write(file, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return {};
  return fail(Code::store_io, fmt::format("wrote {} of {} bytes, errno {}", written, line.size(), errno));
}

/// The side effect of the work: a line in a file outside of the store.
class Notebook {
 public:
  explicit Notebook(const std::string& path)
      : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  Notebook(const Notebook&) = delete;
  Notebook& operator=(const Notebook&) = delete;
  ~Notebook() { close(file_); }

  Result<Reply> note(const WorkContext& context, const Note& note) const {
    const auto line = context.request_id();
    PAWL_CHECK(write_line(file_, fmt::format("{} {}", line, context.attempt)));
    return reply(Noted{note.request, line, std::int64_t{context.attempt}});
  }

 private:
  int file_;
};

Transaction to_transaction(const Request& request) {
  const auto id = fmt::format("request-{}", request.number);
  switch (request.kind) {
    case Kind::create_counter:
      return Transaction{}.create<counter>(request.key, {}, {.request_id = id});
    case Kind::create_inbox:
      return Transaction{}.create<inbox>(request.key, {}, {.request_id = id});
    case Kind::create_account:
      return Transaction{}.create<account>(request.key, {kOpeningBalance},
                                           {.partition = request.partition, .request_id = id});
    case Kind::increment:
      return Transaction{}.send<counter>(
          request.key, Increment{request.number, request.also, request.after_ms, request.to},
          {.request_id = id});
    case Kind::transfer:
      break;
  }
  return Transaction{}
      .send<account>(request.key, Withdraw{request.number, request.amount})
      .send<account>(request.to, Deposit{request.number, request.amount})
      .request_id(id);
}

/// On SQLite a failed store is a finding. On PostgreSQL the driver takes the server or the ownership away.
Outcome to_outcome(Code code, bool shared) {
  if (code == Code::guard_refused) return Outcome::refused;
  if (!shared) return Outcome::failed;
  if (code == Code::store_poisoned || code == Code::outcome_unknown) return Outcome::reopen;
  const bool away = code == Code::store_fenced || code == Code::rolled_back || code == Code::store_io;
  return away ? Outcome::unknown : Outcome::failed;
}

/// Runs on the engine's thread. The driver reads all the time, so the pipe does not fill for long.
void answer(std::int64_t number, const Result<std::vector<Instance>>& outcome, bool shared) {
  Answer made{.number = number};
  if (outcome) {
    made.version = outcome->front().version;
    made.seq = outcome->front().seq;
  } else {
    made.outcome = to_outcome(outcome.error().code(), shared);
    made.error = outcome.error().to_string();
  }
  const auto line = encode(made);
  if (line && write_line(STDOUT_FILENO, *line)) return;
  // Nobody listens any more: what is not told does not count.
  _exit(3);
}

/// Follows the log until everything that was asked for has happened.
Result<void> settle(const Engine& engine) {
  PAWL_TRY(auto log, engine.subscribe("begin"));
  std::int64_t pending = 0;
  while (true) {
    PAWL_TRY(const auto events, pending > 0 ? log.next(60s, 1000) : log.poll(1000));
    if (events.empty() && pending > 0)
      return fail(Code::timed_out, fmt::format("{} timers, works or messages never happened", pending));
    if (events.empty()) return {};
    for (const auto& event : events) {
      if (event.event == "Increment") {
        PAWL_TRY(const auto increment, decode<Increment>(event.payload));
        if (increment.also != Also::nothing) ++pending;
      }
      if (event.event == "Rung" || event.event == "Noted" || event.kind == "message") --pending;
    }
  }
}

}  // namespace

Result<void> run_worker(const WorkerOptions& options) {
  const Notebook notebook(options.directory + "/notes");
  Machines machines;
  machines.add<counter>().add<inbox>().add<account>();
  machines.work<counter, Note>("note",
                               [&](const WorkContext& context, const Note& note) -> Result<Reply> {
                                 return notebook.note(context, note);
                               },
                               {.retry = {.retries = RetryPolicy::kUnlimited, .first = 1ms, .cap = 10ms}});

  ThreadRuntime runtime;
  const StoreOpener opener = [&](Runtime& on, const EngineOptions& with) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(on, with));
    if (!options.acknowledge_before_commit) return store;
    return std::make_unique<test::AcknowledgesBeforeCommit>(std::move(store));
  };
  PAWL_TRY(const auto engine, open_engine(runtime, std::move(machines),
                                          {.store = options.store,
                                           .take_over = options.take_over,
                                           .work_threads = 4,
                                           .schema = {{.text = "CREATE TABLE IF NOT EXISTS increments("
                                                               "request INTEGER PRIMARY KEY NOT NULL)"}},
                                           .checkpoint_every = 20ms},
                                          opener));
  PAWL_CHECK(write_line(STDOUT_FILENO, kReady));

  const bool shared = !options.store.starts_with("sqlite:");
  for (std::string line; std::getline(std::cin, line);) {
    PAWL_TRY(const auto request, decode<Request>(line));
    engine->submit(to_transaction(request), [number = request.number, shared](const auto& outcome) {
      answer(number, outcome, shared);
    });
  }
  return settle(*engine);
}

}  // namespace pawl::crash
