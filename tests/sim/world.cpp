// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/world.hpp"

#include <algorithm>

namespace pawl::scenarios {

using namespace std::chrono_literals;

/// Whether a refusal is about the operation, not about the state the server is in.
bool World::is_final(Code code) {
  switch (code) {
    case Code::stopped:
    case Code::outcome_unknown:
    case Code::store_poisoned:
    case Code::store_io:
    case Code::store_corrupt:
    case Code::store_fenced:
    case Code::disk_full:
    case Code::rolled_back:
    case Code::overloaded:
      return false;
    default:
      return true;
  }
}

void World::start() {
  // A crash while the server opens is followed by another try, and so is a failure that may happen.
  for (;;) {
    process_ = &sim_.spawn("server");
    ++server_;
    const bool lives = process_->attempt([this] {
      auto opened_engine =
          open_engine(*process_, machines(*process_), options(),
                      [this](Runtime& runtime, const EngineOptions& given) { return open(runtime, given); });
      if (!opened_engine && may_fail_to_open(opened_engine.error())) return;
      sim_.require(opened_engine.has_value(),
                   opened_engine ? "" : "opening failed: " + opened_engine.error().to_string());
      engine_ = *std::move(opened_engine);
      opened();
      send_open();
    });
    if (lives && engine_) return;
    engine_.reset();
    disk_.process_kill();
  }
}

void World::restart() {
  process_->crash();
  engine_.reset();
  if (chance(2)) {
    disk_.process_kill();
  } else {
    disk_.power_cut(sim::Unsynced::random);
  }
  if (sim_.crashes() >= crashes_allowed_) {
    for (const auto& point : points_) sim_.disarm(point);
  }
  start();
}

void World::run(Duration time) {
  advance(time);
  if (process_->crashed() || is_useless()) replace();
  process_->attempt([this] { send_open(); });
  if (process_->crashed()) restart();
}

void World::settle(const std::function<bool()>& done, std::string_view what) {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const auto server = server_;
    run(500ms);
    // A server that has just opened has not picked up yet what its instances carry.
    if (server == server_ && all_answered() && done()) return check_heads();
  }
  for (const auto& operation : operations_) {
    if (!operation.answered) {
      sim_.require(false, fmt::format("an operation on {} is never answered while {}", operation.key, what));
    }
  }
  sim_.require(false, fmt::format("never: {}", what));
}

std::size_t World::add(std::string key, std::function<Transaction()> make) {
  operations_.push_back({.make = std::move(make), .key = std::move(key)});
  process_->attempt([this] { send(operations_.size() - 1); });
  if (process_->crashed()) restart();
  return operations_.size() - 1;
}

void World::send_open() {
  for (std::size_t number = 0; number < operations_.size(); ++number) {
    if (!operations_[number].answered && operations_[number].sent_to != server_) send(number);
  }
}

void World::send(std::size_t number) {
  if (!engine_ || process_->crashed()) return;
  auto& operation = operations_[number];
  operation.sent_to = server_;
  ++unanswered_[server_];
  auto done = [this, number, server = server_](const Result<std::vector<Instance>>& outcome) {
    --unanswered_[server];
    auto& answered = operations_[number];
    if (outcome) {
      answered.answered = true;
    } else if (is_final(outcome.error().code())) {
      if (!answered.answered) answered.refused = outcome.error();
      answered.answered = true;
    } else if (answered.sent_to == server) {
      answered.sent_to = 0;
    }
  };
  auto transaction = operation.make().request_id(fmt::format("operation {}", number));
  if (chance(2)) {
    submit_inline(*engine_, std::move(transaction), std::move(done));
  } else {
    engine_->submit(std::move(transaction), std::move(done));
  }
}

std::size_t World::unanswered_by(std::uint64_t server) const {
  const auto found = unanswered_.find(server);
  return found == unanswered_.end() ? 0 : found->second;
}

bool World::all_answered() const { return std::ranges::all_of(operations_, &Operation::answered); }

void World::require_sound() {
  const auto problems = engine_->check();
  sim_.require(problems.has_value(), problems ? "" : "checking failed: " + problems.error().to_string());
  sim_.require(problems->empty(), problems->empty() ? "" : "the store is not sound: " + problems->front());
}

}  // namespace pawl::scenarios
