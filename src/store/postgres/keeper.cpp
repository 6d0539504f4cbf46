// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/keeper.hpp"

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

/// How often the log is looked at while somebody waits, in case a notification was lost with a connection.
constexpr Duration kPoll = std::chrono::seconds(1);

std::int64_t number_after(std::string_view text, std::string_view word) {
  std::int64_t number = 0;
  if (text.starts_with(word)) std::from_chars(text.data() + word.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Result<void> Keeper::start() {
  const std::scoped_lock lock(start_mutex_);
  if (thread_.joinable()) return {};
  PAWL_CHECK(connect());
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) return fail(Code::store_io, "the system gives no eventfd");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  return {};
}

void Keeper::stop() {
  const std::scoped_lock lock(start_mutex_);
  if (!thread_.joinable()) return;
  thread_.request_stop();
  eventfd_write(wake_, 1);
  thread_.join();
  close(wake_);
  wake_ = -1;
  db_.close();
}

Result<void> Keeper::connect() {
  // One renewal must not outlast the lease, or the next would come too late.
  const auto patience =
      std::min(options_.patience, std::max<Duration>(options_.lease, std::chrono::seconds(1)));
  PAWL_TRY(db_, Connection::open(address_, {.patience = patience}));
  // A renewal that waits for the standby holds the lease's row; closing its connection frees the row.
  PAWL_CHECK(db_.end_statements_on_close());
  // A lease that an old primary keeps alive would let this owner serve what a new one has long changed.
  PAWL_TRY(const auto facts, server_facts(db_));
  if (!options_.read_only && facts.timeline < ownership_.timeline()) {
    db_.close();
    return fail(Code::store_diverged, "an old primary answers");
  }
  // The owner hears of its own commits without the server.
  if (options_.read_only) PAWL_CHECK(db_.run(names_.joining_the_audience()));
  PAWL_CHECK(db_.run("LISTEN " + names_.channel()));
  due_ = {};
  return {};
}

void Keeper::run(const std::stop_token& stop) {
  std::optional<Backoff> backoff;
  while (!stop.stop_requested()) {
    auto done = db_ && !db_.lost() ? Result<void>{} : connect();
    if (done) done = turn();
    if (done) {
      backoff.reset();
      continue;
    }
    if (done.error().code() == Code::store_fenced) {
      status_.poison(done.error());
      heard_.notify_all();
      return;
    }
    // The server is away, or waits for its standby. Meanwhile the lease runs out and this owner stops
    // serving.
    if (db_ && db_.lost()) db_.close();
    if (!backoff) backoff.emplace(std::chrono::hours(24 * 365));
    backoff->again();
  }
}

Result<void> Keeper::turn() {
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
  hear();
  return {};
}

void Keeper::hear() {
  while (auto* raw = PQnotifies(db_.get())) {
    const std::unique_ptr<PGnotify, decltype(&PQfreemem)> notice(raw, &PQfreemem);
    const std::string_view text = notice->extra;
    if (const Seq last = number_after(text, "entries "); last > 0) learn(last);
    // Hearing of another owner is a reason to look, not a proof.
    if (number_after(text, "owner ") > ownership_.epoch()) due_ = {};
  }
}

Result<void> Keeper::poll_log() {
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_ == 0) return {};
  }
  PAWL_TRY(const auto row, db_.run(names_("SELECT max(seq) FROM {s}.log")));
  learn(row.integer(0, 0));
  return {};
}

void Keeper::learn(Seq last) {
  const std::scoped_lock lock(mutex_);
  newest_ = std::max(newest_, last);
  heard_.notify_all();
}

void Keeper::committed(Seq last) { learn(last); }

Result<bool> Keeper::wait(Seq after, Duration most) {
  std::unique_lock lock(mutex_);
  ++waiting_;
  const bool there =
      heard_.wait_for(lock, most, [&] { return newest_ > after || status_.poisoned(); }) && newest_ > after;
  --waiting_;
  PAWL_CHECK(status_.usable());
  return there;
}

}  // namespace pawl::postgres
