// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/listener.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "store/postgres/backoff.hpp"

namespace pawl::postgres {
namespace {

/// Interval of polling the log while a caller waits, in case a notification was lost with a connection.
constexpr Duration kPoll = std::chrono::seconds(1);

std::int64_t number_after(std::string_view text, std::string_view word) {
  std::int64_t number = 0;
  if (text.starts_with(word)) std::from_chars(text.data() + word.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Result<void> Listener::start() {
  const std::scoped_lock lock(start_mutex_);
  if (thread_.joinable()) return {};
  PAWL_CHECK(connect());
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return fail(Code::store_io, "cannot create an eventfd");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return {};
}

void Listener::stop() {
  const std::scoped_lock lock(start_mutex_);
  if (!thread_.joinable()) return;
  thread_.request_stop();
  eventfd_write(wake_, 1);
  thread_.join();
  close(wake_);
  wake_ = -1;
  db_.close();
}

Result<void> Listener::connect() {
  // One renewal must not outlast the lease, or the next would come too late.
  const auto patience =
      std::min(options_.patience, std::max<Duration>(options_.lease, std::chrono::seconds(1)));
  PAWL_TRY(db_, Connection::open(address_, {.patience = patience}));
  // A renewal that waits for the standby holds the lease's row; closing its connection frees the row.
  PAWL_CHECK(db_.end_statements_on_close());
  // If an old primary renewed the lease, this owner would serve data that a new owner has changed.
  PAWL_TRY(const auto facts, server_facts(db_));
  if (!options_.read_only && facts.timeline < ownership_.timeline()) {
    db_.close();
    return fail(Code::store_diverged, "an old primary answers");
  }
  // The owner is told of its own commits directly.
  if (options_.read_only) PAWL_CHECK(db_.run(names_.listener_lock()));
  PAWL_CHECK(db_.run("LISTEN " + names_.channel()));
  due_ = {};
  return {};
}

void Listener::run(const std::stop_token& stop) {
  std::optional<Backoff> backoff;
  while (!stop.stop_requested()) {
    auto done = db_ && !db_.lost() ? Result<void>{} : connect();
    if (done) done = run_once();
    if (done) {
      backoff.reset();
      continue;
    }
    if (done.error().code() == Code::store_fenced) {
      status_.poison(done.error());
      changed_.notify_all();
      return;
    }
    // The server is unavailable, or waits for its standby. Meanwhile the lease expires and this owner stops
    // serving.
    if (db_ && db_.lost()) db_.close();
    if (!backoff) backoff.emplace(std::chrono::hours(24 * 365));
    backoff->again();
  }
}

Result<void> Listener::run_once() {
  const auto now = std::chrono::steady_clock::now();
  const bool owner = !options_.read_only;
  if (now >= due_) {
    due_ = now + (owner ? options_.lease / 3 : kPoll);
    if (owner) {
      PAWL_CHECK(ownership_.renew(db_));
    } else {
      PAWL_CHECK(poll_log());
    }
  }
  std::array<pollfd, 2> waits{
      {{.fd = db_.socket(), .events = POLLIN, .revents = 0}, {.fd = wake_, .events = POLLIN, .revents = 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_ - now).count();
  poll(waits.data(), waits.size(), static_cast<int>(std::max<std::int64_t>(left, 0)));
  eventfd_t ignored = 0;
  if (waits[1].revents != 0) eventfd_read(wake_, &ignored);
  if (waits[0].revents != 0 && PQconsumeInput(db_.get()) != 1) {
    db_.close();
    return fail(Code::store_io, "the listening connection was lost");
  }
  read_notifications();
  return {};
}

void Listener::read_notifications() {
  while (auto* raw = PQnotifies(db_.get())) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notice(raw, &PQfreemem);
    const std::string_view text = notice->extra;
    if (const Seq last = number_after(text, "entries "); last > 0) set_newest(last);
    // A notification of another owner is no proof, so renew now to find out.
    if (number_after(text, "owner ") > ownership_.epoch()) due_ = {};
  }
}

Result<void> Listener::poll_log() {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_ == 0) return {};
  }
  PAWL_TRY(const auto row, db_.run(names_("SELECT max(seq) FROM {s}.log")));
  set_newest(row.integer(0, 0));
  return {};
}

void Listener::set_newest(Seq last) {
  const std::scoped_lock lock(mutex_);
  newest_ = std::max(newest_, last);
  changed_.notify_all();
}

void Listener::committed(Seq last) { set_newest(last); }

Result<bool> Listener::wait(Seq after, Duration most) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const bool there =
      changed_.wait_for(lock, most, [&] { return newest_ > after || status_.poisoned(); }) && newest_ > after;
  --waiting_;
  PAWL_CHECK(status_.usable());
  return there;
}

}  // namespace pawl::postgres
