// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/appender.hpp"

#include <fmt/format.h>

#include <utility>

namespace pawl::sqlite {

Result<void> Appender::open(Database& db, Beside beside) {
  beside_ = std::move(beside);
  PAWL_CHECK(table_.attach(db));
  PAWL_TRY(insert_,
           db.prepare(fmt::format("INSERT INTO log({0}) SELECT {0} FROM pawl_pending", EntryRows::kColumns)));
  return {};
}

void Appender::add(const EntryView& entry, Seq seq, std::int64_t machine) {
  open_.add(entry, seq, machine);
  if (open_.size() < kRows && open_.bytes() < kBytes) return;
  const std::lock_guard lock(mutex_);
  sealed_.push_back(std::exchange(open_, {}));
  full_ = sealed_.size() >= kMostParts;
  wanted_ = !busy_;
  if (spare_.empty()) return;
  open_ = std::move(spare_.back());
  spare_.pop_back();
}

Result<void> Appender::append(const EntryRows& rows) {
  table_.show(rows);
  return insert_.run();
}

/// Appends until none are left or one fails. Releases the lock while it appends.
void Appender::append_sealed(std::unique_lock<std::mutex>& lock) {
  wanted_ = false;
  busy_ = true;
  while (!sealed_.empty() && !error_) {
    auto rows = std::move(sealed_.front());
    sealed_.pop_front();
    lock.unlock();
    auto done = append(rows);
    if (done) done = beside_(rows.size());
    rows.clear();
    lock.lock();
    if (spare_.size() < kMostSpare) spare_.push_back(std::move(rows));
    if (!done) error_ = std::move(done).error();
  }
  busy_ = false;
  idle_.notify_one();
}

void Appender::help() {
  std::unique_lock lock(mutex_);
  if (!busy_) append_sealed(lock);
}

void Appender::settle() {
  full_ = false;
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !busy_; });
  append_sealed(lock);
}

Result<void> Appender::finish() {
  settle();
  if (!error_ && !open_.empty()) {
    if (auto done = append(open_); !done) error_ = std::move(done).error();
    open_.clear();
  }
  if (error_) return fail(*error_);
  return {};
}

void Appender::drop() {
  full_ = false;
  open_.clear();
  std::unique_lock lock(mutex_);
  sealed_.clear();
  wanted_ = false;
  idle_.wait(lock, [this] { return !busy_; });
  error_.reset();
}

}  // namespace pawl::sqlite
