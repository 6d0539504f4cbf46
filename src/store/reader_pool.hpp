// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A bounded pool of reading connections.
///
///     ReaderPool<Reader> readers(4, [&] { return open_reader(); });
///     PAWL_TRY(auto reader, readers.lease());
///     PAWL_TRY(auto entries, reader->feed(after, 100));

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "pawl/error.hpp"
#include "store/query.hpp"

namespace pawl {

/// Thread-safe. `lease` blocks while all connections are in use. Connections are opened on demand; one that
/// is not `reusable()` when it is returned is closed.
template <class Reader>
class ReaderPool {
 public:
  using Open = std::function<Result<std::unique_ptr<Reader>>()>;

  ReaderPool(std::size_t most, Open open) : most_(most), open_(std::move(open)) {}

  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Reader> reader) : pool_(&pool), reader_(std::move(reader)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (reader_) pool_->give_back(std::move(reader_));
    }
    Reader* operator->() const { return reader_.get(); }
    Reader& operator*() const { return *reader_; }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Reader> reader_;
  };

  Result<Lease> lease() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return has_room(); });
    return take(lock);
  }

  /// Blocks no longer than the query may take. Additional errors: those of `QueryWatch::check`.
  Result<Lease> lease(const QueryWatch& watch) {
    PAWL_CHECK(watch.check());
    std::unique_lock lock(mutex_);
    while (!returned_.wait_until(lock, watch.stop(), watch.deadline(), [this] { return has_room(); })) {
      PAWL_CHECK(watch.check());
    }
    return take(lock);
  }

 private:
  bool has_room() const { return !idle_.empty() || made_ < most_; }

  Result<Lease> take(std::unique_lock<std::mutex>& lock) {
    if (!idle_.empty()) {
      auto reader = std::move(idle_.back());
      idle_.pop_back();
      return Lease(*this, std::move(reader));
    }
    ++made_;
    lock.unlock();
    auto reader = open_();
    if (reader) return Lease(*this, *std::move(reader));
    lock.lock();
    --made_;
    returned_.notify_one();
    return fail(std::move(reader).error());
  }

  void give_back(std::unique_ptr<Reader> reader) {
    const bool good = reader->reusable();
    const std::scoped_lock lock(mutex_);
    if (good) {
      idle_.push_back(std::move(reader));
    } else {
      --made_;
    }
    returned_.notify_one();
  }

  const std::size_t most_;
  const Open open_;
  std::mutex mutex_;
  std::condition_variable_any returned_;
  std::vector<std::unique_ptr<Reader>> idle_;
  std::size_t made_ = 0;
};

}  // namespace pawl
