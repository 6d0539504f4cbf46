// SPDX-License-Identifier: Apache-2.0
// Submitting requests, and closing.
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

/// The content of a request: every part of every operation and statement, each prefixed with its length, so
/// that different requests have different contents.
class Content {
 public:
  void text(std::string_view part) { fmt::format_to(std::back_inserter(all_), "{}:{};", part.size(), part); }
  void number(const std::optional<std::int64_t>& number) { text(number ? std::to_string(*number) : "none"); }
  void value(const SqlValue& value) {
    text(std::to_string(value.get().index()));
    std::visit(
        [this]<class T>(const T& held) {
          if constexpr (std::is_same_v<T, std::string>) {
            text(held);
          } else if constexpr (std::is_same_v<T, Blob>) {
            text(held.bytes);
          } else if constexpr (std::is_arithmetic_v<T>) {
            text(fmt::to_string(held));
          }
        },
        value.get());
  }
  std::int64_t digest() const {
    const auto whole = digest16(all_);
    std::int64_t number = 0;
    std::memcpy(&number, whole.data(), sizeof number);
    return number;
  }

 private:
  std::string all_;
};

std::int64_t content_of(const Transaction& transaction) {
  Content content;
  if (transaction.request_content()) {
    content.text("given");
    content.text(*transaction.request_content());
    return content.digest();
  }
  for (const auto& operation : transaction.operations()) {
    content.text(operation.kind == Operation::Kind::create ? "create" : "send");
    for (const auto* part : {&operation.machine, &operation.key, &operation.partition, &operation.event,
                             &operation.json, &operation.payload}) {
      content.text(*part);
    }
    content.number(operation.expected_version);
  }
  for (const auto& statement : transaction.statements()) {
    content.text(statement.text);
    content.number(statement.expect);
    for (const auto& row : statement.rows) {
      content.text(std::to_string(row.size()));
      for (const auto& value : row) content.value(value);
    }
  }
  return content.digest();
}

Result<Target> to_target(const Registry& registry, Operation operation) {
  PAWL_CHECK(check_name("key", operation.key, false));
  PAWL_CHECK(check_name("partition", operation.partition, true));
  PAWL_TRY(const auto machine, registry.find(operation.machine));
  const auto& definition = registry.definition(machine);
  Target target{
      .machine = machine, .id = registry.id(machine, operation.key), .key = std::move(operation.key)};
  if (operation.kind == Operation::Kind::create) {
    CreateInstance create{.data = std::move(operation.json),
                          .partition = std::move(operation.partition),
                          .value = std::move(operation.data)};
    if (create.value == nullptr) {
      PAWL_TRY(create.data, definition.normalise(create.data));
    }
    if (!operation.event.empty()) {
      PAWL_TRY(const auto event, definition.find_event(operation.event));
      create.first = SendEvent{event, std::move(operation.typed), std::move(operation.payload), {}};
    }
    target.command = std::move(create);
  } else {
    PAWL_TRY(const auto event, definition.find_event(operation.event));
    target.command =
        SendEvent{event, std::move(operation.typed), std::move(operation.json), operation.expected_version};
  }
  return target;
}

}  // namespace

EngineCore::EngineCore(Runtime& runtime, Machines machines, EngineOptions options)
    : runtime_(runtime), options_(std::move(options)), registry_(std::move(machines)) {}

EngineCore::~EngineCore() { close(); }

void EngineCore::submit(Transaction transaction, std::optional<Request::PartitionGuard> guard, Done done,
                        bool here) {
  auto request = [&]() -> Result<Request> {
    if (transaction.error_) return fail(*transaction.error_);
    if (transaction.operations_.empty())
      return fail(Code::invalid_argument, "a transaction has at least one operation");
    Request made{.guard = std::move(guard)};
    if (!transaction.request_id_.empty()) {
      PAWL_CHECK(check_name("request id", transaction.request_id_, false));
      made.tag = RequestTag{digest16("request " + transaction.request_id_), content_of(transaction)};
    }
    made.sql = std::move(transaction.statements_);
    for (auto& operation : transaction.operations_) {
      PAWL_TRY(auto target, to_target(registry_, std::move(operation)));
      made.targets.push_back(std::move(target));
    }
    return made;
  }();
  if (!request) return done(fail(std::move(request).error()));
  PAWL_ASSERT(!request->internal, "a caller's request is not an internal one");
  request->done = std::move(done);
  enqueue(*std::move(request), here);
}

Result<std::vector<Instance>> EngineCore::wait_for_outcome(Transaction transaction,
                                                           std::optional<Request::PartitionGuard> guard) {
  return await<std::vector<Instance>>(
      runtime_, [&](auto done) { submit(std::move(transaction), std::move(guard), std::move(done), true); });
}

bool EngineCore::post(Task task) {
  const std::lock_guard lock(queue_mutex_);
  if (stopped_) return false;
  lane_->post(std::move(task));
  return true;
}

void EngineCore::close() {
  {
    std::unique_lock lock(queue_mutex_);
    if (std::exchange(stopped_, true)) return;
    inline_callers_gone_.wait(lock, [this] { return inline_callers_ == 0; });
    PAWL_ASSERT(waiting_ >= queue_.size(), "what is queued waits", waiting_, queue_.size());
  }
  // Handlers that wait for a query are awaited below.
  if (store_) store_->stop_queries();
  // The lane goes first, so that nothing new is decided or started. Then waiting callers are answered, among
  // them jobs, and only then the jobs are awaited.
  lane_owner_.reset();
  std::vector<Request> waiting;
  {
    const std::lock_guard lock(queue_mutex_);
    waiting.swap(queue_);
  }
  // The requests that the lane had taken came first.
  waiting.insert(waiting.begin(),
                 std::make_move_iterator(taken_.begin() + static_cast<std::ptrdiff_t>(taken_position_)),
                 std::make_move_iterator(taken_.end()));
  taken_.clear();
  // Postponed requests came before all others.
  waiting.insert(waiting.begin(), std::make_move_iterator(postponed_.begin()),
                 std::make_move_iterator(postponed_.end()));
  postponed_.clear();
  for (auto& request : waiting) {
    if (request.done) request.done(fail(Code::stopped, "the engine stopped"));
  }
  // Their timers went with the lane.
  end_claims(Error(Code::stopped, "the engine stopped"), nullptr);
  end_watching(Error(Code::stopped, "the engine stopped"), nullptr);
  workers_owner_.reset();
  maintenance_owner_.reset();
  helper_owner_.reset();
  end_waiting(Error(Code::stopped, "the engine stopped"));
  const std::unique_lock closing(closing_mutex_);
  store_.reset();
}

}  // namespace pawl
