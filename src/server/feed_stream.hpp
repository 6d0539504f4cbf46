// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/event_feed.hpp"

namespace pawl::server {

/// The entries that one reader of the live feed still has to get. It first reads what it missed from the log,
/// page by page; then the feed pushes. A reader that is too slow gets an end event that says so. Thread-safe.
class FeedStream final : public http::Stream, public std::enable_shared_from_this<FeedStream> {
 public:
  FeedStream(EventFeed& feed, FeedFilter filter, Subscription missed, std::size_t limit);
  ~FeedStream() override;

  void open(std::function<void()> ready) override;
  bool take(std::string& out) override;
  void idle(std::string& out) override;
  void close() override;

  const FeedFilter& filter() const { return filter_; }

  enum class Pushed { kept, unwanted, lagged };
  Pushed push(const FramePtr& frame);
  void end(Error why);

  /// Ignores pushed entries up to `seq`.
  void begin_behind(std::int64_t seq);

  /// Reads from the log until the feed takes over or the reader's buffer is full.
  void read_missed(EventFeed& feed, Engine& engine);

 private:
  Pushed push_locked(const FramePtr& frame);
  void notify();

  EventFeed* feed_;  // null once closed
  const FeedFilter filter_;
  const std::size_t limit_;
  std::shared_ptr<std::atomic<std::size_t>> opened_;
  std::mutex mutex_;
  Subscription missed_;
  bool reading_ = false;  // a job reads what was missed
  bool live_ = false;     // the feed pushes
  std::int64_t after_ = 0;
  std::deque<FramePtr> waiting_;
  std::size_t bytes_ = 0;
  std::string cursor_;  // after what was sent or skipped
  std::string passed_;  // after what was skipped since; sent to idle readers
  std::optional<Error> end_;
  bool greeted_ = false;  // the reader has got the cursor where it starts
  bool notified_ = false;
  std::function<void()> ready_;
};

/// A whole server-sent event for one entry.

}  // namespace pawl::server
