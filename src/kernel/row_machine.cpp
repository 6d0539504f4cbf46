// SPDX-License-Identifier: Apache-2.0
#include "pawl/row_machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pawl::detail {
namespace {

/// Doubles the quote character inside, as SQL wants it.
std::string quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (const char c : text) {
    if (c == quote) out += quote;
    out += c;
  }
  return out + quote;
}

std::string value_of(std::string_view state, std::string_view null_state) {
  return !null_state.empty() && state == null_state ? "NULL" : quoted(state, '\'');
}

}  // namespace

Error moved_meanwhile(std::string_view machine, std::string_view key, std::string_view state,
                      std::string_view event) {
  return {Code::version_conflict,
          fmt::format("{} \"{}\" is {}, which accepts {}: it changed meanwhile, try again", machine, key,
                      state, event)};
}

Error unknown_status(std::string_view machine, std::string_view state) {
  return {Code::unknown_state, fmt::format("{} has no state \"{}\"", machine, state)};
}

std::string status_update(const StatusColumn& where, const std::vector<StatusMove>& moves,
                          std::string_view null_state) {
  const auto column = quoted(where.column, '"');
  const auto is_null = [&](const StatusMove& move) { return !null_state.empty() && move.from == null_state; };

  std::string target;
  const bool one_target =
      std::ranges::all_of(moves, [&](const StatusMove& move) { return move.to == moves[0].to; });
  if (one_target) {
    target = value_of(moves[0].to, null_state);
  } else {
    target = "CASE";
    for (const auto& move : moves) {
      const auto condition =
          is_null(move) ? column + " IS NULL" : fmt::format("{} = {}", column, quoted(move.from, '\''));
      target += fmt::format(" WHEN {} THEN {}", condition, value_of(move.to, null_state));
    }
    target += " END";
  }

  std::vector<std::string> sources;
  for (const auto& move : moves) {
    if (!is_null(move)) sources.push_back(quoted(move.from, '\''));
  }
  auto condition =
      sources.empty() ? std::string{} : fmt::format("{} IN ({})", column, fmt::join(sources, ", "));
  if (std::ranges::any_of(moves, is_null)) {
    condition =
        condition.empty() ? column + " IS NULL" : fmt::format("({} OR {} IS NULL)", condition, column);
  }
  return fmt::format("UPDATE {} SET {} = {} WHERE {} = ?1 AND {}", quoted(where.table, '"'), column, target,
                     quoted(where.key, '"'), condition);
}

}  // namespace pawl::detail
