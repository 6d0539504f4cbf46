// SPDX-License-Identifier: Apache-2.0
#include "server/watch.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "server/problem.hpp"

namespace pawl::server {

struct Watch::Readers {
  Readers(Runtime& with, Duration often, Check how)
      : runtime(with), at_least_every(often), check(std::move(how)) {}
  Runtime& runtime;
  const Duration at_least_every;
  const Check check;
  std::atomic<std::uint64_t> changes{0};
  std::mutex mutex;
  std::unordered_set<Watched*> all;
};

class Watch::Watched final : public http::Stream {
 public:
  Watched(std::shared_ptr<Readers> readers, std::shared_ptr<http::Stream> stream,
          std::shared_ptr<const http::Request> request, const http::Route& route)
      : readers_(std::move(readers)),
        stream_(std::move(stream)),
        request_(std::move(request)),
        route_(route),
        checked_at_(readers_->runtime.instant()) {
    const std::lock_guard lock(readers_->mutex);
    readers_->all.insert(this);
  }
  ~Watched() override {
    const std::lock_guard lock(readers_->mutex);
    readers_->all.erase(this);
  }

  void open(std::function<void()> ready) override {
    {
      const std::lock_guard lock(mutex_);
      ready_ = ready;
    }
    stream_->open(std::move(ready));
  }
  bool take(std::string& out) override {
    const auto valid = still_valid();
    if (valid) return stream_->take(out);
    fmt::format_to(std::back_inserter(out), "event: end\ndata: {}\n\n", to_problem(valid.error()));
    return false;
  }
  void idle(std::string& out) override { stream_->idle(out); }
  void close() override {
    {
      const std::lock_guard lock(mutex_);
      ready_ = nullptr;
    }
    stream_->close();
  }

  void wake() {
    const std::lock_guard lock(mutex_);
    if (ready_) ready_();
  }

 private:
  /// Starts with no change seen, so that a change between the request and the first check is not missed.
  Result<void> still_valid() {
    const auto changes = readers_->changes.load();
    const auto now = readers_->runtime.instant();
    if (changes == seen_ && now - checked_at_ < readers_->at_least_every) return {};
    seen_ = changes;
    checked_at_ = now;
    return readers_->check(*request_, route_);
  }

  const std::shared_ptr<Readers> readers_;
  const std::shared_ptr<http::Stream> stream_;
  const std::shared_ptr<const http::Request> request_;
  const http::Route& route_;
  std::uint64_t seen_ = 0;
  Instant checked_at_;
  std::mutex mutex_;
  std::function<void()> ready_;
};

Watch::Watch(Runtime& runtime, Duration at_least_every, Check check)
    : readers_(std::make_shared<Readers>(runtime, at_least_every, std::move(check))) {}

std::shared_ptr<http::Stream> Watch::over(std::shared_ptr<http::Stream> stream,
                                          std::shared_ptr<const http::Request> request,
                                          const http::Route& route) {
  return std::make_shared<Watched>(readers_, std::move(stream), std::move(request), route);
}

void Watch::changed() {
  ++readers_->changes;
  const std::lock_guard lock(readers_->mutex);
  for (auto* reader : readers_->all) reader->wake();
}

}  // namespace pawl::server
