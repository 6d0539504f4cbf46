// SPDX-License-Identifier: Apache-2.0
#include "server/event_feed.hpp"

#include <algorithm>

#include "server/feed_stream.hpp"
#include "server/lapse.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kBatch = 1024;
constexpr std::size_t kRecentFrames = 4096;
constexpr std::size_t kRecentBytes = std::size_t{16} << 20;
// The longest time until the follower notices that the last stream has ended, or that it must stop.
constexpr Duration kGlance = std::chrono::milliseconds(50);
// Between attempts to follow a log that could not be read; doubled after each attempt.
constexpr Duration kFirstPause = std::chrono::milliseconds(100);
constexpr Duration kLongestPause = std::chrono::seconds(10);

/// Errors after which no entry will ever come.
bool is_final(const Error& error) {
  const auto code = error.code();
  if (is_lapse(error)) return false;
  return code == Code::store_poisoned || code == Code::store_fenced || code == Code::store_diverged ||
         code == Code::stopped;
}

std::string instance_key(std::string_view machine, std::string_view key) {
  std::string made(machine);
  made += '\0';
  made += key;
  return made;
}

}  // namespace

bool FeedFilter::wants(const LogEvent& event) const {
  return !event.machine.starts_with(http::kPrivateMachines) &&
         (machine.empty() || event.machine == machine) && (key.empty() || event.key == key) &&
         (state.empty() || event.state == state) && (kind.empty() || event.kind == kind);
}

EventFeed::EventFeed(Runtime& runtime, Engine& engine, const HttpLimits& limits, Logger log)
    : runtime_(runtime),
      engine_(engine),
      limits_(limits),
      log_(std::move(log)),
      reader_(runtime.open_thread_pool("feed-readers", {.threads = 2, .queue = limits.streams + 16})),
      follower_(runtime.open_thread_pool("feed", {.threads = 1, .queue = 1})) {
  (void)follower_->submit([this](const std::stop_token&) { follow(); });
}

EventFeed::~EventFeed() { close(); }

/// If retention has cut some of them: all that are kept.
Result<std::shared_ptr<http::Stream>> EventFeed::open_recent(FeedFilter filter, std::int64_t count) {
  auto stream = open(filter, engine_.cursor_before(count));
  if (!stream && stream.error().code() == Code::cursor_expired) return open(std::move(filter), "begin");
  return stream;
}

Result<std::shared_ptr<http::Stream>> EventFeed::open(FeedFilter filter, const std::string& cursor) {
  const auto now = engine_.last_seq();
  PAWL_TRY(auto missed, engine_.subscribe(cursor));
  if (*opened_ >= limits_.streams) {
    return fail(Code::overloaded, "as many event streams are open as the limits allow");
  }
  auto stream =
      std::make_shared<FeedStream>(*this, std::move(filter), std::move(missed), limits_.stream_buffer);
  {
    std::unique_lock lock(mutex_);
    changed_.notify_all();
    changed_.wait(lock, [&] { return following_ || closed_ || failed_ || interruption_; });
    if (failed_ || interruption_) return fail(failed_ ? *failed_ : *interruption_);
    if (closed_) return fail(Code::stopped, "the server is stopping");
  }
  // From now on: nothing to read first, unless the recent entries were cut in this moment.
  if (cursor.empty()) (void)join(stream, now);
  return stream;
}

EventFeed::Streams& EventFeed::streams_for(const FeedFilter& filter) {
  if (filter.machine.empty()) return everything_;
  if (filter.key.empty()) return by_machine_[filter.machine];
  return by_instance_[instance_key(filter.machine, filter.key)];
}

bool EventFeed::join(const std::shared_ptr<FeedStream>& stream, std::int64_t after) {
  const std::lock_guard lock(mutex_);
  if (closed_ || failed_ || interruption_) {
    stream->end(failed_         ? *failed_
                : interruption_ ? *interruption_
                                : Error(Code::stopped, "the server is stopping"));
    return true;
  }
  if (!following_ || after < base_) return false;
  stream->begin_behind(after);
  const auto first = std::ranges::upper_bound(recent_, after, {}, &Frame::seq);
  for (auto frame = first; frame != recent_.end(); ++frame) {
    (*frame)->render();
    if (stream->push(*frame) == FeedStream::Pushed::lagged) {
      ++lagged_;
      return true;
    }
  }
  streams_for(stream->filter()).insert(stream);
  return true;
}

void EventFeed::leave(const std::shared_ptr<FeedStream>& stream) {
  const std::lock_guard lock(mutex_);
  const auto& filter = stream->filter();
  if (filter.machine.empty()) {
    everything_.erase(stream);
    return;
  }
  auto& groups = filter.key.empty() ? by_machine_ : by_instance_;
  const auto found =
      groups.find(filter.key.empty() ? filter.machine : instance_key(filter.machine, filter.key));
  if (found == groups.end()) return;
  found->second.erase(stream);
  if (found->second.empty()) groups.erase(found);
}

void EventFeed::catch_up(std::shared_ptr<FeedStream> stream) {
  const auto submitted =
      reader_->submit([this, stream](const std::stop_token&) { stream->read_missed(*this, engine_); });
  if (!submitted) stream->end(submitted.error());
}

void EventFeed::follow() {
  Duration pause = kFirstPause;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      // After an interruption this continues without streams, because none can be opened until it is over.
      changed_.wait(lock, [&] { return closed_ || *opened_ > 0 || interruption_; });
      if (closed_) return;
    }
    const auto started = runtime_.instant();
    const auto followed = follow_while_listened();
    if (followed) continue;
    const auto& error = followed.error();
    const bool lapsed = is_lapse(error);
    // A lapsed lease is checked often, because that is cheap, but logged once.
    if (!lapsed || !is_interrupted())
      log_.error("the log cannot be followed", {{"error", error.to_string()}});
    if (is_final(error)) return end_all(error);
    if (lapsed || runtime_.instant() - started > kLongestPause) pause = kFirstPause;
    end_until_recovered(error);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, pause, [&] { return closed_; });
    pause = std::min(pause * 2, kLongestPause);
  }
}

Result<void> EventFeed::follow_while_listened() {
  PAWL_TRY(auto subscription, engine_.subscribe(""));
  // Shows that the log can be read before streams are opened. What this reads lies before the base.
  PAWL_CHECK(subscription.next(Duration(0), kBatch));
  {
    const std::lock_guard lock(mutex_);
    recent_.clear();
    recent_bytes_ = 0;
    // Read after the subscription started, so that nothing in between can be missed.
    base_ = head_ = engine_.last_seq();
    following_ = true;
    interruption_.reset();
    changed_.notify_all();
  }
  while (true) {
    auto events = subscription.next(kGlance, kBatch);
    if (!events) return fail(std::move(events).error());
    const bool more = events->size() == kBatch;
    if (!events->empty()) hand_out(*std::move(events));
    std::unique_lock lock(mutex_);
    if (closed_) return {};
    if (*opened_ == 0) {
      following_ = false;
      return {};
    }
    if (more) continue;
    // With many readers, single entries are batched: one write for several.
    const auto pause =
        std::min<Duration>(Duration(20) * static_cast<int>(std::min<std::size_t>(*opened_, 10'000)),
                           std::chrono::milliseconds(50));
    if (*opened_ > 50) changed_.wait_for(lock, pause, [&] { return closed_; });
  }
}

void EventFeed::remember(FramePtr frame) {
  head_ = std::max(head_, frame->seq);
  recent_bytes_ += frame->bytes;
  recent_.push_back(std::move(frame));
  while (recent_.size() > kRecentFrames || recent_bytes_ > kRecentBytes) {
    base_ = std::max(base_, recent_.front()->seq);
    recent_bytes_ -= recent_.front()->bytes;
    recent_.pop_front();
  }
}

/// The groups of streams that may want the event.
template <class Visit>
void EventFeed::visit_streams(const LogEvent& event, Visit visit) {
  if (!everything_.empty()) visit(everything_);
  if (const auto found = by_machine_.find(event.machine); found != by_machine_.end()) visit(found->second);
  if (by_instance_.empty()) return;
  const auto found = by_instance_.find(instance_key(event.machine, event.key));
  if (found != by_instance_.end()) visit(found->second);
}

void EventFeed::hand_out(std::vector<LogEvent> events) {
  std::vector<FramePtr> frames;
  frames.reserve(events.size());
  std::vector<FramePtr> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (auto& event : events) {
      frames.push_back(std::make_shared<Frame>(std::move(event), engine_));
      visit_streams(frames.back()->event, [&](Streams&) { wanted.push_back(frames.back()); });
    }
  }
  for (const auto& frame : wanted) frame->render();  // most of the work, outside of the lock
  std::vector<std::shared_ptr<FeedStream>> lagged;
  {
    const std::lock_guard lock(mutex_);
    for (auto& frame : frames) {
      visit_streams(frame->event, [&](Streams& streams) {
        frame->render();  // for a stream that joined since
        for (const auto& stream : streams) {
          if (stream->push(frame) == FeedStream::Pushed::lagged) lagged.push_back(stream);
        }
      });
      remember(std::move(frame));
      ++frames_;
    }
    lagged_ += lagged.size();
  }
  for (const auto& stream : lagged) leave(stream);
}

void EventFeed::end_all(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (why.code() != Code::stopped) failed_ = why;
  closed_ = closed_ || why.code() == Code::stopped;
  end_streams(why);
}

bool EventFeed::is_interrupted() const {
  const std::lock_guard lock(mutex_);
  return interruption_.has_value();
}

/// Readers reconnect with their cursor, so that they miss nothing.
void EventFeed::end_until_recovered(const Error& why) {
  const std::lock_guard lock(mutex_);
  interruption_ = why;
  end_streams(why);
}

void EventFeed::end_streams(const Error& why) {
  following_ = false;
  for (const auto& stream : everything_) stream->end(why);
  for (const auto* groups : {&by_machine_, &by_instance_}) {
    for (const auto& [name, streams] : *groups) {
      for (const auto& stream : streams) stream->end(why);
    }
  }
  everything_.clear();
  by_machine_.clear();
  by_instance_.clear();
  changed_.notify_all();
}

void EventFeed::close() { end_all(Error(Code::stopped, "the server is stopping")); }

EventFeed::Counters EventFeed::counters() const {
  const std::lock_guard lock(mutex_);
  return {.lagged = lagged_, .frames = frames_, .seq = following_ ? head_ : 0, .streams = *opened_};
}

}  // namespace pawl::server
