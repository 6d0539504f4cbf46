// SPDX-License-Identifier: Apache-2.0
// Ephemeral values and operations: pools, retention, checkpoints, backup.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernel/engine/core.hpp"
#include "pawl/assert.hpp"
#include "pawl/codec.hpp"

namespace pawl {
namespace {

/// Instances forgotten in one transaction: few enough that other requests do not wait long.
constexpr std::size_t kForgottenTogether = 5000;

/// An id that no instance has; the retention clock is kept under it by this name.
constexpr InstanceId kEngineItself{};
constexpr std::string_view kClock = "retention clock";

/// Microseconds since 1970.
struct StoredClock {
  std::int64_t clock = 0;
  std::int64_t wall = 0;
};

}  // namespace

Result<void> EngineCore::put_ephemeral(std::string_view machine, std::string_view key, std::string name,
                                       std::string json) {
  PAWL_TRY(const auto instance, read(machine, key));
  if (!json.empty()) PAWL_CHECK(JsonDocument::parse(json, {.bytes = std::size_t{64} << 10}));
  bool first = false;
  {
    const std::lock_guard lock(ephemeral_mutex_);
    first = ephemerals_pending_.empty();
    ephemerals_pending_[{instance.id, name}] = {instance.id, name, std::move(json), runtime_.now()};
  }
  // Written with the next commit, or alone a little later.
  if (first) post([this] { lane_->after(kPause, [this] { run_batch({}); }); });
  return {};
}

/// Adds the pending values to the batch; an error means that the store has dropped the batch.
Result<void> EngineCore::flush_ephemerals(Batch& batch) {
  if (poisoned_) return {};
  PAWL_ASSERT(batch.ephemerals.empty() && !batch.lost, "pending values join a batch once, at its end");
  {
    const std::lock_guard lock(ephemeral_mutex_);
    for (auto& [key, value] : ephemerals_pending_) batch.ephemerals.push_back(std::move(value));
    ephemerals_pending_.clear();
  }
  if (batch.ephemerals.empty()) return {};
  PAWL_CHECK(store_->put(batch.ephemerals));
  batch.dirty = true;
  return {};
}

/// Makes values pending again that were not written, except where there is a newer value.
void EngineCore::restore_ephemerals(std::vector<Ephemeral> values) {
  if (values.empty()) return;
  {
    const std::lock_guard lock(ephemeral_mutex_);
    for (auto& value : values) {
      auto name = std::pair(value.id, value.name);
      ephemerals_pending_.try_emplace(std::move(name), std::move(value));
    }
  }
  lane_->after(kPause, [this] { run_batch({}); });
}

Result<std::map<std::string, std::string>> EngineCore::ephemerals(std::string_view machine,
                                                                  std::string_view key) const {
  PAWL_TRY(const auto instance, read(machine, key));
  PAWL_TRY(const auto stored, store_->ephemerals(instance.id));
  std::map<std::string, std::string> values;
  for (const auto& value : stored) values[value.name] = value.value;
  const std::lock_guard lock(ephemeral_mutex_);
  for (const auto& [name, value] : ephemerals_pending_) {
    if (name.first == instance.id) values[name.second] = value.value;
  }
  std::erase_if(values, [](const auto& value) { return value.second.empty(); });
  return values;
}

Result<void> EngineCore::resize_pool(std::string_view name, std::uint32_t size) {
  const auto known = [&] {
    const std::lock_guard lock(pools_mutex_);
    return name != kWorkThreads && name != kStartedAttempts && pools_.contains(name);
  }();
  if (!known) return fail(Code::unknown_pool, fmt::format("no permit pool \"{}\"", name.substr(0, 64)));
  if (size == 0) return fail(Code::invalid_argument, "a permit pool has at least one permit");
  post([this, pool = std::string(name), size] {
    PermitChanges changes;
    {
      const std::lock_guard lock(pools_mutex_);
      const auto found = pools_.find(pool);
      PAWL_ASSERT(found != pools_.end(), "a pool exists as long as the engine", pool);
      if (auto resized = found->second.resize(size)) changes = *std::move(resized);
    }
    granted(changes);
  });
  return {};
}

std::vector<PoolStatus> EngineCore::pools() const {
  std::vector<PoolStatus> all;
  const std::lock_guard lock(pools_mutex_);
  for (const auto& [name, pool] : pools_) {
    all.push_back({pool.name(), pool.size(), pool.granted(), pool.waiting().size()});
  }
  return all;
}

EngineStats EngineCore::stats() const {
  EngineStats stats{.transitions = transitions_,
                    .commits = commits_,
                    .refused = refused_,
                    .conflicts = conflicts_,
                    .timers = timer_count_,
                    .timers_due = timers_due_,
                    .running_work = running_count_,
                    .last_seq = durable_seq_,
                    .commit_seconds = commit_seconds_.read(),
                    .batch_sizes = batch_sizes_.read()};
  {
    const std::lock_guard lock(queue_mutex_);
    stats.queue = waiting_;
  }
  const std::shared_lock lock(heads_mutex_);
  stats.instances = heads_.size();
  stats.cached_bytes = cached_bytes_;
  if (heads_.size() > 0) stats.memory_per_instance = heads_.memory() / heads_.size();
  return stats;
}

/// At most once per interval and only after a commit: an idle engine does nothing.
void EngineCore::schedule_maintenance() {
  const bool retains = options_.keep || options_.forget_finished;
  if (lane_ && retains && !std::exchange(retention_scheduled_, true)) {
    lane_->after(options_.retain_every, [this] {
      retention_scheduled_ = false;
      retain_on_lane([this](const Result<void>& done) {
        if (!done && done.error().code() != Code::stopped)
          options_.log.warn("retention failed", {{"error", done.error().to_string()}});
      });
    });
  }
  if (!maintenance_ || checkpoint_scheduled_.exchange(true)) return;
  maintenance_->after(options_.checkpoint_every, [this] {
    checkpoint_scheduled_ = false;
    if (const auto done = store_->checkpoint(); !done) {
      options_.log.warn("checkpoint failed", {{"error", done.error().to_string()}});
    }
  });
}

Result<void> EngineCore::retain() {
  return await<void>(runtime_, [this](auto callback) {
    RetainDone done(std::move(callback));
    post([this, done = std::move(done)]() mutable { retain_on_lane(std::move(done)); });
  });
}

Result<void> EngineCore::open_retention_clock() {
  if (!options_.keep && !options_.forget_finished) return {};
  const auto keep = options_.keep ? *options_.keep : *options_.forget_finished;
  const auto forget = options_.forget_finished.value_or(keep);
  retention_clock_ =
      RetentionClock({.per_opening = std::min(keep, forget) / 2, .settled = std::max(keep, forget)});
  std::optional<RetentionClock::Reading> last;
  const auto info = store_->info();
  if (info.last != 0) last = {info.last_at, info.last_at};
  PAWL_TRY(const auto values, store_->ephemerals(kEngineItself));
  for (const auto& value : values) {
    if (value.name != kClock) continue;
    // An unreadable value is ignored: the log time serves instead, as in a store of an earlier version.
    if (const auto stored = decode<StoredClock>(value.value))
      last = {Time(Duration(stored->clock)), Time(Duration(stored->wall))};
  }
  retention_clock_.open(last, {runtime_.now(), runtime_.instant(), info.last_at});
  return {};
}

/// Runs between two batches, in its own commit.
Result<void> EngineCore::store_retention_clock() {
  if (!options_.keep && !options_.forget_finished) return {};
  const auto reading = retention_clock_.reading();
  PAWL_TRY(auto text, encode(StoredClock{.clock = reading.clock.time_since_epoch().count(),
                                         .wall = reading.wall.time_since_epoch().count()}));
  const std::array value{Ephemeral{kEngineItself, std::string(kClock), std::move(text), reading.wall}};
  PAWL_CHECK(store_->put(value));
  return store_->commit();
}

void EngineCore::retain_on_lane(RetainDone done) {
  PAWL_ASSERT(done, "retention answers its caller");
  const auto now = retention_clock_.advance({runtime_.now(), runtime_.instant(), last_at_});
  if (auto stored = store_retention_clock(); !stored) return done(std::move(stored));
  const auto horizon = options_.keep ? store_->seq_before(now - *options_.keep) : Result<Seq>(0);
  if (!horizon) return done(fail(horizon.error()));
  // By the time of the instances: the log may have been cut above their entries long ago. All are chosen at
  // once, because the order of the heads may change between two steps.
  std::vector<InstanceId> ids;
  const auto before = now - options_.forget_finished.value_or(Duration::zero());
  for (std::size_t slot = 0; options_.forget_finished && slot < heads_.slots(); ++slot) {
    if (const auto& head = heads_.slot(slot); may_forget(head, before)) ids.push_back(head.id);
  }
  std::ranges::reverse(ids);  // taken from the back, oldest first
  forget_step(std::move(ids), before, *horizon, std::move(done));
}

/// Whether an instance may be forgotten if its newest entry is older than `before`. The only place that
/// decides this: the store removes exactly these heads.
bool EngineCore::may_forget(const Head& head, Time before) const {
  // Pending messages, work and timers end with a later entry of the instance. Without the machine's
  // definition it is unknown which states are final.
  return head.live && head.at < before && !head.extras && registry_.finished(head.machine, head.state);
}

/// Forgets a bounded number, then lets the lane serve other requests before the next step.
void EngineCore::forget_step(std::vector<InstanceId> ids, Time before, Seq horizon, RetainDone done) {
  std::vector<InstanceId> part;
  for (; !ids.empty() && part.size() < kForgottenTogether; ids.pop_back()) {
    // It may have changed since it was chosen.
    const auto* head = heads_.find(ids.back());
    if (head != nullptr && may_forget(*head, before)) part.push_back(ids.back());
  }
  PAWL_ASSERT(part.size() <= kForgottenTogether, "a step forgets a bounded number of instances", part.size());
  if (auto forgotten = forget_instances(part); !forgotten) return done(std::move(forgotten));
  if (!ids.empty()) {
    lane_->post([this, ids = std::move(ids), before, horizon, done = std::move(done)]() mutable {
      forget_step(std::move(ids), before, horizon, std::move(done));
    });
    return;
  }
  if (heads_.size() < heads_.slots()) {
    const std::unique_lock lock(heads_mutex_);
    heads_.compact();
    eviction_hand_ = 0;
  }
  cut_step(horizon, std::move(done));
}

/// Forgets durably first, then in memory.
Result<void> EngineCore::forget_instances(std::span<const InstanceId> ids) {
  if (ids.empty()) return {};
  const std::lock_guard forgetting(forget_mutex_);
  PAWL_CHECK(store_->forget(ids));
  {
    const std::unique_lock lock(heads_mutex_);
    for (const auto& id : ids) {
      const auto* head = heads_.find(id);
      PAWL_ASSERT(head != nullptr && !head->extras, "a forgotten instance has no extras");
      remove_head(*head);
    }
  }
  const std::lock_guard lock(ephemeral_mutex_);
  for (const auto& id : ids) {
    const auto first = ephemerals_pending_.lower_bound({id, {}});
    auto last = first;
    while (last != ephemerals_pending_.end() && last->first.first == id) ++last;
    ephemerals_pending_.erase(first, last);
  }
  return {};
}

/// Cuts a bounded part, then lets the lane serve other requests before the next step.
void EngineCore::cut_step(Seq horizon, RetainDone done) {
  PAWL_ASSERT(horizon <= durable_seq_, "only durable entries are cut", horizon);
  const auto complete = store_->retain(horizon);
  if (!complete) return done(fail(complete.error()));
  if (*complete) return done({});
  lane_->post([this, horizon, done = std::move(done)]() mutable { cut_step(horizon, std::move(done)); });
}

Result<void> EngineCore::backup(const std::string& path, const std::function<void(double)>& progress) const {
  return store_->backup(path, progress);
}

Result<std::vector<std::string>> EngineCore::check() const {
  PAWL_TRY(auto found, store_->check());
  return std::move(found.problems);
}

}  // namespace pawl
