// SPDX-License-Identifier: Apache-2.0
// Work that is done elsewhere: offered until a caller claims it, and leased to that caller as long as its
// heartbeats arrive. An attempt begins with the claim. Runs on the lane, except for the public functions.
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

bool is_same(const Result<Reply>& first, const Result<Reply>& second) {
  if (!first || !second) return !first && !second && first.error() == second.error();
  const auto& event = first->event;
  const auto& other = second->event;
  const bool same_event = event && other ? event->type == other->type && event->payload == other->payload
                                         : event.has_value() == other.has_value();
  return same_event && first->error == second->error && first->sql == second->sql;
}

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
  BlockedClaim claim{.machine = *number, .works = std::move(works), .done = std::move(done)};
  post([this, claim = std::move(claim), wait]() mutable {
    PAWL_ASSERT(claim.done && claim.id == 0, "a claim is answered once, after it was served", claim.id);
    if (poisoned_) return claim.done(fail(*poisoned_));
    claim.id = ++last_claim_;
    claim.waits = wait > Duration::zero();
    if (claim.waits) claim.timeout = lane_->after(wait, [this, id = claim.id] { claim_timed_out(id); });
    serve(std::move(claim));
  });
}

/// Gives the claim the oldest offer, or keeps it blocked until there is one.
void EngineCore::serve(BlockedClaim claim) {
  PAWL_ASSERT(claim.id != 0 && claim.done, "a claim is answered once", claim.id);
  for (const auto& name : claim.works) {
    const auto found = offers_.find({claim.machine, name});
    if (found == offers_.end()) continue;
    const auto key = found->second.front();
    found->second.pop_front();
    if (found->second.empty()) offers_.erase(found);
    const auto offers = offered_.erase(key);
    PAWL_ASSERT(offers == 1 && !claiming_.contains(key), "work is offered once and goes to one claim",
                key.second, offers);
    // The store may not be able to record the attempt at present.
    if (!claim.timeout) claim.timeout = lane_->after(kPause, [this, id = claim.id] { claim_timed_out(id); });
    claiming_.emplace(key, std::move(claim));
    return start_attempt(key);
  }
  if (!claim.waits) {
    if (claim.timeout) lane_->cancel(*claim.timeout);
    return claim.done(std::nullopt);
  }
  const bool added = claims_.emplace(claim.id, std::move(claim)).second;
  PAWL_ASSERT(added, "a claim waits once");
  watch_ownership();
}

/// If its attempt is being recorded, that attempt goes to the next claim.
void EngineCore::claim_timed_out(std::uint64_t id) {
  if (auto node = claims_.extract(id)) return node.mapped().done(std::nullopt);
  const auto found = std::ranges::find(claiming_, id, [](const auto& entry) { return entry.second.id; });
  if (found == claiming_.end()) return;
  auto node = claiming_.extract(found);
  PAWL_ASSERT(!running_.contains(node.key()), "a claim ends with the attempt that it gets", id);
  node.mapped().done(std::nullopt);
}

void EngineCore::offer(const WorkKey& key, std::uint16_t machine, const std::string& name) {
  PAWL_ASSERT(is_leased(machine, name), "only work that is done elsewhere is offered", name);
  if (running_.contains(key) || claiming_.contains(key) || !offered_.insert(key).second) return;
  offers_[{machine, name}].push_back(key);
  const auto waiting = std::ranges::find_if(claims_, [&](const auto& entry) {
    return entry.second.machine == machine &&
           std::ranges::find(entry.second.works, name) != entry.second.works.end();
  });
  if (waiting == claims_.end()) return;
  auto node = claims_.extract(waiting);
  serve(std::move(node.mapped()));
}

void EngineCore::withdraw_offer(const WorkKey& key) {
  if (offered_.erase(key) == 0) return;
  unclaimed_.erase(key);
  for (auto& [kind, keys] : offers_) std::erase(keys, key);
  std::erase_if(offers_, [](const auto& entry) { return entry.second.empty(); });
}

/// The start of the attempt is durable: the claim gets it.
void EngineCore::hand_out(const WorkKey& key, std::uint16_t machine, const WorkRecord& work,
                          const HeadData& data) {
  PAWL_ASSERT(work.attempt > 0 && work.number == key.second, "a claim gets an attempt that is recorded",
              work.number, work.attempt);
  auto node = claiming_.extract(key);
  PAWL_ASSERT(!node.empty() && node.mapped().timeout, "an attempt that is handed out was claimed",
              work.number);
  lane_->cancel(*node.mapped().timeout);
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

/// The work was cancelled or failed before it could be handed out: the claim gets the next one.
void EngineCore::claim_failed(const WorkKey& key) {
  auto node = claiming_.extract(key);
  if (node) serve(std::move(node.mapped()));
}

/// Answers every claim when the engine ends. Pass the lane to cancel their timeouts, null if it is gone.
void EngineCore::end_claims(const Error& why, Lane* lane) {
  PAWL_ASSERT(poisoned_ || stopped_, "claims end with the engine", why.to_string());
  const auto end = [&](BlockedClaim& claim) {
    if (claim.timeout && lane != nullptr) lane->cancel(*claim.timeout);
    claim.done(fail(why));
  };
  for (auto& [id, claim] : std::exchange(claims_, {})) end(claim);
  for (auto& [key, claim] : std::exchange(claiming_, {})) end(claim);
}

void EngineCore::lease_ended(WorkKey key, std::uint32_t attempt) {
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != attempt) return;
  PAWL_ASSERT(found->second.lease && heads_.find(key.first) != nullptr, "only a lease that was granted ends",
              key.second, attempt);
  work_returned(
      key, heads_.find(key.first)->machine, attempt,
      fail(Code::timed_out, fmt::format("attempt {}: no heartbeat came within the lease", attempt)));
}

/// The work of a lease that is still held; the lane only.
std::optional<EngineCore::WorkKey> EngineCore::held(const Lease& lease) const {
  const auto machine = registry_.find(lease.machine);
  if (!machine) return std::nullopt;
  const WorkKey key{registry_.id(*machine, lease.key), lease.number};
  const auto found = running_.find(key);
  if (found == running_.end() || found->second.attempt != lease.attempt || !found->second.lease)
    return std::nullopt;
  return key;
}

void EngineCore::heartbeat(const Lease& lease, Completion<LeaseStatus> done) {
  post([this, lease, done = std::move(done)]() mutable {
    if (poisoned_) return done(fail(*poisoned_));
    // Another owner may have taken over and leased the work to another caller.
    if (const auto owner = store_->still_owner(); !owner) return done(fail(owner.error()));
    const auto key = held(lease);
    if (!key) return done(fail(lost(lease)));
    auto& running = running_.find(*key)->second;
    const auto* head = heads_.find(key->first);
    PAWL_ASSERT(head != nullptr && head->extras != nullptr, "a leased piece of work is recorded",
                key->second);
    const auto work = std::ranges::find(head->extras->work, key->second, &WorkRecord::number);
    PAWL_ASSERT(work != head->extras->work.end(), "a leased piece of work is recorded", key->second);
    const auto duration = *handler_of(head->machine, work->name)->options.lease;
    lane_->cancel(*running.lease);
    running.lease =
        lane_->after(duration, [this, key = *key, attempt = lease.attempt] { lease_ended(key, attempt); });
    done(LeaseStatus{.duration = duration, .stop = work->stop == WorkStop::now});
  });
}

void EngineCore::complete(const Lease& lease, Result<Reply> result, CompleteDone done) {
  post([this, lease, result = std::move(result), done = std::move(done)]() mutable {
    const auto key = held(lease);
    if (!key) return complete_again(lease, result, std::move(done));
    const auto* head = heads_.find(key->first);
    PAWL_ASSERT(head != nullptr, "a leased piece of work is recorded", key->second);
    const auto [place, added] = completing_.emplace(*key, Completing{lease.attempt, result, {}});
    PAWL_ASSERT(added, "an attempt is completed once", key->second, lease.attempt);
    place->second.callers.push_back(std::move(done));
    work_returned(
        *key, head->machine, lease.attempt, std::move(result),
        [this, key = *key](const Result<std::vector<Instance>>& outcome) { completed(key, outcome); });
  });
}

/// A repeat of a completion that is not durable yet gets the same outcome.
void EngineCore::complete_again(const Lease& lease, const Result<Reply>& result, CompleteDone done) {
  const auto machine = registry_.find(lease.machine);
  const auto found =
      machine ? completing_.find({registry_.id(*machine, lease.key), lease.number}) : completing_.end();
  if (found == completing_.end() || found->second.attempt != lease.attempt ||
      !is_same(found->second.result, result))
    return done(fail(lost(lease)));
  PAWL_ASSERT(!found->second.callers.empty(), "a completion under way has a caller", lease.number);
  found->second.callers.push_back(std::move(done));
}

void EngineCore::completed(const WorkKey& key, const Result<std::vector<Instance>>& outcome) {
  auto node = completing_.extract(key);
  PAWL_ASSERT(!node.empty(), "a completion ends once", key.second);
  for (auto& done : node.mapped().callers) done(outcome);
}

}  // namespace pawl
