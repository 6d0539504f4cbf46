// SPDX-License-Identifier: Apache-2.0
#include "store/log_check.hpp"

#include <algorithm>

namespace pawl {

void LogCheck::entry(const CheckedEntry& entry) {
  ++result_.entries;
  if (entry.seq <= horizon_) problem("entry {} lies below the horizon {}", entry.seq, horizon_);
  if (!entry.machine_known) problem("entry {} names a machine that does not exist", entry.seq);
  if (entry.seq <= request_ends_ && entry.seq != before_ + 1) {
    problem("entry {} of a request is missing", before_ + 1);
  }
  if (entry.at < at_) problem("entry {} is older than the one before it", entry.seq);
  if (entry.members != 0) request_ends_ = entry.seq + entry.members - 1;
  at_ = entry.at;
  before_ = entry.seq;
  link(entry);
}

/// Compares an entry with the previous entry of its instance.
void LogCheck::link(const CheckedEntry& entry) {
  const auto found = newest_.find(entry.id);
  if (found != newest_.end() && !(entry.prev == 0 && entry.created && found->second.finished)) {
    // A finished instance may have been forgotten and created again; otherwise the chain continues.
    const auto& last = found->second;
    if (entry.prev != last.seq) problem("entry {} follows {} instead of {}", entry.seq, entry.prev, last.seq);
    if (entry.generation < last.generation) {
      problem("entry {} goes back to generation {}", entry.seq, entry.generation);
    }
    if (entry.generation == last.generation && entry.version < last.version) {
      problem("entry {} goes back from version {} to {}", entry.seq, last.version, entry.version);
    }
  } else if (found == newest_.end() && entry.prev > horizon_) {
    problem("entry {} follows {}, which is not in the log", entry.seq, entry.prev);
  }
  const Seq began = found == newest_.end() ? 0 : found->second.begins;
  newest_[entry.id] = {.seq = entry.seq,
                       .version = entry.version,
                       .generation = entry.generation,
                       .state = std::string(entry.state),
                       .begins = entry.created ? entry.seq : began,
                       .finished = entry.finished,
                       .has_extra = entry.has_extra};
}

void LogCheck::head(const CheckedHead& head) {
  ++result_.heads;
  const auto id = head.id.to_string();
  if (!head.machine_known) problem("the head of {} names a machine that does not exist", id);
  const auto found = newest_.find(head.id);
  if (found != newest_.end()) found->second.has_head = true;
  if (head.seq <= horizon_ && !head.carries) {
    problem("the head of {} points to entry {}, which was cut away, and does not carry it", id, head.seq);
  }
  if (found == newest_.end()) {
    if (head.seq > horizon_) problem("the head of {} points to entry {}, which is missing", id, head.seq);
    return;
  }
  const auto& newest = found->second;
  if (head.seq > newest.seq) problem("the head of {} points to entry {}, which is missing", id, head.seq);
  if (head.seq < newest.seq && newest.seq <= flushed_) {
    problem("the head of {} points to entry {}, but {} is newer", id, head.seq, newest.seq);
  }
  const bool same = head.version == newest.version && head.generation == newest.generation &&
                    head.state == newest.state && head.finished == newest.finished;
  if (head.seq == newest.seq && !same) problem("the head of {} differs from its entry {}", id, head.seq);
}

void LogCheck::missing_head(const InstanceId& id, const Newest& newest) {
  if (newest.has_head) return;
  if (newest.seq > flushed_) {
    // An instance that began after the mark has no head yet; one that began before it needs its head.
    if (newest.begins > flushed_) return;
    problem("entry {} continues instance {}, which has no head", newest.seq, id.to_string());
  } else if (!newest.finished) {
    problem("instance {} has no head; its newest entry is {}", id.to_string(), newest.seq);
  } else if (newest.has_extra) {
    problem("instance {} has no head, but its newest entry {} holds messages, work or timers", id.to_string(),
            newest.seq);
  } else {
    return;  // forgotten
  }
  result_.missing.push_back({id, newest.seq, newest.begins});
}

StoreCheck LogCheck::finish() {
  if (before_ < request_ends_) problem("entry {} of a request is missing", before_ + 1);
  for (const auto& [id, newest] : newest_) missing_head(id, newest);
  std::ranges::sort(result_.missing, {}, &MissingHead::newest);
  return std::move(result_);
}

std::string repaired_sentence(const MissingHead& head) {
  const auto id = head.id.to_string();
  if (head.begins != 0) {
    return fmt::format("the head of instance {} was rebuilt from entry {}", id, head.newest);
  }
  return fmt::format(
      "the head of instance {} was rebuilt from entry {}; its key was cut away with its first entry, so the "
      "key is the id",
      id, head.newest);
}

}  // namespace pawl
