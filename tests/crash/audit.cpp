// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/audit.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <utility>
#include <variant>

#include "pawl/codec.hpp"

namespace pawl::crash {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::size_t kShown = 20;  // problems that are kept in words

std::int64_t integer(const SqlValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value.get());
  return number == nullptr ? 0 : *number;
}

}  // namespace

void Audit::problem(std::string text) {
  if (findings_.problems.size() < kShown) findings_.problems.push_back(std::move(text));
}

void Audit::lost(const std::string& text) {
  ++findings_.lost;
  problem("lost: " + text);
}

void Audit::once(int count, Seq seq, const char* what, std::int64_t request) {
  if (count == 1) return;
  ++findings_.doubled;
  problem(fmt::format("doubled: entry {} is {} no. {} of request {}", seq, what, count, request));
}

Result<Findings> Audit::check(const std::string& where, const Load& load, bool complete) {
  // A worker that was killed before it had made the store has acknowledged nothing.
  const bool file = where.starts_with(kSqlite);
  if (load.acknowledged() == 0 && last_ == 0 && file &&
      !std::filesystem::exists(where.substr(kSqlite.size())))
    return findings_;
  auto store = open_store_at({.where = where, .read_only = true, .create = false});
  if (!store && store.error().code() == Code::invalid_argument && load.answers().empty()) return findings_;
  if (!store) return fail(std::move(store).error());
  PAWL_CHECK(read_notes());
  PAWL_CHECK(read_log(**store));
  PAWL_CHECK(compare_heads(**store));
  compare_answers(load);
  compare_banks();
  if (last_ > 0) PAWL_CHECK(compare_rows(**store, complete));
  if (complete) compare_traces();
  if (complete && !load.open().empty())
    problem(fmt::format("{} requests are unanswered", load.open().size()));
  return findings_;
}

Result<void> Audit::read_notes() {
  std::ifstream file(directory_ + "/notes");
  file.seekg(static_cast<std::streamoff>(notes_read_));
  for (std::string line; std::getline(file, line) && !file.eof();) {
    notes_read_ += line.size() + 1;
    if (notes_.insert(line).second) continue;
    ++findings_.doubled;
    problem("an attempt was made twice: " + line);
  }
  return {};
}

Result<void> Audit::read_log(Store& store) {
  while (true) {
    PAWL_TRY(const auto entries, store.feed(last_, 10'000));
    if (entries.empty()) return {};
    for (const auto& entry : entries) {
      const bool follows = gaps_ ? entry.seq > last_ : entry.seq == last_ + 1;
      if (!follows) problem(fmt::format("the log goes from {} to {}", last_, entry.seq));
      if (entry.at <= last_at_) problem(fmt::format("log time goes back at {}", entry.seq));
      last_ = entry.seq;
      last_at_ = entry.at;
      PAWL_CHECK(take(entry));
    }
  }
}

Result<void> Audit::take(const Entry& entry) {
  auto& instance = instances_[entry.id];
  if (entry.version != instance.version + 1 || entry.prev != instance.seq) {
    problem(fmt::format("entry {}: version {} after {}, previous {} instead of {}", entry.seq, entry.version,
                        instance.version, entry.prev, instance.seq));
  }
  instance.version = entry.version;
  instance.seq = entry.seq;
  if (entry.kind == EntryKind::created) {
    if (!keys_.emplace(entry.key, entry.id).second) problem(entry.key + " was created twice");
    instance.machine = entry.machine;
    instance.partition = entry.partition;
    instance.created = entry.seq;
    instance.sum = entry.machine == "account" ? kOpeningBalance : 0;
  }
  return instance.machine == "account" ? take_account(entry, instance) : take_counter(entry, instance);
}

Result<void> Audit::take_counter(const Entry& entry, Instance& instance) {
  if (entry.event == "Increment" && entry.kind == EntryKind::fired) {
    PAWL_TRY(const auto increment, decode<Increment>(entry.payload));
    auto& traces = traces_[increment.request];
    once(++traces.increments, entry.seq, "increment", increment.request);
    traces.also = increment.also;
    traces.seq = entry.seq;
    traces.version = entry.version;
    ++instance.sum;
    ++increments_;
    increments_sum_ += increment.request;
  } else if (entry.event == "Rung") {
    PAWL_TRY(const auto rung, decode<Rung>(entry.payload));
    once(++traces_[rung.request].rung, entry.seq, "timer", rung.request);
  } else if (entry.event == "Noted") {
    PAWL_TRY(const auto noted, decode<Noted>(entry.payload));
    once(++traces_[noted.request].noted, entry.seq, "work", noted.request);
    const auto line = fmt::format("{} {}", noted.line, noted.attempt);
    if (!notes_.contains(line)) problem("work was consumed without its side effect: " + line);
  } else if (entry.event == "Posted" && entry.kind == EntryKind::fired) {
    PAWL_TRY(const auto posted, decode<Posted>(entry.payload));
    once(++traces_[posted.request].posted, entry.seq, "message", posted.request);
    ++instance.sum;
  }
  PAWL_TRY(const auto data, decode<Tally>(entry.data));
  if (data.sum != instance.sum)
    problem(fmt::format("entry {}: the sum is {} instead of {}", entry.seq, data.sum, instance.sum));
  return {};
}

Result<void> Audit::take_account(const Entry& entry, Instance& instance) {
  if (entry.event == "Withdraw") {
    PAWL_TRY(const auto withdraw, decode<Withdraw>(entry.payload));
    auto& traces = traces_[withdraw.request];
    once(++traces.withdrawn, entry.seq, "withdrawal", withdraw.request);
    traces.seq = entry.seq;
    traces.version = entry.version;
    instance.sum -= withdraw.amount;
  } else if (entry.event == "Deposit") {
    PAWL_TRY(const auto deposit, decode<Deposit>(entry.payload));
    auto& traces = traces_[deposit.request];
    once(++traces.deposited, entry.seq, "deposit", deposit.request);
    if (traces.withdrawn != 1 || traces.seq + 1 != entry.seq)
      problem(fmt::format("entry {}: a deposit of transfer {} alone", entry.seq, deposit.request));
    instance.sum += deposit.amount;
  }
  PAWL_TRY(const auto data, decode<Balance>(entry.data));
  if (data.amount != instance.sum || data.amount < 0)
    problem(fmt::format("entry {}: the balance is {} instead of {}", entry.seq, data.amount, instance.sum));
  return {};
}

Result<void> Audit::compare_heads(Store& store) {
  std::size_t heads = 0;
  PAWL_CHECK(store.load([&](const StoredHead& head) {
    ++heads;
    const auto found = instances_.find(head.id);
    if (found == instances_.end() || found->second.version != head.version || found->second.seq != head.seq)
      problem(fmt::format("the head of {} differs from its newest entry", head.key));
  }));
  if (heads != instances_.size()) problem(fmt::format("{} heads for {} instances", heads, instances_.size()));
  return {};
}

void Audit::compare_answers(const Load& load) {
  for (; answers_read_ < load.answers().size(); ++answers_read_)
    compare_answer(load, load.answers()[answers_read_]);
}

void Audit::compare_answer(const Load& load, const Answer& answer) {
  const auto& request = load.request(answer.number);
  Seq seq = 0;
  std::int64_t version = 0;
  if (request.kind == Kind::increment || request.kind == Kind::transfer) {
    if (const auto found = traces_.find(answer.number); found != traces_.end()) {
      seq = found->second.seq;
      version = found->second.version;
    }
  } else if (const auto found = keys_.find(request.key); found != keys_.end()) {
    seq = instances_[found->second].created;
    version = 1;
  }
  const auto name = fmt::format("request {} ({})", answer.number, request.key);
  if (answer.outcome == Outcome::refused) {
    if (seq != 0) problem(fmt::format("{} was refused, but is entry {}", name, seq));
  } else if (seq == 0) {
    lost(fmt::format("{}, acknowledged as entry {}", name, answer.seq));
  } else if (seq != answer.seq || version != answer.version) {
    lost(fmt::format("{}, acknowledged as entry {} version {}, is entry {} version {}", name, answer.seq,
                     answer.version, seq, version));
  }
}

void Audit::compare_banks() {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> banks;
  for (const auto& [id, instance] : instances_) {
    if (instance.machine != "account") continue;
    banks[instance.partition].first += instance.sum;
    banks[instance.partition].second += kOpeningBalance;
  }
  for (const auto& [bank, sums] : banks) {
    if (sums.first != sums.second)
      problem(fmt::format("{} holds {} instead of {}", bank, sums.first, sums.second));
  }
}

/// The application's rows are those of the increments in the log: by number and sum, or one by one.
Result<void> Audit::compare_rows(Store& store, bool complete) {
  PAWL_TRY(const auto sums,
           store.query({.text = "SELECT count(*), coalesce(sum(request), 0) FROM increments"}));
  if (integer(sums.front()[0]) != increments_ || integer(sums.front()[1]) != increments_sum_) {
    problem(fmt::format("{} application rows (sum {}) for {} increments (sum {})", integer(sums.front()[0]),
                        integer(sums.front()[1]), increments_, increments_sum_));
  }
  if (!complete) return {};
  PAWL_TRY(const auto rows, store.query({.text = "SELECT request FROM increments"}));
  for (const auto& row : rows) {
    const auto found = traces_.find(integer(row[0]));
    if (found == traces_.end() || found->second.increments != 1)
      problem(fmt::format("an application row for request {}, which is not in the log", integer(row[0])));
  }
  return {};
}

void Audit::compare_traces() {
  for (const auto& [request, traces] : traces_) {
    const auto want = [&](int count, Also also, const char* what) {
      const int expected = traces.also == also ? 1 : 0;
      if (count < expected) lost(fmt::format("the {} of request {}", what, request));
      if (count > expected && expected == 0) problem(fmt::format("request {}: {} unasked", request, what));
    };
    want(traces.rung, Also::timer, "timer");
    want(traces.noted, Also::work, "work");
    want(traces.posted, Also::message, "message");
    if (traces.withdrawn != traces.deposited) problem(fmt::format("request {} is half a transfer", request));
  }
}

}  // namespace pawl::crash
