// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "tests/sim/scenarios.hpp"

namespace pawl::scenarios {
namespace {

using namespace std::chrono_literals;

constexpr int kRequests = 6;
constexpr std::uint64_t kCrashes = 8;  // then the faults end, so that the run does

struct Record {
  int request;
  Time at;
};

/// Survives its process. What was written but not synced may survive or not, as the seed has it.
struct Disk {
  std::vector<Record> synced;
  std::vector<Record> unsynced;

  void sync() {
    synced.insert(synced.end(), unsynced.begin(), unsynced.end());
    unsynced.clear();
  }
  void lose_power(sim::Simulation& sim) {
    unsynced.resize(sim.draw(unsynced.size() + 1));
    sync();
  }
};

/// Writes each request once, then answers. Repeated requests are answered from what is known.
class Counter {
 public:
  using Answer = std::function<void(int request)>;

  Counter(sim::Process& process, Disk& disk, Answer answer, bool answers_early)
      : process_(process), disk_(disk), answer_(std::move(answer)), answers_early_(answers_early) {
    for (const Record& record : disk_.synced) {
      counted_.insert(record.request);
      last_ = std::max(last_, record.at);
    }
  }

  void increment(int request) {
    lane_->post([this, request] { decide(request); });
  }

 private:
  void decide(int request) {
    if (counted_.contains(request)) return answer(request);
    if (!writing_.insert(request).second) return;  // answered when it is written
    last_ = std::max(last_, process_.now());       // the log's time does not go back when the clock does
    const Record record{request, last_};
    if (!workers_->submit([this, record](std::stop_token) { write(record); })) writing_.erase(request);
    if (answers_early_) answer(request);
  }

  void write(const Record& record) {
    if (process_.fault("disk.write")) {
      return lane_->post([this, record] { writing_.erase(record.request); });
    }
    disk_.unsynced.push_back(record);
    // A failed sync leaves open what is on the disk; only starting again tells.
    if (process_.fault("disk.sync")) process_.crash();
    disk_.sync();
    lane_->post([this, record] {
      writing_.erase(record.request);
      counted_.insert(record.request);
      answer(record.request);
    });
  }

  void answer(int request) {
    if (!process_.fault("answer")) answer_(request);
  }

  sim::Process& process_;
  Disk& disk_;
  Answer answer_;
  bool answers_early_;
  std::set<int> counted_;
  std::set<int> writing_;
  Time last_{};
  std::unique_ptr<Lane> lane_ = process_.open_lane("decide");
  // One thread: the disk's order is that of the decisions.
  std::unique_ptr<ThreadPool> workers_ = process_.open_thread_pool("disk", {.threads = 1, .queue = 2});
};

/// The client, the disk and one server after the other.
class CounterWorld {
 public:
  CounterWorld(sim::Simulation& sim, bool answers_early) : sim_(sim), answers_early_(answers_early) {
    start_server();
    for (int request = 0; request < kRequests; ++request) {
      lane_->after(random_delay(100ms), [this, request] { send(request); });
    }
    lane_->after(random_delay(100ms), [this] { jump(); });
  }

  void run() {
    while (acknowledged_.size() < kRequests) {
      sim_.run_until([this] { return process_->crashed() || acknowledged_.size() == kRequests; });
      if (process_->crashed()) restart();
    }
    if (sim_.draw(2) == 0) process_->crash();
    if (process_->crashed()) restart();
    check();
  }

 private:
  Duration random_delay(Duration most) {
    return Duration{sim_.draw(static_cast<std::uint64_t>(most.count()))};
  }

  void start_server() {
    process_ = &sim_.spawn("server");
    const auto answer = [this](int request) {
      lane_->after(random_delay(5ms), [this, request] { acknowledged_.insert(request); });
    };
    server_ = std::make_unique<Counter>(*process_, disk_, answer, answers_early_);
  }

  void restart() {
    server_.reset();
    disk_.lose_power(sim_);
    if (sim_.crashes() >= kCrashes) {
      for (const char* point : {"disk.write", "disk.sync", "answer"}) sim_.disarm(point);
    }
    start_server();
  }

  /// Sends until it is acknowledged; the server may be down, or the answer lost.
  void send(int request) {
    if (acknowledged_.contains(request)) return;
    server_->increment(request);
    lane_->after(20ms + random_delay(20ms), [this, request] { send(request); });
  }

  void jump() { process_->jump_clock(random_delay(2h) - 1h); }

  void check() {
    std::set<int> counted;
    Time last{};
    for (const Record& record : disk_.synced) {
      sim_.require(counted.insert(record.request).second, "an increment was counted twice");
      sim_.require(record.at >= last, "the time of the log went back");
      last = record.at;
    }
    sim_.require(std::ranges::includes(counted, acknowledged_), "an acknowledged increment was lost");
  }

  sim::Simulation& sim_;
  bool answers_early_;
  sim::Process& client_ = sim_.spawn("client");
  Disk disk_;
  std::set<int> acknowledged_;
  std::unique_ptr<Lane> lane_ = client_.open_lane("requests");
  sim::Process* process_ = nullptr;
  std::unique_ptr<Counter> server_;
};

Result<void> run_counter(sim::Simulation& sim, bool answers_early) {
  sim.arm("disk.write", sim::fail_with_ppm(100'000));
  sim.arm("disk.write", sim::crash_with_ppm(50'000));
  sim.arm("disk.sync", sim::fail_with_ppm(50'000));
  sim.arm("disk.sync", sim::crash_with_ppm(50'000));
  sim.arm("answer", sim::fail_with_ppm(100'000));
  sim.arm("answer", sim::crash_with_ppm(50'000));
  CounterWorld(sim, answers_early).run();
  return {};
}

}  // namespace

Result<void> counter(sim::Simulation& sim) { return run_counter(sim, false); }
Result<void> counter_that_answers_early(sim::Simulation& sim) { return run_counter(sim, true); }

}  // namespace pawl::scenarios
