// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/driver.hpp"

#include <fmt/format.h>

#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include "pawl/random.hpp"
#include "tests/crash/cluster.hpp"
#include "tests/crash/load.hpp"
#include "tests/crash/session.hpp"

namespace pawl::crash {
namespace {

using namespace std::chrono_literals;

/// How long the owner may be silent, so short that the next one does not wait for long.
constexpr const char* kLease = "&pawl_lease=700ms&pawl_patience=60s";
constexpr std::size_t kAfterwards = 300;  // answers that show that it goes on

class Driver {
 public:
  Driver(const DriverOptions& options, Report& report)
      : options_(options), report_(report), random_(options.seed), load_(random_.next()) {
    if (options.postgres) {
      cluster_.emplace(options.fault == Fault::promote ? Cluster::Kind::with_standby
                                                       : Cluster::Kind::one_server);
    }
    const auto directory = cluster_ ? cluster_->directory() : options.directory;
    worker_ = {.store = cluster_ ? cluster_->url(kLease) : "sqlite:" + directory + "/pawl.db",
               .directory = directory,
               .acknowledge_before_commit = options.acknowledge_before_commit};
    audit_.emplace(make_audit());
  }

  Result<void> run() {
    while (report_.kills < options_.kills) {
      PAWL_CHECK(round());
      ++report_.kills;
      PAWL_CHECK(check(*audit_, false));
      if (!report_.findings.sound()) return {};
    }
    PAWL_TRY(auto last, Session::start(worker_, load_));
    PAWL_CHECK(last.finish());
    // Everything once more from the beginning, the parts that earlier audits have seen included.
    auto whole = make_audit();
    return check(whole, true);
  }

 private:
  Result<void> round() {
    switch (options_.fault) {
      case Fault::engine:
        return kill_engine();
      case Fault::server:
      case Fault::promote:
        return take_server_away();
      case Fault::stop:
        break;
    }
    return stop_owner();
  }

  Result<void> kill_engine() {
    const auto moment = draw_moment(random_);
    PAWL_TRY(auto session, Session::start(worker_, load_));
    PAWL_TRY(const bool lives, session.run_until(moment));
    if (!lives) return fail(Code::internal, "the worker ended by itself");
    return session.kill();
  }

  /// The engine lives on through it, or is opened again.
  Result<void> take_server_away() {
    const auto moment = draw_moment(random_);
    PAWL_TRY(std::optional<Session> session, Session::start(worker_, load_));
    PAWL_TRY(bool lives, session->run_until(moment));
    if (options_.fault == Fault::server) {
      cluster_->kill_server();
    } else {
      cluster_->fail_over();
    }
    if (lives && random_.below(4) == 0) {
      PAWL_CHECK(session->give_up());
      session.reset();
    }
    if (options_.fault == Fault::server) {
      cluster_->start_server();
    } else {
      cluster_->rejoin();
    }
    // A worker that was just opening the store ends without a server. More than one must not.
    for (int reopened = 0;; ++reopened) {
      if (!session) {
        PAWL_TRY(auto next, Session::start(worker_, load_));
        session.emplace(std::move(next));
      }
      PAWL_TRY(lives, session->run_until({.answers = kAfterwards}));
      if (lives) return session->kill();
      PAWL_CHECK(session->give_up());
      session.reset();
      if (reopened == 2) return fail(Code::internal, "the store cannot be opened again");
    }
  }

  Result<void> stop_owner() {
    auto moment = draw_moment(random_);
    while (moment.after_start) moment = draw_moment(random_);  // it has to be the owner
    PAWL_TRY(auto first, Session::start(worker_, load_));
    PAWL_TRY(bool lives, first.run_until(moment));
    if (!lives) return fail(Code::internal, "the owner ended by itself");
    PAWL_CHECK(first.stop());
    auto taking = worker_;
    taking.take_over = random_.below(2) == 0;
    if (!taking.take_over) cluster_->outwait_lease();
    PAWL_TRY(auto second, Session::start(taking, load_));
    PAWL_TRY(lives, second.run_until({.answers = 1 + random_.below(kAfterwards)}));
    if (!lives) return fail(Code::internal, "the successor ended by itself");
    const auto epoch = cluster_->epoch();
    const auto before = cluster_->entries_before(epoch);
    PAWL_CHECK(first.go_on_fenced());
    PAWL_TRY(lives, second.run_until({.answers = kAfterwards}));
    if (!lives) return fail(Code::internal, "the successor ended by itself");
    if (const auto after = cluster_->entries_before(epoch); after != before) {
      return fail(Code::internal, fmt::format("{} entries of an owner were written after its successor, with "
                                              "epoch {}, had begun",
                                              after - before, epoch));
    }
    return second.kill();
  }

  Audit make_audit() const { return {worker_.directory, options_.fault != Fault::engine}; }

  Result<void> check(Audit& audit, bool complete) {
    report_.acknowledged = load_.acknowledged();
    if (cluster_) cluster_->settle();
    PAWL_TRY(report_.findings,
             audit.check(cluster_ ? cluster_->primary_url() : worker_.store, load_, complete));
    if (!cluster_) return {};
    if (const auto stale = cluster_->stale_entries(); stale != 0)
      report_.findings.problems.push_back(fmt::format("{} entries lie behind those of a later owner", stale));
    return {};
  }

  const DriverOptions& options_;
  Report& report_;
  Random random_;
  Load load_;
  std::optional<Cluster> cluster_;
  WorkerOptions worker_;
  std::optional<Audit> audit_;
};

}  // namespace

Result<void> run_driver(const DriverOptions& options, Report& report) {
  std::signal(SIGPIPE, SIG_IGN);  // a worker that is gone shows by the end of its output
  return Driver(options, report).run();
}

}  // namespace pawl::crash
