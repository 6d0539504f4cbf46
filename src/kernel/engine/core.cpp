// SPDX-License-Identifier: Apache-2.0
// Handing requests in, opening and closing.
#include "kernel/engine/core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"

namespace pawl {
namespace {

constexpr std::size_t kKeyBytes = 512;

Result<void> check_name(std::string_view what, std::string_view text, bool may_be_empty) {
  if (text.empty() && may_be_empty) return {};
  if (text.empty() || text.size() > kKeyBytes || !is_utf8(text) ||
      text.find('\0') != std::string_view::npos) {
    return fail(Code::invalid_argument,
                fmt::format("a {} is UTF-8 text of 1 to {} bytes without NUL; this one has {} bytes", what,
                            kKeyBytes, text.size()));
  }
  return {};
}

/// What makes two requests the same: every operation and statement, each part with its length in front.
std::int64_t content_of(const Transaction& transaction) {
  std::string all;
  const auto add = [&](std::string_view part) { all += fmt::format("{}:{};", part.size(), part); };
  for (const auto& operation : transaction.operations()) {
    add(operation.kind == Operation::Kind::create ? "create" : "send");
    for (const std::string_view part :
         {std::string_view(operation.machine), std::string_view(operation.key),
          std::string_view(operation.partition), std::string_view(operation.event),
          std::string_view(operation.json)}) {
      add(part);
    }
  }
  for (const auto& statement : transaction.statements()) add(statement.text);
  const auto digest = digest16(all);
  std::int64_t content = 0;
  std::memcpy(&content, digest.data(), sizeof content);
  return content;
}

Result<Target> to_target(const Registry& registry, Operation operation) {
  PAWL_CHECK(check_name("key", operation.key, false));
  PAWL_CHECK(check_name("partition", operation.partition, true));
  PAWL_TRY(const auto machine, registry.find(operation.machine));
  const auto& definition = registry.definition(machine);
  Target target{
      .machine = machine, .id = registry.id(machine, operation.key), .key = std::move(operation.key)};
  if (operation.kind == Operation::Kind::create) {
    PAWL_TRY(auto data, definition.normalise(operation.json));
    target.happening = CreateInstance{std::move(data), std::move(operation.partition)};
  } else {
    PAWL_TRY(const auto event, definition.find_event(operation.event));
    target.happening =
        SendEvent{event, std::move(operation.typed), std::move(operation.json), operation.expected_version};
  }
  return target;
}

}  // namespace

EngineCore::EngineCore(Runtime& runtime, Machines machines, EngineOptions options)
    : runtime_(runtime), options_(std::move(options)), registry_(std::move(machines)) {}

EngineCore::~EngineCore() { close(); }

void EngineCore::submit(Transaction transaction, std::optional<Request::PartitionGuard> guard, Done done) {
  auto request = [&]() -> Result<Request> {
    if (transaction.error_) return fail(*transaction.error_);
    if (transaction.operations_.empty())
      return fail(Code::invalid_argument, "a transaction has at least one operation");
    Request made{.sql = std::move(transaction.statements_), .guard = std::move(guard)};
    if (!transaction.request_id_.empty()) {
      PAWL_CHECK(check_name("request id", transaction.request_id_, false));
      made.tag = RequestTag{digest16("request " + transaction.request_id_), content_of(transaction)};
    }
    for (auto& operation : transaction.operations_) {
      PAWL_TRY(auto target, to_target(registry_, std::move(operation)));
      made.targets.push_back(std::move(target));
    }
    return made;
  }();
  if (!request) return done(fail(std::move(request).error()));
  request->done = std::move(done);
  enqueue(*std::move(request));
}

Result<std::vector<Instance>> EngineCore::wait_for_outcome(Transaction transaction,
                                                           std::optional<Request::PartitionGuard> guard) {
  struct Slot {
    Gate gate;
    Result<std::vector<Instance>> outcome =
        fail(Code::stopped, "the engine stopped before the outcome was known");
  };
  // Shared with the callback: after a simulated crash the waiter is gone before the lane's last task.
  auto slot = std::make_shared<Slot>();
  submit(std::move(transaction), std::move(guard), [slot](Result<std::vector<Instance>> outcome) {
    slot->outcome = std::move(outcome);
    slot->gate.open();
  });
  runtime_.wait(slot->gate);
  return std::move(slot->outcome);
}

bool EngineCore::post(Task task) {
  const std::lock_guard lock(queue_mutex_);
  if (stopped_) return false;
  lane_->post(std::move(task));
  return true;
}

void EngineCore::close() {
  {
    const std::lock_guard lock(queue_mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  // The lane goes first, so that nothing new is decided or started. Then those who wait are answered, jobs
  // among them, and only then the jobs are awaited.
  lane_owner_.reset();
  std::deque<Request> waiting;
  {
    const std::lock_guard lock(queue_mutex_);
    waiting.swap(queue_);
  }
  for (auto& request : waiting) {
    if (request.done && !request.internal) request.done(fail(Code::stopped, "the engine stopped"));
  }
  workers_owner_.reset();
  maintenance_owner_.reset();
  const std::lock_guard lock(waiters_mutex_);
  for (const auto& gate : entry_waiters_) gate->open();
  for (const auto& [id, waiter] : state_waiters_) waiter.gate->open();
  entry_waiters_.clear();
  const std::unique_lock closing(closing_mutex_);
  store_.reset();
}

}  // namespace pawl
