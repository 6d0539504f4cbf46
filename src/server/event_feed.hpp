// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The live feed: follows the log once, renders each entry once, and sends it to the streams that want it.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/http.hpp"
#include "pawl/runtime.hpp"
#include "pawl/server.hpp"

namespace pawl::server {

/// Which entries a stream wants; an empty field matches everything.
struct FeedFilter {
  std::string machine{};
  std::string key{};  // needs a machine
  std::string state{};
  std::string kind{};
  http::Role role = http::Role::viewer;  // of the reader

  bool wants(const LogEvent& event) const;
};

/// One entry as it is sent. Shared by all streams that get it; immutable once one has got it.
struct Frame {
  Frame(LogEvent entry, const Engine& engine);
  /// Renders the texts on the first call only, because no stream wants most entries.
  void render();
  /// A whole server-sent event, as this role sees it.
  const std::string& text_for(http::Role role) const;

  std::int64_t seq = 0;
  std::size_t bytes = 0;  // in memory, approximately
  LogEvent event;         // `render` moves payload and data into the text
  const Definition* definition;
  std::string text;
  std::string redacted;  // for readers that must not see payload and data; empty if all may
};
using FramePtr = std::shared_ptr<Frame>;

class FeedStream;

/// Thread-safe. Follows the log only while there are streams.
class EventFeed {
 public:
  EventFeed(Runtime& runtime, Engine& engine, const HttpLimits& limits, Logger log);
  ~EventFeed();
  EventFeed(const EventFeed&) = delete;
  EventFeed& operator=(const EventFeed&) = delete;

  /// A stream of what comes after this cursor ("": from now on). Errors: `cursor_invalid`, `cursor_expired`,
  /// `overloaded`.
  Result<std::shared_ptr<http::Stream>> open(FeedFilter filter, const std::string& cursor);

  /// A stream that starts with the newest `count` entries.
  Result<std::shared_ptr<http::Stream>> open_recent(FeedFilter filter, std::int64_t count);

  /// Ends every stream with `stopped`; new ones are refused.
  void close();

  struct Counters {
    std::uint64_t lagged = 0;
    std::uint64_t frames = 0;
    std::int64_t seq = 0;  // the newest entry that was sent; 0 while there are no streams
    std::size_t streams = 0;
  };
  Counters counters() const;

 private:
  friend class FeedStream;

  /// True: the feed pushes everything after `after`. False: the stream must read on by itself.
  bool join(const std::shared_ptr<FeedStream>& stream, std::int64_t after);
  void leave(const std::shared_ptr<FeedStream>& stream);
  void follow();
  Result<void> follow_while_listened();
  void hand_out(std::vector<LogEvent> events);
  void end_all(const Error& why);
  void end_until_recovered(const Error& why);
  bool is_interrupted() const;
  void end_streams(const Error& why);
  using Streams = std::unordered_set<std::shared_ptr<FeedStream>>;
  Streams& streams_for(const FeedFilter& filter);
  template <class Visit>
  void visit_streams(const LogEvent& event, Visit visit);
  void remember(FramePtr frame);
  void catch_up(std::shared_ptr<FeedStream> stream);

  Runtime& runtime_;
  Engine& engine_;
  HttpLimits limits_;
  Logger log_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool closed_ = false;
  std::optional<Error> failed_;        // permanent: the log cannot be followed
  std::optional<Error> interruption_;  // temporary: following is tried again
  // Open streams. They may outlive the feed.
  std::shared_ptr<std::atomic<std::size_t>> opened_ = std::make_shared<std::atomic<std::size_t>>(0);
  // Streams by their narrowest filter, so that an entry is matched only against those that may want it.
  Streams everything_;
  std::unordered_map<std::string, Streams> by_machine_;
  std::unordered_map<std::string, Streams> by_instance_;
  bool following_ = false;
  std::int64_t base_ = 0;  // the recent frames hold every entry after this one …
  std::int64_t head_ = 0;  // … up to this one
  std::deque<FramePtr> recent_;
  std::size_t recent_bytes_ = 0;
  std::uint64_t lagged_ = 0;
  std::uint64_t frames_ = 0;
  std::unique_ptr<ThreadPool> reader_;    // streams that read what they missed
  std::unique_ptr<ThreadPool> follower_;  // last: its job uses the rest
};

}  // namespace pawl::server
