// SPDX-License-Identifier: Apache-2.0
#include "supervise/collectors.hpp"

#include <utility>

namespace pawl::supervise {

Collectors::Collectors(Runtime& runtime, std::size_t threads, std::size_t abandoned_max,
                       std::function<void()> ready)
    : runtime_(runtime), threads_(threads), abandoned_max_(abandoned_max), ready_(std::move(ready)) {
  const auto most = threads + abandoned_max;
  workers_ = runtime.open_workers("collect", {.threads = most, .queue = most});
}

Collectors::~Collectors() { stop(); }

void Collectors::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    line_.clear();
    for (auto& [_, running] : running_) running.stop.request_stop();
  }
  workers_.reset();
}

std::uint64_t Collectors::add(std::shared_ptr<Node> node, std::shared_ptr<Hands> hands) {
  std::uint64_t ticket = 0;
  {
    const std::lock_guard lock(mutex_);
    ticket = ++last_ticket_;
  }
  add({.ticket = ticket, .node = std::move(node), .hands = std::move(hands)});
  return ticket;
}

void Collectors::dispose(std::move_only_function<void()> work) {
  add({.ticket = 0, .node = {}, .hands = {}, .work = std::move(work)});
}

void Collectors::add(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  line_.push_back(std::move(task));
  hire();
}

/// One more thread takes from the line, if there may be one more.
void Collectors::hire() {
  if (line_.empty() || hired_ == threads_) return;
  // Refused only while the pool ends.
  if (workers_->submit([this](std::stop_token pool) { run(pool); })) ++hired_;
}

void Collectors::run(const std::stop_token& pool) {
  while (true) {
    Task task;
    std::stop_token stop;
    {
      const std::lock_guard lock(mutex_);
      if (line_.empty() || pool.stop_requested()) {
        --hired_;
        return;
      }
      task = std::move(line_.front());
      line_.pop_front();
      if (!task.work) {
        auto& running = running_[task.ticket];
        running.node = task.node.get();
        stop = running.stop.get_token();
      }
    }
    if (task.work) {
      task.work();
      continue;
    }
    finish(task, task.hands->collect(runtime_.now(), std::move(stop)));
    const std::lock_guard lock(mutex_);
    const auto running = running_.find(task.ticket);
    const bool replaced = running->second.abandoned;
    running_.erase(running);
    if (!replaced) continue;
    --abandoned_;
    if (const auto hung = hung_.find(task.node.get()); --hung->second == 0) hung_.erase(hung);
    return;
  }
}

void Collectors::finish(const Task& task, Result<Seen> seen) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = done_.empty();
    done_.push_back({task.node, task.ticket, std::move(seen)});
  }
  if (first) ready_();
}

std::vector<Collected> Collectors::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, {});
}

void Collectors::ask_to_stop(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (const auto found = running_.find(ticket); found != running_.end()) found->second.stop.request_stop();
}

bool Collectors::abandon(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(ticket);
  if (found == running_.end()) {
    std::erase_if(line_, [ticket](const Task& task) { return task.ticket == ticket; });
    return true;
  }
  if (found->second.abandoned || abandoned_ == abandoned_max_) return false;
  found->second.abandoned = true;
  found->second.stop.request_stop();
  ++abandoned_;
  ++hung_[found->second.node];
  --hired_;
  hire();
  return true;
}

bool Collectors::may_begin(const Node& node, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [_, running] : running_) {
    if (running.node == &node && !running.abandoned) return false;
  }
  const auto hung = hung_.find(&node);
  return hung == hung_.end() || (hung->second < limit && abandoned_ < abandoned_max_);
}

std::size_t Collectors::abandoned() const {
  const std::lock_guard lock(mutex_);
  return abandoned_;
}

}  // namespace pawl::supervise
