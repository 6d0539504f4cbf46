// SPDX-License-Identifier: Apache-2.0
#include "supervise/collectors.hpp"

#include <algorithm>
#include <utility>

namespace pawl::supervise {

namespace {

/// Pools that did not end in time, kept until the process ends or their jobs do.
struct AbandonedPools {
  struct Pool {
    std::unique_ptr<ThreadPool> workers;
    std::shared_ptr<Gate> idle;
  };
  std::mutex mutex{};
  std::vector<Pool> pools{};

  /// Never destroyed: its threads may run until the process ends.
  static AbandonedPools& all() {
    static auto& pools = *new AbandonedPools;
    return pools;
  }
};

/// Destroys the abandoned pools whose jobs have ended.
void end_late_pools() {
  std::vector<AbandonedPools::Pool> over;
  auto& abandoned = AbandonedPools::all();
  const std::lock_guard lock(abandoned.mutex);
  for (auto& pool : abandoned.pools) {
    if (pool.idle->is_open()) over.push_back(std::move(pool));
  }
  std::erase_if(abandoned.pools, [](const auto& pool) { return pool.workers == nullptr; });
}

}  // namespace

void end_pool(Runtime& runtime, std::unique_ptr<ThreadPool> pool, const std::shared_ptr<Gate>& idle,
              Duration within) {
  end_late_pools();
  const auto began = runtime.instant();
  if (runtime.wait(*idle, within)) return;
  // A crashed process of a simulation does not wait; its jobs end with it.
  if (runtime.instant() - began < within) return;
  auto& abandoned = AbandonedPools::all();
  const std::lock_guard lock(abandoned.mutex);
  abandoned.pools.push_back({std::move(pool), idle});
}

Collectors::Collectors(Runtime& runtime, Options options, std::function<void()> ready)
    : runtime_(runtime), options_(options), shared_(std::make_shared<Shared>()) {
  const auto most = options.threads + options.abandoned_max;
  shared_->runtime = &runtime;
  shared_->ready = std::move(ready);
  shared_->slow_max = std::max<std::size_t>(1, options.threads / 2);
  workers_ = runtime.open_thread_pool("collect", {.threads = most, .queue = most});
}

Collectors::~Collectors() { stop(); }

void Collectors::stop() {
  if (!workers_) return;
  std::deque<Task> dropped;
  std::deque<Task> slow_dropped;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    dropped.swap(shared_->queue);
    slow_dropped.swap(shared_->slow_queue);
    for (auto& [_, running] : shared_->running) running.stop.request_stop();
    if (shared_->threads == 0 && shared_->abandoned == 0) shared_->idle->open();
  }
  end_pool(runtime_, std::move(workers_), shared_->idle, options_.stop_within);
}

std::uint64_t Collectors::add(std::shared_ptr<Node> node, std::shared_ptr<ToolHolder> tools, bool slow) {
  const std::lock_guard lock(shared_->mutex);
  const auto ticket = ++last_ticket_;
  if (shared_->stopped) return ticket;
  (slow ? shared_->slow_queue : shared_->queue).push_back({ticket, std::move(node), std::move(tools), slow});
  start_thread();
  return ticket;
}

/// Starts another thread if a collection is ready to start and the limit allows it.
void Collectors::start_thread() {
  if (shared_->threads == options_.threads || shared_->next_queue() == nullptr) return;
  // Refused only while the pool ends.
  if (workers_->submit([shared = shared_](std::stop_token pool) { Shared::run(shared, pool); }))
    ++shared_->threads;
}

/// The queue whose first collection has waited longest; slow ones only up to their share of the threads.
std::deque<Collectors::Task>* Collectors::Shared::next_queue() {
  const bool may_be_slow = !slow_queue.empty() && slow_running < slow_max;
  if (queue.empty()) return may_be_slow ? &slow_queue : nullptr;
  return may_be_slow && slow_queue.front().ticket < queue.front().ticket ? &slow_queue : &queue;
}

std::optional<Collectors::Started> Collectors::Shared::start_next(const std::stop_token& pool) {
  const std::lock_guard lock(mutex);
  auto* const from = next_queue();
  if (stopped || from == nullptr || pool.stop_requested()) {
    --threads;
    open_if_idle();
    return {};
  }
  Started started{
      .task = std::move(from->front()), .stop = {}, .began = runtime->instant(), .now = runtime->now()};
  from->pop_front();
  auto& one = running[started.task.ticket];
  one.node = started.task.node.get();
  one.began = started.began;
  one.slow = started.task.slow;
  if (one.slow) ++slow_running;
  started.stop = one.stop.get_token();
  return started;
}

void Collectors::Shared::open_if_idle() {
  if (stopped && threads == 0 && abandoned == 0) idle->open();
}

void Collectors::Shared::run(const std::shared_ptr<Shared>& shared, const std::stop_token& pool) {
  while (true) {
    const auto started = shared->start_next(pool);
    if (!started) return;
    shared->finish(*started, started->task.tools->collect(started->now, started->stop));
    if (shared->end(started->task)) return;
  }
}

/// True if the collection was abandoned: another thread has replaced this one, which ends.
bool Collectors::Shared::end(const Task& task) {
  const std::lock_guard lock(mutex);
  const auto found = running.find(task.ticket);
  const auto one = std::move(found->second);
  running.erase(found);
  if (!one.abandoned) {
    if (one.slow) --slow_running;
    return false;
  }
  --abandoned;
  if (const auto of_node = hung.find(task.node.get()); --of_node->second == 0) hung.erase(of_node);
  open_if_idle();
  return true;
}

void Collectors::Shared::finish(const Started& started, Result<Observation> observation) {
  const std::lock_guard lock(mutex);
  // The supervisor and the runtime may be gone already.
  if (stopped) return;
  const bool first = results.empty();
  results.push_back(
      {started.task.node, started.task.ticket, std::move(observation), started.began, runtime->instant()});
  if (first) ready();
}

std::vector<CollectionResult> Collectors::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, {});
}

std::optional<Instant> Collectors::started_at(std::uint64_t ticket) const {
  const std::lock_guard lock(shared_->mutex);
  if (const auto found = shared_->running.find(ticket); found != shared_->running.end())
    return found->second.began;
  for (const auto& one : shared_->results) {
    if (one.ticket == ticket) return one.began;
  }
  return {};
}

void Collectors::ask_to_stop(std::uint64_t ticket) {
  const std::lock_guard lock(shared_->mutex);
  if (const auto found = shared_->running.find(ticket); found != shared_->running.end())
    found->second.stop.request_stop();
}

bool Collectors::abandon(std::uint64_t ticket) {
  const std::lock_guard lock(shared_->mutex);
  const auto found = shared_->running.find(ticket);
  if (found == shared_->running.end()) {
    const auto is_it = [ticket](const Task& task) { return task.ticket == ticket; };
    std::erase_if(shared_->queue, is_it);
    std::erase_if(shared_->slow_queue, is_it);
    return true;
  }
  auto& one = found->second;
  if (one.abandoned || shared_->abandoned == options_.abandoned_max) return false;
  one.abandoned = true;
  one.stop.request_stop();
  if (one.slow) --shared_->slow_running;
  ++shared_->abandoned;
  ++shared_->hung[one.node];
  --shared_->threads;
  start_thread();
  return true;
}

bool Collectors::may_start(const Node& node, std::size_t limit) const {
  const std::lock_guard lock(shared_->mutex);
  for (const auto& [_, running] : shared_->running) {
    if (running.node == &node && !running.abandoned) return false;
  }
  const auto hung = shared_->hung.find(&node);
  return hung == shared_->hung.end() || (hung->second < limit && shared_->abandoned < options_.abandoned_max);
}

std::size_t Collectors::abandoned() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->abandoned;
}

namespace {

constexpr std::size_t kDestroyers = 2;

}  // namespace

ToolDestroyer::ToolDestroyer(Runtime& runtime, Duration stop_within)
    : runtime_(runtime),
      stop_within_(stop_within),
      workers_(runtime.open_thread_pool("dispose", {.threads = kDestroyers, .queue = kDestroyers})) {}

ToolDestroyer::~ToolDestroyer() { stop(); }

void ToolDestroyer::stop() {
  if (!workers_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    if (shared_->threads == 0) shared_->idle->open();
  }
  end_pool(runtime_, std::move(workers_), shared_->idle, stop_within_);
}

void ToolDestroyer::add(std::shared_ptr<void> what) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stopped) return;
  shared_->queue.push_back(std::move(what));
  if (shared_->threads == kDestroyers) return;
  // Refused only while the pool ends.
  if (workers_->submit([shared = shared_](std::stop_token) { Shared::run(shared); })) ++shared_->threads;
}

void ToolDestroyer::Shared::run(const std::shared_ptr<Shared>& shared) {
  while (true) {
    std::shared_ptr<void> what;  // destroyed after the lock is released
    const std::lock_guard lock(shared->mutex);
    if (shared->queue.empty()) {
      --shared->threads;
      if (shared->stopped && shared->threads == 0) shared->idle->open();
      return;
    }
    what = std::move(shared->queue.front());
    shared->queue.pop_front();
  }
}

}  // namespace pawl::supervise
