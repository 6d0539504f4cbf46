// SPDX-License-Identifier: Apache-2.0
#include "server/feed_stream.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pawl/json.hpp"
#include "server/problem.hpp"
#include "server/render.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kPage = 256;
constexpr std::size_t kPiece = std::size_t{256} << 10;  // what one write takes, about

std::string frame_text(const LogEvent& event, bool visible) {
  JsonWriter out;
  write_event(out, event, visible);
  auto json = out.take().value_or("{}");
  // JSON allows a blank between tokens in place of a line break, which would end the event.
  std::ranges::replace_if(json, [](char byte) { return byte == '\n' || byte == '\r'; }, ' ');
  return "id: " + event.cursor + "\nevent: " + event.kind + "\ndata: " + json + "\n\n";
}

}  // namespace

Frame::Frame(LogEvent entry, const Engine& engine)
    : seq(entry.seq),
      bytes(512 + entry.payload.size() + entry.data.size()),
      event(std::move(entry)),
      definition(engine.definition(event.machine)) {}

void Frame::render() {
  if (!text.empty()) return;
  text = frame_text(event, true);
  if (!sees_data(http::Role::viewer, definition)) redacted = frame_text(event, false);
  event.payload = {};
  event.data = {};
}

const std::string& Frame::text_for(http::Role role) const {
  return sees_data(role, definition) ? text : redacted;
}

FeedStream::FeedStream(EventFeed& feed, FeedFilter filter, Subscription missed, std::size_t limit)
    : feed_(&feed),
      filter_(std::move(filter)),
      limit_(limit),
      opened_(feed.opened_),
      missed_(std::move(missed)),
      cursor_(missed_.cursor()) {
  ++*opened_;
}

FeedStream::~FeedStream() { --*opened_; }

void FeedStream::open(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  ready_ = std::move(ready);
  notified_ = false;
  notify();
}

bool FeedStream::take(std::string& out) {
  bool read_on = false;
  EventFeed* feed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    notified_ = false;
    // A reader that loses the connection before the first entry can resume from here.
    if (!std::exchange(greeted_, true)) fmt::format_to(std::back_inserter(out), "id: {}\n\n", cursor_);
    while (!waiting_.empty() && out.size() < kPiece) {
      const auto& text = waiting_.front()->text_for(filter_.role);
      out += text;
      bytes_ -= text.size();
      cursor_ = waiting_.front()->event.cursor;
      passed_.clear();
      waiting_.pop_front();
    }
    if (!waiting_.empty()) return true;
    if (end_) {
      auto why = Error(*end_);
      why.with("cursor", cursor_);
      fmt::format_to(std::back_inserter(out), "event: end\ndata: {}\n\n", to_problem(why));
      return false;
    }
    feed = feed_;
    read_on = feed != nullptr && !live_ && !reading_;
    if (read_on) reading_ = true;
  }
  if (read_on) feed->catch_up(shared_from_this());
  return true;
}

void FeedStream::idle(std::string& out) {
  const std::lock_guard lock(mutex_);
  if (!passed_.empty() && waiting_.empty()) {
    // An id without data only advances the reader's cursor.
    fmt::format_to(std::back_inserter(out), "id: {}\n\n", passed_);
    cursor_ = std::exchange(passed_, {});
  } else {
    out += ": still here\n\n";
  }
}

void FeedStream::close() {
  EventFeed* feed = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ready_ = nullptr;
    feed = std::exchange(feed_, nullptr);
    if (!end_) end_ = Error(Code::cancelled, "the reader is gone");
    waiting_.clear();
    bytes_ = 0;
  }
  if (feed != nullptr) feed->leave(shared_from_this());
}

FeedStream::Pushed FeedStream::push(const FramePtr& frame) {
  const std::lock_guard lock(mutex_);
  return push_locked(frame);
}

FeedStream::Pushed FeedStream::push_locked(const FramePtr& frame) {
  if (frame->seq <= after_ || end_) return Pushed::unwanted;
  if (!filter_.wants(frame->event)) {
    passed_ = frame->event.cursor;
    return Pushed::unwanted;
  }
  const auto size = frame->text_for(filter_.role).size();
  if (bytes_ + size > limit_ && !waiting_.empty()) {
    waiting_.clear();
    bytes_ = 0;
    end_ = Error(Code::subscriber_lagged,
                 "the reader was slower than the entries; go on behind the last event's id");
    notify();
    return Pushed::lagged;
  }
  waiting_.push_back(frame);
  bytes_ += size;
  notify();
  return Pushed::kept;
}

void FeedStream::end(Error why) {
  const std::lock_guard lock(mutex_);
  if (!end_) end_ = std::move(why);
  notify();
}

void FeedStream::begin_behind(std::int64_t seq) {
  const std::lock_guard lock(mutex_);
  after_ = seq;
  live_ = true;
}

void FeedStream::notify() {
  if (notified_ || !ready_) return;
  notified_ = true;
  ready_();
}

void FeedStream::read_missed(EventFeed& feed, Engine& engine) {
  while (true) {
    // If nothing follows the cursor now, everything up to here has been read.
    auto position = engine.last_seq();
    auto events = missed_.poll(kPage);
    if (!events) return end(std::move(events).error());
    {
      const std::lock_guard lock(mutex_);
      for (auto& event : *events) {
        position = event.seq;
        // The bound is on what waits, so a page that does not fit is not a reader's fault.
        const auto frame = std::make_shared<Frame>(std::move(event), engine);
        if (filter_.wants(frame->event)) {
          frame->render();
          waiting_.push_back(frame);
          bytes_ += frame->text_for(filter_.role).size();
        } else {
          passed_ = frame->event.cursor;
        }
      }
      if (!waiting_.empty()) notify();
      if (end_ || bytes_ > limit_ / 2) {
        reading_ = false;
        return;
      }
    }
    if (feed.join(shared_from_this(), position)) return;
  }
}

}  // namespace pawl::server
