// SPDX-License-Identifier: Apache-2.0
#include "supervise/collectors.hpp"

#include <algorithm>
#include <utility>

namespace pawl::supervise {

namespace {

/// Pools that did not end in time.
struct LeftAlone {
  struct Pool {
    std::unique_ptr<ThreadPool> workers;
    std::shared_ptr<Gate> idle;
  };
  std::mutex mutex{};
  std::vector<Pool> pools{};

  /// Never destroyed: its threads may run until the process ends.
  static LeftAlone& all() {
    static auto& left = *new LeftAlone;
    return left;
  }
};

/// Those that have come to their end meanwhile.
void end_late_pools() {
  std::vector<LeftAlone::Pool> over;
  auto& left = LeftAlone::all();
  const std::lock_guard lock(left.mutex);
  for (auto& pool : left.pools) {
    if (pool.idle->is_open()) over.push_back(std::move(pool));
  }
  std::erase_if(left.pools, [](const auto& pool) { return pool.workers == nullptr; });
}

}  // namespace

void end_pool(Runtime& runtime, std::unique_ptr<ThreadPool> pool, const std::shared_ptr<Gate>& idle,
              Duration within) {
  end_late_pools();
  const auto began = runtime.instant();
  if (runtime.wait(*idle, within)) return;
  // A process that has crashed in a simulation does not wait, and what it ran ends with it.
  if (runtime.instant() - began < within) return;
  auto& left = LeftAlone::all();
  const std::lock_guard lock(left.mutex);
  left.pools.push_back({std::move(pool), idle});
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
    dropped.swap(shared_->line);
    slow_dropped.swap(shared_->slow_line);
    for (auto& [_, running] : shared_->running) running.stop.request_stop();
    if (shared_->hired == 0 && shared_->abandoned == 0) shared_->idle->open();
  }
  end_pool(runtime_, std::move(workers_), shared_->idle, options_.stop_within);
}

std::uint64_t Collectors::add(std::shared_ptr<Node> node, std::shared_ptr<Hands> hands, bool slow) {
  const std::lock_guard lock(shared_->mutex);
  const auto ticket = ++last_ticket_;
  if (shared_->stopped) return ticket;
  (slow ? shared_->slow_line : shared_->line).push_back({ticket, std::move(node), std::move(hands), slow});
  hire();
  return ticket;
}

/// One more thread takes from the line, if there may be one more.
void Collectors::hire() {
  if (shared_->hired == options_.threads || shared_->next_line() == nullptr) return;
  // Refused only while the pool ends.
  if (workers_->submit([shared = shared_](std::stop_token pool) { Shared::run(shared, pool); }))
    ++shared_->hired;
}

/// Who has waited longest; but of those that were slow not more than a share of the threads at a time.
std::deque<Collectors::Task>* Collectors::Shared::next_line() {
  const bool may_be_slow = !slow_line.empty() && slow_running < slow_max;
  if (line.empty()) return may_be_slow ? &slow_line : nullptr;
  return may_be_slow && slow_line.front().ticket < line.front().ticket ? &slow_line : &line;
}

std::optional<Collectors::Begun> Collectors::Shared::begin_next(const std::stop_token& pool) {
  const std::lock_guard lock(mutex);
  auto* const from = next_line();
  if (stopped || from == nullptr || pool.stop_requested()) {
    --hired;
    leave();
    return {};
  }
  Begun begun{
      .task = std::move(from->front()), .stop = {}, .began = runtime->instant(), .now = runtime->now()};
  from->pop_front();
  auto& one = running[begun.task.ticket];
  one.node = begun.task.node.get();
  one.began = begun.began;
  one.slow = begun.task.slow;
  if (one.slow) ++slow_running;
  begun.stop = one.stop.get_token();
  return begun;
}

void Collectors::Shared::leave() {
  if (stopped && hired == 0 && abandoned == 0) idle->open();
}

void Collectors::Shared::run(const std::shared_ptr<Shared>& shared, const std::stop_token& pool) {
  while (true) {
    const auto begun = shared->begin_next(pool);
    if (!begun) return;
    shared->finish(*begun, begun->task.hands->collect(begun->now, begun->stop));
    if (shared->end(begun->task)) return;
  }
}

/// True where another thread has taken this one's place.
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
  leave();
  return true;
}

void Collectors::Shared::finish(const Begun& begun, Result<Seen> seen) {
  const std::lock_guard lock(mutex);
  // From then on neither the supervisor nor the runtime may be there any more.
  if (stopped) return;
  const bool first = done.empty();
  done.push_back({begun.task.node, begun.task.ticket, std::move(seen), begun.began, runtime->instant()});
  if (first) ready();
}

std::vector<Collected> Collectors::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->done, {});
}

std::optional<Instant> Collectors::begun_at(std::uint64_t ticket) const {
  const std::lock_guard lock(shared_->mutex);
  if (const auto found = shared_->running.find(ticket); found != shared_->running.end())
    return found->second.began;
  for (const auto& one : shared_->done) {
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
    std::erase_if(shared_->line, is_it);
    std::erase_if(shared_->slow_line, is_it);
    return true;
  }
  auto& one = found->second;
  if (one.abandoned || shared_->abandoned == options_.abandoned_max) return false;
  one.abandoned = true;
  one.stop.request_stop();
  if (one.slow) --shared_->slow_running;
  ++shared_->abandoned;
  ++shared_->hung[one.node];
  --shared_->hired;
  hire();
  return true;
}

bool Collectors::may_begin(const Node& node, std::size_t limit) const {
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

constexpr std::size_t kDisposers = 2;

}  // namespace

Disposal::Disposal(Runtime& runtime, Duration stop_within)
    : runtime_(runtime),
      stop_within_(stop_within),
      workers_(runtime.open_thread_pool("dispose", {.threads = kDisposers, .queue = kDisposers})) {}

Disposal::~Disposal() { stop(); }

void Disposal::stop() {
  if (!workers_) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    if (shared_->hired == 0) shared_->idle->open();
  }
  end_pool(runtime_, std::move(workers_), shared_->idle, stop_within_);
}

void Disposal::add(std::shared_ptr<void> what) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->stopped) return;
  shared_->line.push_back(std::move(what));
  if (shared_->hired == kDisposers) return;
  // Refused only while the pool ends.
  if (workers_->submit([shared = shared_](std::stop_token) { Shared::run(shared); })) ++shared_->hired;
}

void Disposal::Shared::run(const std::shared_ptr<Shared>& shared) {
  while (true) {
    std::shared_ptr<void> what;  // goes after the lock, which is what this is all about
    const std::lock_guard lock(shared->mutex);
    if (shared->line.empty()) {
      --shared->hired;
      if (shared->stopped && shared->hired == 0) shared->idle->open();
      return;
    }
    what = std::move(shared->line.front());
    shared->line.pop_front();
  }
}

}  // namespace pawl::supervise
