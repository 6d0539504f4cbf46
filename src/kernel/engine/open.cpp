// SPDX-License-Identifier: Apache-2.0
// Opening: load every head, map states, resume interrupted work.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "kernel/engine/core.hpp"
#include "kernel/engine/migrate.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace pawl {
namespace {

/// An attempt had started and its end was not recorded.
bool is_interrupted(const WorkRecord& work) { return work.attempt > 0 && !work.not_before; }

/// The codes of the store are those from 3000 on.
bool is_store_failure(Code code) { return std::to_underlying(code) / 1000 == 3; }

}  // namespace

Result<std::unique_ptr<Store>> open_store(Runtime& runtime, const EngineOptions& options) {
  return open_store_at({.where = options.store,
                        .take_over = options.take_over,
                        .vfs = options.vfs,
                        .query_limits = options.query_limits,
                        .now = [&runtime] { return runtime.now(); }});
}

Result<void> EngineCore::open(const StoreOpener& opener) {
  PAWL_TRY(store_, opener(runtime_, options_));
  report_.weakened_guarantees = store_->info().weakened_guarantees;
  for (const auto& what : report_.weakened_guarantees)
    options_.log.warn("weakened guarantee", {{"what", what}});
  if (!options_.schema.empty()) PAWL_CHECK(store_->execute(options_.schema));
  PAWL_CHECK(migrate(*store_, options_.migrations));
  const auto workers = static_cast<std::uint32_t>(std::max<std::size_t>(options_.work_threads, 1));
  auto pools = options_.pools;
  for (const auto& pool : registry_.pools_of_machines()) pools.insert(pool);
  pools[std::string(kWorkThreads)] = workers;
  pools[std::string(kStartedAttempts)] =
      static_cast<std::uint32_t>(std::max<std::size_t>(options_.max_started_attempts, workers));
  for (const auto& [name, size] : pools) {
    PAWL_TRY(auto pool, PermitPool::open(name == kWorkThreads       ? "work_threads"
                                         : name == kStartedAttempts ? "started_attempts"
                                                                    : name,
                                         size));
    pools_.emplace(name, std::move(pool));
    if (name != kWorkThreads && name != kStartedAttempts) registry_.add_pool(name);
  }
  for (std::size_t machine = 0; machine < registry_.size(); ++machine) {
    for (const auto& [name, work] : registry_.entry(static_cast<std::uint16_t>(machine)).works) {
      if (pools_.contains(work.options.pool)) continue;
      return fail(Code::unknown_pool,
                  fmt::format("work \"{}\" needs the permit pool \"{}\", which the options do not define",
                              name, work.options.pool));
    }
  }
  incarnation_ = store_->info().incarnation;
  leased_ = store_->is_leased();
  last_at_ = std::max(store_->info().last_at, runtime_.now());
  PAWL_CHECK(open_retention_clock());
  PAWL_CHECK(load());
  lane_owner_ = runtime_.open_lane("engine");
  maintenance_owner_ = runtime_.open_lane("maintenance");
  helper_owner_ = runtime_.open_lane("append");
  workers_owner_ = runtime_.open_thread_pool("work", {.threads = workers, .queue = std::size_t{1} << 20});
  lane_ = lane_owner_.get();
  maintenance_ = maintenance_owner_.get();
  helper_ = helper_owner_.get();
  workers_ = workers_owner_.get();
  PAWL_CHECK(recover());
  durable_seq_ = store_->info().last;
  // From here on only the lane changes the heads.
  lane_->post([this] {
    resume();
    drain();
  });
  options_.log.info("engine opened", {{"instances", report_.instances},
                                      {"recovered", report_.recovered},
                                      {"interrupted", report_.interrupted},
                                      {"unknown", report_.unknown.size()}});
  return {};
}

Result<void> EngineCore::load() {
  std::vector<Head> loaded;
  std::optional<Error> broken;
  PAWL_CHECK(store_->load([&](const StoredHead& stored) {
    Head head;
    head.id = stored.id;
    head.machine = registry_.intern_machine(stored.machine);
    head.state = registry_.intern_state(head.machine, stored.state);
    head.generation = static_cast<std::uint32_t>(stored.generation);
    head.version = stored.version;
    head.seq = stored.seq;
    head.created_at = stored.created_at;
    head.at = stored.at;
    head.key = CompactText(stored.key);
    head.partition = static_cast<std::uint32_t>(partition_number(std::string(stored.partition)));
    if (!stored.extra.empty()) {
      auto extras = decode<Extras>(stored.extra, {.bytes = std::size_t{64} << 20});
      if (!extras && !broken) broken = std::move(extras).error();
      if (extras) head.extras = std::make_unique<Extras>(*std::move(extras));
    }
    note_unknown(stored, head);
    loaded.push_back(std::move(head));
  }));
  if (broken) return fail(Error(*broken).while_("while loading the timers and work of an instance"));
  // The order of creation is the order of listing.
  std::ranges::sort(loaded, [](const Head& a, const Head& b) {
    return std::pair(a.created_at, a.id) < std::pair(b.created_at, b.id);
  });
  for (auto& head : loaded) {
    ++counts_[{head.machine, head.state}];
    if (head.extras) {
      report_.interrupted +=
          static_cast<std::size_t>(std::ranges::count_if(head.extras->work, is_interrupted));
      report_.overdue_timers += static_cast<std::size_t>(std::ranges::count_if(
          head.extras->timers, [&](const TimerRecord& timer) { return timer.due <= last_at_; }));
    }
    if (head.partition != 0) {
      partition_members_[head.partition].push_back(head.id);
      partition_seqs_[head.partition] = std::max(partition_seqs_[head.partition], head.seq);
    }
    heads_.insert(std::move(head));
  }
  PAWL_ASSERT(heads_.size() == loaded.size(), "each instance has one head", heads_.size(), loaded.size());
  report_.instances = heads_.size();
  return {};
}

void EngineCore::note_unknown(const StoredHead& stored, const Head& head) {
  const auto note = [&](std::string name) {
    if (std::ranges::find(report_.unknown, name) == report_.unknown.end())
      report_.unknown.push_back(std::move(name));
  };
  if (!registry_.knows(head.machine)) return note(std::string(stored.machine));
  if (head.state >= Registry::kUnknown) return note(fmt::format("{}.{}", stored.machine, stored.state));
  if (!head.extras) return;
  for (const auto& work : head.extras->work) {
    if (handler_of(head.machine, work.name) == nullptr)
      note(fmt::format("{}: work \"{}\"", stored.machine, work.name));
  }
}

/// Applies the recovery mappings of the machines durably, before the engine serves requests.
Result<void> EngineCore::recover() {
  PAWL_ASSERT(durable_seq_ == 0 && running_.empty(), "states are mapped before the engine serves requests");
  std::vector<Request> requests;
  std::optional<Error> failed;
  const auto done = [&](const Result<std::vector<Instance>>& outcome) {
    if (outcome) {
      ++report_.recovered;
    } else if (is_store_failure(outcome.error().code())) {
      failed = outcome.error();
    } else {
      options_.log.warn("recovery mapping refused", {{"error", outcome.error().to_string()}});
    }
  };
  for (std::size_t slot = 0; slot < heads_.slots(); ++slot) {
    const auto& head = heads_.slot(slot);
    if (!registry_.knows(head.machine) || head.state >= Registry::kUnknown) continue;
    if (!registry_.definition(head.machine).states[head.state].recovers_to) continue;
    requests.push_back({.targets = {{head.machine, head.id, {}, RecoverInstance{}}}, .done = done});
  }
  for (std::size_t begin = 0; begin < requests.size(); begin += options_.batch) {
    const auto count = std::min(requests.size() - begin, options_.batch);
    run_batch(std::span(requests).subspan(begin, count));
    if (failed) return fail(*std::move(failed));
  }
  return {};
}

/// Resumes the timers, messages and work of every instance; work in the order of its requests.
void EngineCore::resume() {
  PAWL_ASSERT(running_.empty() && timers_.size() == 0,
              "interrupted work is resumed once, before anything else", running_.size(), timers_.size());
  std::vector<const Head*> carrying;
  for (std::size_t slot = 0; slot < heads_.slots(); ++slot) {
    const auto& head = heads_.slot(slot);
    if (head.extras && registry_.knows(head.machine) && head.state < Registry::kUnknown)
      carrying.push_back(&head);
  }
  std::ranges::sort(carrying, {}, &Head::seq);
  std::vector<const Head*> queued;
  std::vector<std::pair<const Head*, const WorkRecord*>> works;
  for (const auto* head : carrying) {
    for (const auto& timer : head->extras->timers) arm_timer(head->id, timer);
    for (const auto& message : head->extras->outbox) deliver(head->id, head->machine, message);
    if (head->extras->queue) queued.push_back(head);
    if (head->extras->queue && pools_.contains(head->extras->queue->pool))
      continue;  // resumed when the instance is admitted
    for (const auto& work : head->extras->work) works.emplace_back(head, &work);
  }
  // Instances that were admitted come first.
  std::ranges::sort(queued, {}, [](const Head* head) {
    const bool started =
        std::ranges::any_of(head->extras->work, [](const auto& work) { return work.attempt > 0; });
    return std::tuple(!started, head->extras->queue->asked);
  });
  for (const auto* head : queued) enter_queue(head->id, *head->extras->queue);
  std::ranges::sort(works, {},
                    [](const auto& work) { return std::pair(work.second->asked, work.first->seq); });
  for (const auto& [head, work] : works) resume_work(*head, *work);
  wake_timers();
}

/// Work that was running when the process ended has used up that attempt; other work requests a permit again.
void EngineCore::resume_work(const Head& head, const WorkRecord& work) {
  PAWL_ASSERT(!running_.contains(WorkKey{head.id, work.number}), "running work is not resumed", work.number);
  const auto* handler = handler_of(head.machine, work.name);
  if (handler == nullptr) return;  // reported; untouched
  if (work.stop) {
    return work_returned({head.id, work.number}, head.machine, work.attempt,
                         fail(Code::cancelled, "stopped before another attempt began"));
  }
  if (work.not_before) return retry_later(head.id, head.machine, work);
  if (is_interrupted(work) && work.attempt > handler->options.again_after_crash &&
      !delay_after(handler->options.retry, work.attempt, 0)) {
    work_returned({head.id, work.number}, head.machine, work.attempt,
                  fail(Code::retries_exhausted,
                       fmt::format("attempt {} of work \"{}\" was cut off by a crash and was the last",
                                   work.attempt, work.name)));
    return;
  }
  request_permit({head.id, work.number}, head.machine, work.name);
}

}  // namespace pawl
