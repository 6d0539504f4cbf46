// SPDX-License-Identifier: Apache-2.0
// Work that is done elsewhere: offered until somebody claims it, theirs as long as their heartbeats come. An
// attempt begins with the claim. Runs on the lane but for the entrances.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/engine/core.hpp"
#include "pawl/assert.hpp"

namespace pawl {
namespace {

Error lost(const Lease& lease) {
  return Error(
      Code::lease_lost,
      fmt::format("{} \"{}\": attempt {} of work {} is not leased; its lease ended, or it was cancelled",
                  lease.machine.substr(0, 64), lease.key.substr(0, 128), lease.attempt, lease.number));
}

Error stopping() { return {Code::stopped, "the engine is stopping"}; }

}  // namespace

bool EngineCore::is_leased(std::uint16_t machine, std::string_view work) const {
  const auto* handler = handler_of(machine, work);
  return handler != nullptr && handler->options.lease.has_value();
}

void EngineCore::claim(std::string_view machine, std::vector<std::string> works, Duration wait,
                       ClaimDone done) {
  const auto number = registry_.find(machine);
  if (!number) return done(fail(number.error()));
  for (const auto& name : works) {
    if (is_leased(*number, name)) continue;
    return done(fail(Code::unknown_name,
                     fmt::format("{} has no work \"{}\" that can be claimed", machine, name.substr(0, 64))));
  }
  if (works.empty()) return done(fail(Code::invalid_argument, "a claim names at least one kind of work"));
  auto claimer = std::make_shared<Claimer>(Claimer{*number, std::move(works), std::move(done)});
  const bool posted = post([this, claimer, wait] {
    if (poisoned_) return claimer->done(fail(*poisoned_));
    const auto id = ++last_claimer_;
    if (wait > Duration::zero()) {
      claimer->patience = lane_->after(wait, [this, id] {
        if (auto node = claimers_.extract(id)) node.mapped().done(std::nullopt);
      });
    }
    serve(std::move(*claimer), id);
  });
  if (!posted) claimer->done(fail(stopping()));
}

/// Gives the claimer the oldest offer, or lets it wait for one.
void EngineCore::serve(Claimer claimer, std::uint64_t id) {
  for (const auto& name : claimer.works) {
    const auto found = offers_.find({claimer.machine, name});
    if (found == offers_.end()) continue;
    const auto key = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) offers_.erase(found);
    const auto offers = offered_.erase(key);
    PAWL_ASSERT(offers == 1 && !claiming_.contains(key), "work is offered once and goes to one claimer",
                key.second, offers);
    if (claimer.patience) lane_->cancel(*std::exchange(claimer.patience, std::nullopt));
    claiming_.emplace(key, std::move(claimer));
    return begin_attempt(key);
  }
  if (!claimer.patience) return claimer.done(std::nullopt);
  const bool added = claimers_.emplace(id, std::move(claimer)).second;
  PAWL_ASSERT(added, "a claimer waits once", id);
  watch_ownership();
}

void EngineCore::offer(const WorkKey& key, std::uint16_t machine, const std::string& name) {
  if (running_.contains(key) || claiming_.contains(key) || !offered_.insert(key).second) return;
  offers_[{machine, name}].push_back(key);
  const auto waiting = std::ranges::find_if(claimers_, [&](const auto& entry) {
    return entry.second.machine == machine &&
           std::ranges::find(entry.second.works, name) != entry.second.works.end();
  });
  if (waiting == claimers_.end()) return;
  auto node = claimers_.extract(waiting);
  serve(std::move(node.mapped()), node.key());
}

void EngineCore::withdraw_offer(const WorkKey& key) {
  if (offered_.erase(key) == 0) return;
  for (auto& [kind, keys] : offers_) std::erase(keys, key);
  std::erase_if(offers_, [](const auto& entry) { return entry.second.empty(); });
}

/// The attempt has begun, durably: it is the claimer's.
void EngineCore::hand_out(const WorkKey& key, std::uint16_t machine, const WorkRecord& work,
                          const HeadData& data) {
  PAWL_ASSERT(work.attempt > 0 && work.number == key.second, "a claimer gets an attempt that is recorded",
              work.number, work.attempt);
  auto node = claiming_.extract(key);
  if (!node) return;
  node.mapped().done(
      ClaimedWork{.lease = {std::string(registry_.machine_name(machine)),
                            std::string(heads_.find(key.first)->key.view()), work.number, work.attempt},
                  .work = work.name,
                  .request_id = WorkContext{.machine = registry_.machine_name(machine),
                                            .origin = registry_.origin(machine),
                                            .key = heads_.find(key.first)->key.view(),
                                            .work = work.name,
                                            .number = work.number}
                                    .request_id(),
                  .payload = work.payload,
                  .data = std::string(data.text()),
                  .duration = *handler_of(machine, work.name)->options.lease});
}

/// The work was gone, or failed, before it could be handed out; the claimer gets the next.
void EngineCore::claim_failed(const WorkKey& key) {
  auto node = claiming_.extract(key);
  if (node) serve(std::move(node.mapped()), ++last_claimer_);
}

/// No work begins any more, so nobody need wait for some.
/// Pass the lane to cancel their timeouts, null if it is gone.
void EngineCore::end_claims(const Error& why, Lane* lane) {
  PAWL_ASSERT(poisoned_ || stopped_, "claims end with the engine", why.to_string());
  for (auto& [id, claimer] : std::exchange(claimers_, {})) {
    if (claimer.patience && lane != nullptr) lane->cancel(*claimer.patience);
    claimer.done(fail(why));
  }
  for (auto& [key, claimer] : std::exchange(claiming_, {})) claimer.done(fail(why));
}

void EngineCore::lease_ended(WorkKey key, std::uint32_t attempt) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  PAWL_ASSERT(found->second.lease && heads_.find(key.first) != nullptr, "a lease ends that was given",
              key.second, attempt);
  work_returned(
      key, heads_.find(key.first)->machine, attempt,
      fail(Code::timed_out, fmt::format("attempt {}: no heartbeat came within the lease", attempt)));
}

/// The entry of a lease that is still held; the lane only.
std::optional<EngineCore::WorkKey> EngineCore::held(const Lease& lease) const {
  const auto machine = registry_.find(lease.machine);
  if (!machine) return std::nullopt;
  const WorkKey key{registry_.id(*machine, lease.key), lease.number};
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != lease.attempt || !found->second.lease)
    return std::nullopt;
  return key;
}

void EngineCore::heartbeat(const Lease& lease, std::move_only_function<void(Result<LeaseStatus>)> done) {
  auto shared = std::make_shared<std::move_only_function<void(Result<LeaseStatus>)>>(std::move(done));
  const bool posted = post([this, lease, shared] {
    if (poisoned_) return (*shared)(fail(*poisoned_));
    const auto key = held(lease);
    if (!key) return (*shared)(fail(lost(lease)));
    auto& running = running_.find(*key)->second;
    const auto* head = heads_.find(key->first);
    PAWL_ASSERT(head != nullptr && head->extras != nullptr, "who holds a lease holds recorded work",
                key->second);
    const auto work = std::ranges::find(head->extras->work, key->second, &WorkRecord::number);
    PAWL_ASSERT(work != head->extras->work.end(), "who holds a lease holds recorded work", key->second);
    const auto duration = *handler_of(head->machine, work->name)->options.lease;
    lane_->cancel(*running.lease);
    running.lease =
        lane_->after(duration, [this, key = *key, attempt = lease.attempt] { lease_ended(key, attempt); });
    (*shared)(LeaseStatus{.duration = duration, .stop = work->stop == WorkStop::now});
  });
  if (!posted) (*shared)(fail(stopping()));
}

void EngineCore::complete(const Lease& lease, Result<Reply> result, Done done) {
  auto shared = std::make_shared<std::pair<Result<Reply>, Done>>(std::move(result), std::move(done));
  const bool posted = post([this, lease, shared] {
    const auto key = held(lease);
    if (!key) return shared->second(fail(lost(lease)));
    PAWL_ASSERT(heads_.find(key->first) != nullptr, "who holds a lease holds recorded work", key->second);
    work_returned(*key, heads_.find(key->first)->machine, lease.attempt, std::move(shared->first),
                  std::move(shared->second));
  });
  if (!posted) shared->second(fail(stopping()));
}

}  // namespace pawl
