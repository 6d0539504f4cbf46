// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Decorators of a store that change a single behavior.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/engine/open_engine.hpp"
#include "store/store.hpp"

namespace pawl::test {

/// Forwards to the inner store; as thread-safe as that one.
class StoreAround : public Store {
 public:
  explicit StoreAround(std::unique_ptr<Store> inside) : inside_(std::move(inside)) {}

  Result<Seq> apply(const Write& write) override { return inside_->apply(write); }
  Result<void> put(std::span<const Ephemeral> values) override { return inside_->put(values); }
  Result<void> commit() override { return inside_->commit(); }
  bool wants_help() const override { return inside_->wants_help(); }
  void help() override { inside_->help(); }
  Result<void> still_owner() const override { return inside_->still_owner(); }
  bool is_leased() const override { return inside_->is_leased(); }
  bool has_ended() const override { return inside_->has_ended(); }
  StoreInfo info() const override { return inside_->info(); }
  void discard() override { inside_->discard(); }
  Result<void> load(const std::function<void(const StoredHead&)>& visit) override {
    return inside_->load(visit);
  }
  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override {
    return inside_->head_entry(id, seq);
  }
  Result<std::vector<Entry>> history(const InstanceId& id, Seq head, Seq before, std::size_t limit) override {
    return inside_->history(id, head, before, limit);
  }
  Result<std::vector<Entry>> feed(Seq after, std::size_t limit) override {
    return inside_->feed(after, limit);
  }
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) override {
    return inside_->find_request(id);
  }
  Result<std::vector<Ephemeral>> ephemerals(const InstanceId& id) override { return inside_->ephemerals(id); }
  Result<bool> retain(Seq horizon) override { return inside_->retain(horizon); }
  Result<void> forget(std::span<const InstanceId> ids) override { return inside_->forget(ids); }
  Result<Seq> seq_before(Time time) override { return inside_->seq_before(time); }
  Result<void> checkpoint() override { return inside_->checkpoint(); }
  Result<void> backup(const std::string& path, const std::function<void(double)>& progress) override {
    return inside_->backup(path, progress);
  }
  Result<StoreCheck> check() override { return inside_->check(); }
  void stop_queries() override { inside_->stop_queries(); }
  Result<StoreRepair> repair() override { return inside_->repair(); }
  Result<void> execute(std::span<const Sql> statements) override { return inside_->execute(statements); }
  Result<std::vector<std::vector<SqlValue>>> query(const Sql& statement,
                                                   const std::stop_token& stop) override {
    return inside_->query(statement, stop);
  }

 protected:
  std::unique_ptr<Store> inside_;
};

/// The worst possible fault, to show that the tests detect it: acknowledges a batch and commits it only when
/// the next one begins.
class AcknowledgesBeforeCommit final : public StoreAround {
 public:
  using StoreAround::StoreAround;

  Result<Seq> apply(const Write& write) override {
    PAWL_CHECK(catch_up());
    return inside_->apply(write);
  }
  Result<void> put(std::span<const Ephemeral> values) override {
    PAWL_CHECK(catch_up());
    return inside_->put(values);
  }
  Result<void> commit() override {
    behind_ = true;
    return {};
  }

 private:
  Result<void> catch_up() { return std::exchange(behind_, false) ? inside_->commit() : Result<void>{}; }

  bool behind_ = false;
};

/// The state of the lease of `Leased`.
struct LeaseFate {
  bool lapsed = false;  // it has run out but may be renewed
  bool ended = false;   // another owner has taken over
};

/// A store whose lease can run out at any time.
class Leased final : public StoreAround {
 public:
  Leased(std::unique_ptr<Store> inside, const LeaseFate& fate)
      : StoreAround(std::move(inside)), fate_(fate) {}

  bool is_leased() const override { return true; }
  bool has_ended() const override { return fate_.ended; }
  Result<void> still_owner() const override {
    if (fate_.ended) return fail(Code::store_fenced, "another owner has taken over");
    if (fate_.lapsed) return fail(Code::store_fenced, "the lease has run out");
    return {};
  }

 private:
  const LeaseFate& fate_;
};

/// When `Unreadable` fails to read, and with which error.
struct ReadFate {
  std::optional<Code> now{};
  std::optional<Code> after_commit{};  // becomes `now` when the next batch is durable
};

/// A store that cannot be read for a while.
class Unreadable final : public StoreAround {
 public:
  Unreadable(std::unique_ptr<Store> inside, ReadFate& fate) : StoreAround(std::move(inside)), fate_(fate) {}

  Result<void> commit() override {
    PAWL_CHECK(inside_->commit());
    if (fate_.after_commit) fate_.now = std::exchange(fate_.after_commit, std::nullopt);
    return {};
  }
  Result<std::optional<Entry>> head_entry(const InstanceId& id, Seq seq) override {
    if (fate_.now) return fail(*fate_.now, "cannot be read at present");
    return inside_->head_entry(id, seq);
  }
  Result<std::optional<StoredRequest>> find_request(const std::array<std::uint8_t, 16>& id) override {
    if (fate_.now) return fail(*fate_.now, "cannot be read at present");
    return inside_->find_request(id);
  }

 private:
  ReadFate& fate_;
};

/// Whether `Busy` refuses writes, and how many it has refused.
struct BusyFate {
  bool busy = false;
  int asked = 0;
};

/// A store that another program has locked for writing.
class Busy final : public StoreAround {
 public:
  Busy(std::unique_ptr<Store> inside, BusyFate& fate) : StoreAround(std::move(inside)), fate_(fate) {}

  Result<Seq> apply(const Write& write) override {
    PAWL_CHECK(ask());
    return inside_->apply(write);
  }
  Result<void> put(std::span<const Ephemeral> values) override {
    PAWL_CHECK(ask());
    return inside_->put(values);
  }

 private:
  Result<void> ask() {
    if (!fate_.busy) return {};
    ++fate_.asked;
    return fail(Code::rolled_back, "another program writes the file");
  }

  BusyFate& fate_;
};

/// Opens a store inside the decorator `Around`, for `Beginning::opener`.
template <class Around, class Fate>
StoreOpener opens(Fate& fate) {
  return [&fate](Runtime& runtime, const EngineOptions& options) -> Result<std::unique_ptr<Store>> {
    PAWL_TRY(auto store, open_store(runtime, options));
    return std::make_unique<Around>(std::move(store), fate);
  };
}

}  // namespace pawl::test
