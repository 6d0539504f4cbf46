// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/load.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace pawl::crash {
namespace {

constexpr std::int64_t kCounters = 200;
constexpr std::int64_t kInboxes = 16;
constexpr std::int64_t kBanks = 4;
constexpr std::int64_t kAccounts = 8;  // of each bank

std::string account_key(std::int64_t bank, std::int64_t number) {
  return fmt::format("account-{}-{}", bank, number);
}

}  // namespace

const Request& Load::next() {
  auto request = draw();
  open_.emplace(request.number, request);
  return all_.emplace_back(std::move(request));
}

Request Load::draw() {
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  };
  Request made{.number = static_cast<std::int64_t>(all_.size()) + 1};
  auto place = made.number - 1;
  if (place < kCounters) {
    made.kind = Kind::create_counter;
    made.key = fmt::format("counter-{}", place);
    return made;
  }
  place -= kCounters;
  if (place < kInboxes) {
    made.kind = Kind::create_inbox;
    made.key = fmt::format("inbox-{}", place);
    return made;
  }
  place -= kInboxes;
  if (place < kBanks * kAccounts) {
    made.kind = Kind::create_account;
    made.key = account_key(place / kAccounts, place % kAccounts);
    made.partition = fmt::format("bank-{}", place / kAccounts);
    return made;
  }
  if (below(4) == 0) {
    const auto bank = below(kBanks);
    const auto from = below(kAccounts);
    made.kind = Kind::transfer;
    made.key = account_key(bank, from);
    made.to = account_key(bank, (from + 1 + below(kAccounts - 1)) % kAccounts);
    made.amount = 1 + below(kOpeningBalance);  // now and then more than there is: refused
    return made;
  }
  constexpr std::array kAlso{Also::nothing, Also::nothing, Also::nothing,
                             Also::timer,   Also::work,    Also::message};
  made.key = fmt::format("counter-{}", below(kCounters));
  made.also = kAlso.at(static_cast<std::size_t>(below(kAlso.size())));
  if (made.also == Also::timer) made.after_ms = below(300);  // many are due only after the next kill
  if (made.also == Also::message) made.to = fmt::format("inbox-{}", below(kInboxes));
  return made;
}

Result<void> Load::note(const Answer& answer) {
  if (answer.outcome == Outcome::failed)
    return fail(Code::internal, fmt::format("request {} failed: {}", answer.number, answer.error));
  if (answer.outcome == Outcome::unknown || answer.outcome == Outcome::reopen) return {};
  const bool first = open_.erase(answer.number) == 1;
  if (!first && late_.erase(answer.number) != 1)
    return fail(Code::internal, fmt::format("request {} was answered twice", answer.number));
  answers_.push_back(answer);
  if (first && answer.outcome == Outcome::done) ++acknowledged_;
  return {};
}

Result<void> Load::note_late(const Answer& answer) {
  if (answer.outcome == Outcome::failed)
    return fail(Code::internal, fmt::format("request {} failed: {}", answer.number, answer.error));
  if (answer.outcome != Outcome::done) return {};
  answers_.push_back(answer);
  if (open_.erase(answer.number) != 1) return {};
  late_.insert(answer.number);
  ++acknowledged_;
  return {};
}

}  // namespace pawl::crash
