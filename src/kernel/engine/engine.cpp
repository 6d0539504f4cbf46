// SPDX-License-Identifier: Apache-2.0
#include "pawl/engine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernel/engine/completion.hpp"
#include "kernel/engine/core.hpp"
#include "pawl/atomic.hpp"

namespace pawl {

Engine::Engine(std::shared_ptr<EngineCore> core) : core_(std::move(core)) {}

Engine::~Engine() {
  std::vector<std::function<void()>> actions;
  {
    const std::lock_guard lock(before_close_mutex_);
    actions.swap(before_close_);
  }
  for (auto action = actions.rbegin(); action != actions.rend(); ++action) (*action)();
  core_->close();
}

void Engine::before_close(std::function<void()> action) {
  const std::lock_guard lock(before_close_mutex_);
  before_close_.push_back(std::move(action));
}

Result<std::unique_ptr<Engine>> Engine::open(Runtime& runtime, Machines machines, EngineOptions options) {
  return EngineCore::open_engine(runtime, std::move(machines), std::move(options), open_store);
}

Result<std::unique_ptr<Engine>> EngineCore::open_engine(Runtime& runtime, Machines machines,
                                                        EngineOptions options, const StoreOpener& opener) {
  PAWL_CHECK(machines.validate());
  auto core = std::make_shared<EngineCore>(runtime, std::move(machines), std::move(options));
  PAWL_CHECK(core->open(opener));
  return std::unique_ptr<Engine>(new Engine(std::move(core)));
}

Result<std::unique_ptr<Engine>> open_engine(Runtime& runtime, Machines machines, EngineOptions options,
                                            const StoreOpener& opener) {
  return EngineCore::open_engine(runtime, std::move(machines), std::move(options), opener);
}

void EngineCore::submit_inline(Engine& engine, Transaction transaction, Done done) {
  engine.core_->submit(std::move(transaction), std::nullopt, std::move(done), true);
}

void submit_inline(Engine& engine, Transaction transaction,
                   std::move_only_function<void(Result<std::vector<Instance>>)> done) {
  EngineCore::submit_inline(engine, std::move(transaction), std::move(done));
}

const OpenReport& Engine::report() const { return core_->report(); }

Result<std::vector<Instance>> Engine::commit(Transaction transaction) {
  return core_->wait_for_outcome(std::move(transaction), std::nullopt);
}

void Engine::submit(Transaction transaction,
                    std::move_only_function<void(Result<std::vector<Instance>>)> done) {
  core_->submit(std::move(transaction), std::nullopt, std::move(done));
}

Result<std::vector<Instance>> Engine::atomically(std::string partition,
                                                 const std::function<Result<void>(Atomic&)>& change,
                                                 int attempts) {
  if (partition.empty()) return fail(Code::invalid_argument, "atomically needs the name of a partition");
  for (int attempt = 1;; ++attempt) {
    Request::PartitionGuard guard{partition, core_->partition_seq(partition)};
    Atomic atomic(*core_, partition);
    PAWL_CHECK(change(atomic));
    if (atomic.transaction_.operations().empty()) {
      if (atomic.transaction_.statements().empty()) return std::vector<Instance>{};
      return fail(Code::invalid_argument,
                  "this change has statements but sends and creates nothing; a transaction has at least one "
                  "operation");
    }
    auto outcome = core_->wait_for_outcome(std::move(atomic.transaction_), std::move(guard));
    if (outcome || outcome.error().code() != Code::version_conflict || attempt >= attempts) return outcome;
  }
}

Result<Instance> Engine::read(std::string_view machine, std::string_view key) const {
  return core_->read(machine, key);
}
Result<InstancePage> Engine::list(const ListQuery& query) const { return core_->list(query); }
std::map<std::string, std::map<std::string, std::size_t>> Engine::counts() const { return core_->counts(); }

Result<History> Engine::history(std::string_view machine, std::string_view key, std::int64_t before,
                                std::size_t limit) const {
  return core_->history(machine, key, before, limit);
}

Result<Instance> Engine::wait_for(std::string_view machine, std::string_view key,
                                  const std::vector<std::string>& states,
                                  std::optional<Duration> timeout) const {
  return core_->wait_for_state(machine, key, states, timeout);
}

void Engine::wait_for(std::string_view machine, std::string_view key, std::vector<std::string> states,
                      std::optional<Duration> timeout,
                      std::move_only_function<void(Result<Instance>)> done) const {
  core_->watch_state(machine, key, std::move(states), timeout, std::move(done));
}

std::int64_t Engine::last_seq() const { return core_->last_seq(); }

std::string Engine::cursor_before(std::int64_t count) const {
  return core_->make_cursor(std::max<std::int64_t>(core_->last_seq() - count, 0));
}

Result<std::optional<ClaimedWork>> Engine::claim(std::string_view machine, std::vector<std::string> works,
                                                 Duration wait) {
  return await<std::optional<ClaimedWork>>(
      core_->runtime(), [&](auto done) { core_->claim(machine, std::move(works), wait, std::move(done)); });
}

void Engine::claim(std::string_view machine, std::vector<std::string> works, Duration wait,
                   std::move_only_function<void(Result<std::optional<ClaimedWork>>)> done) {
  core_->claim(machine, std::move(works), wait, std::move(done));
}

Result<LeaseStatus> Engine::heartbeat(const Lease& lease) {
  return await<LeaseStatus>(core_->runtime(), [&](auto done) { core_->heartbeat(lease, std::move(done)); });
}

void Engine::heartbeat(const Lease& lease, std::move_only_function<void(Result<LeaseStatus>)> done) {
  core_->heartbeat(lease, std::move(done));
}

Result<void> Engine::complete(const Lease& lease, Result<Reply> result) {
  return await<void>(core_->runtime(),
                     [&](auto done) { complete(lease, std::move(result), std::move(done)); });
}

void Engine::complete(const Lease& lease, Result<Reply> result,
                      std::move_only_function<void(Result<void>)> done) {
  core_->complete(lease, std::move(result),
                  [done = std::move(done)](const Result<std::vector<Instance>>& outcome) mutable {
                    done(outcome ? Result<void>() : fail(outcome.error()));
                  });
}

Result<Subscription> Engine::subscribe(std::string_view cursor) const {
  PAWL_TRY(const auto after, core_->parse_cursor(cursor));
  return Subscription(core_, after, core_->make_cursor(after));
}

Result<std::vector<std::vector<SqlValue>>> Engine::query(const Sql& statement,
                                                         const std::stop_token& stop) const {
  return core_->query(statement, stop);
}

Result<void> Engine::put_ephemeral(std::string_view machine, std::string_view key, std::string name,
                                   std::string json) {
  return core_->put_ephemeral(machine, key, std::move(name), std::move(json));
}

Result<std::map<std::string, std::string>> Engine::ephemerals(std::string_view machine,
                                                              std::string_view key) const {
  return core_->ephemerals(machine, key);
}

Result<void> Engine::resize_pool(std::string_view name, std::uint32_t size) {
  return core_->resize_pool(name, size);
}
std::vector<PoolStatus> Engine::pools() const { return core_->pools(); }
EngineStats Engine::stats() const { return core_->stats(); }

std::vector<const Definition*> Engine::definitions() const {
  std::vector<const Definition*> all;
  for (std::size_t i = 0; i < core_->registry().size(); ++i) {
    all.push_back(&core_->registry().definition(static_cast<std::uint16_t>(i)));
  }
  return all;
}

const Definition* Engine::definition(std::string_view machine) const {
  const auto& registry = core_->registry();
  const auto number = registry.number(machine);
  return number ? &registry.definition(*number) : nullptr;
}

Result<void> Engine::retain() { return core_->retain(); }

Result<void> Engine::backup(const std::string& path, const std::function<void(double)>& progress) const {
  return core_->backup(path, progress);
}

Result<std::vector<std::string>> Engine::check() const { return core_->check(); }

Result<std::vector<LogEvent>> Subscription::poll(std::size_t limit) {
  PAWL_TRY(auto events, core_->follow(after_, limit));
  if (!events.empty()) {
    after_ = events.back().seq;
    cursor_ = events.back().cursor;
  }
  return events;
}

Result<std::vector<LogEvent>> Subscription::next(std::optional<Duration> timeout, std::size_t limit) {
  PAWL_CHECK(core_->wait_for_entries(after_, timeout));
  return poll(limit);
}

std::string Subscription::cursor() const { return cursor_; }

Result<Instance> Atomic::read(std::string_view machine, std::string_view key) const {
  PAWL_TRY(auto instance, core_.read(machine, key));
  if (instance.partition != partition_) {
    return fail(Code::wrong_partition,
                fmt::format("{} \"{}\" is not in the partition \"{}\"", machine, key, partition_));
  }
  return instance;
}

std::vector<std::string> Atomic::keys(std::string_view machine) const {
  return core_.partition_keys(machine, partition_);
}

}  // namespace pawl
