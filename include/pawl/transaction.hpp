// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Operations on instances of one partition that become durable together or not at all.
///
///     engine->commit(pawl::Transaction{}
///                        .send<replica>("a", Demote{})
///                        .send<replica>("b", Promote{})
///                        .sql({.text = "UPDATE route SET target = ?1", .rows = {{"b"}}, .expect = 1})
///                        .request_id("failover-17"));
///
/// A value; building it does nothing. Encoding errors are kept and returned by `commit`. An instance may be
/// named once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/machine.hpp"
#include "pawl/sql.hpp"

namespace pawl {

struct CreateOptions {
  std::string partition{};   ///< instances with the same one can be changed together; default: alone
  std::string request_id{};  ///< a repeat with the same id and content returns the first outcome
  std::string machine{};     ///< if the table was added under another name than its own
};

struct SendOptions {
  std::optional<std::int64_t> expected_version{};  ///< any other version is a `version_conflict`
  std::string request_id{};
  std::string machine{};  ///< if the table was added under another name than its own
};

/// One operation, by names. `typed` and `data` hold the event and the data themselves if they came from C++,
/// which saves decoding them.
struct Operation {
  enum class Kind : std::uint8_t { create, send };
  Kind kind = Kind::send;
  std::string machine;
  std::string key;
  std::string partition{};
  std::string event{};
  std::string json = "{}";  ///< data of a create, payload of a send
  std::shared_ptr<const void> typed{};
  std::optional<std::int64_t> expected_version{};
  std::string payload{};  ///< of the first event of a create, if it has one
  std::shared_ptr<const void> data{};
};

/// Not thread-safe while it is built.
class Transaction {
 public:
  /// Creates an instance with this data.
  template <const auto& M>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved from
  Transaction&& create(std::string key, DataOf<M> data = {}, CreateOptions options = {}) && {
    if (auto json = keep(encode(data))) {
      add({.kind = Operation::Kind::create,
           .machine = name_of<M>(std::move(options.machine)),
           .key = std::move(key),
           .partition = std::move(options.partition),
           .json = *std::move(json),
           .data = std::make_shared<const DataOf<M>>(std::move(data))},
          std::move(options.request_id));
    }
    return std::move(*this);
  }

  /// Creates an instance with this data and sends it its first event, in one entry of the log.
  template <const auto& M, class E>
  Transaction&& begin(std::string key, DataOf<M> data, E event, CreateOptions options = {}) && {
    static_assert(detail::knows_event<M, E>, "no transition of this machine takes an event of this type");
    auto payload = keep(encode(event));
    if (!payload) return std::move(*this);
    const auto before = operations_.size();
    (void)std::move(*this).template create<M>(std::move(key), std::move(data), std::move(options));
    if (operations_.size() == before) return std::move(*this);
    auto& made = operations_.back();
    made.event = std::string(event_name<M, E>());
    made.payload = *std::move(payload);
    made.typed = std::make_shared<const E>(std::move(event));
    return std::move(*this);
  }

  /// Sends an event to an instance.
  template <const auto& M, class E>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): it is moved from
  Transaction&& send(std::string key, E event, SendOptions options = {}) && {
    static_assert(detail::knows_event<M, E>, "no transition of this machine takes an event of this type");
    if (auto json = keep(encode(event))) {
      add({.kind = Operation::Kind::send,
           .machine = name_of<M>(std::move(options.machine)),
           .key = std::move(key),
           .event = std::string(event_name<M, E>()),
           .json = *std::move(json),
           .typed = std::make_shared<const E>(std::move(event)),
           .expected_version = options.expected_version},
          std::move(options.request_id));
    }
    return std::move(*this);
  }

  /// An operation by names, for example from a network request.
  Transaction&& operation(Operation operation) && {
    operation.typed.reset();
    operation.data.reset();
    add(std::move(operation), {});
    return std::move(*this);
  }

  /// A statement on the application's tables. With `expect`, the transaction fails if it affects another
  /// number of rows.
  Transaction&& sql(Sql statement) && {
    statements_.push_back(std::move(statement));
    return std::move(*this);
  }

  /// A repeat with the same id and content returns the first outcome instead of doing it again.
  Transaction&& request_id(std::string id) && {
    request_id_ = std::move(id);
    return std::move(*this);
  }
  /// The same, for operations that differ each time, for example in a timestamp: `content` must be equal in a
  /// repeat, which must name the same instances.
  Transaction&& request_id(std::string id, std::string content) && {
    request_id_ = std::move(id);
    request_content_ = std::move(content);
    return std::move(*this);
  }

  const std::vector<Operation>& operations() const { return operations_; }
  const std::vector<Sql>& statements() const { return statements_; }
  const std::string& request_id() const { return request_id_; }
  const std::optional<std::string>& request_content() const { return request_content_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  friend class EngineCore;

  template <const auto& M>
  static std::string name_of(std::string other) {
    return other.empty() ? std::string(M.traits.name) : std::move(other);
  }
  void add(Operation operation, std::string request) {
    operations_.push_back(std::move(operation));
    if (!request.empty()) request_id_ = std::move(request);
  }
  std::optional<std::string> keep(Result<std::string> text) {
    if (text) return *std::move(text);
    if (!error_) error_ = std::move(text).error();
    return std::nullopt;
  }

  std::vector<Operation> operations_;
  std::vector<Sql> statements_;
  std::string request_id_;
  std::optional<std::string> request_content_;  // empty: the operations and statements
  std::optional<Error> error_;
};

}  // namespace pawl
