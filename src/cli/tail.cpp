// SPDX-License-Identifier: Apache-2.0
// pawl tail: the log, live.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"

namespace pawl::cli {
namespace {

constexpr Duration kGlance = std::chrono::seconds(1);

/// One line per entry. Columns grow with their content, because later entries are unknown.
class Lines {
 public:
  std::string line(JsonValue entry) {
    const auto finished = entry.find("finished");
    const auto kind = text_of(entry, "kind");
    auto what = text_of(entry, "event");
    if (what.empty()) what = kind;
    const auto at = text_of(entry, "at");
    const auto clock = at.size() > 23 ? at.substr(11, 12) : at;  // the day is in the JSON
    std::string made = paint(printable(clock), Style::dim);
    made += "  " + cell(0, text_of(entry, "machine"), Style::plain);
    made += "  " + cell(1, text_of(entry, "key"), Style::key);
    made += "  " + cell(2, what, kind == "fired" ? Style::plain : Style::dim);
    made += "  → " +
            cell(3, text_of(entry, "state"), state_style(finished && finished->as_boolean().value_or(false)));
    return made + paint(fmt::format("  v{}", number_of(entry, "version")), Style::dim);
  }

 private:
  std::string cell(std::size_t column, std::string_view text, Style style) {
    constexpr std::size_t kWidest = 40;
    const auto shown = printable(text);
    const auto width = columns(shown);
    widths_[column] = std::max(widths_[column], std::min(width, kWidest));
    return paint(shown, style) + std::string(widths_[column] - std::min(width, widths_[column]), ' ');
  }

  std::array<std::size_t, 4> widths_{8, 8, 8, 8};
};

}  // namespace

int run_tail(const Common& common, const TailArguments& arguments) {
  const auto source = open_source(common.source);
  if (!source) return report(source.error());
  const auto feed = (*source)->follow(arguments.query, [](const std::string& text) { note(text); });
  if (!feed) return report(feed.error());
  Lines lines;
  std::size_t shown = 0;
  while (true) {
    const auto entries = (*feed)->next(kGlance);
    if (!entries) return report(entries.error());
    for (const auto& entry : *entries) {
      const auto document = parse_answer(entry);
      if (!document) return report(document.error());
      if (common.json) {
        fmt::print("{}\n", inert_json(document->root().to_text()));
      } else {
        fmt::print("{}\n", lines.line(document->root()));
      }
      if (++shown == arguments.limit) return kOk;
    }
    // Flushed for readers of a pipe; if the reader is gone, this ends.
    if (std::fflush(stdout) != 0) return kFailed;
  }
}

}  // namespace pawl::cli
