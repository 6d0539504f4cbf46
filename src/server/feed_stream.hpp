// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "server/hub.hpp"

namespace pawl::server {

/// What one reader of the live feed is still to get. First it reads what it missed from the log, page by
/// page, then the hub pushes. A reader that is too slow gets no more than an end that says so. Thread-safe.
class FeedStream final : public http::Stream, public std::enable_shared_from_this<FeedStream> {
 public:
  FeedStream(Hub& hub, FeedFilter filter, Subscription missed, std::size_t limit);
  ~FeedStream() override;

  void open(std::function<void()> ready) override;
  bool take(std::string& out) override;
  void idle(std::string& out) override;
  void close() override;

  const FeedFilter& filter() const { return filter_; }

  enum class Pushed { kept, unwanted, lagged };
  Pushed push(const FramePtr& frame);
  void end(Error why);

  /// From here on only what is newer is taken from the hub.
  void begin_behind(std::int64_t seq);

  /// Reads from the log until the hub takes over or enough waits for the reader.
  void read_missed(Hub& hub, Engine& engine);

 private:
  Pushed push_locked(const FramePtr& frame);
  void notify();

  Hub* hub_;  // null once closed
  const FeedFilter filter_;
  const std::size_t limit_;
  std::shared_ptr<std::atomic<std::size_t>> opened_;
  std::mutex mutex_;
  Subscription missed_;
  bool reading_ = false;  // a job reads what was missed
  bool live_ = false;     // the hub pushes
  std::int64_t after_ = 0;
  std::deque<FramePtr> waiting_;
  std::size_t bytes_ = 0;
  std::string cursor_;  // behind what was taken or passed over
  std::string passed_;  // behind what was not wanted since; told to idle readers
  std::optional<Error> end_;
  bool greeted_ = false;  // the reader was told where it begins
  bool notified_ = false;
  std::function<void()> ready_;
};

/// A whole server-sent event for one entry.

}  // namespace pawl::server
