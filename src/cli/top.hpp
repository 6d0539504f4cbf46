// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The model and the frames of `pawl top`; top.cpp has the terminal.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal.hpp"
#include "pawl/json.hpp"

namespace pawl::cli {

/// Takes a document of stats per tick, and entries as they arrive. Not thread-safe.
class TopModel {
 public:
  explicit TopModel(std::string name) : name_(std::move(name)) {}

  /// In which order states are shown.
  void note_machines(JsonValue machines);
  void note_entry(JsonValue entry);
  /// Ends the current tick, which took this many seconds.
  void note_stats(JsonValue stats, double seconds);
  /// Shown at the bottom until it is empty.
  void note_problem(std::string text) { problem_ = std::move(text); }

  /// The lines of one frame that fits, the body moved up by `scroll` lines; a scroll too far is made smaller.
  std::vector<std::string> frame(Size size, std::size_t& scroll, const std::string& clock) const;
  /// The whole frame, for output without a terminal.
  std::vector<std::string> whole(Size size, const std::string& clock) const;

 private:
  struct Busy {
    std::uint64_t entries = 0;
    std::string event;
    std::string state;
    bool finished = false;
  };
  /// The entries of one tick.
  struct Tick {
    double seconds = 1;
    std::uint64_t entries = 0;
    std::map<std::pair<std::string, std::string>, std::uint64_t> states;  // (machine, state)
    std::map<std::pair<std::string, std::string>, Busy> instances;        // (machine, key)
  };
  struct Counters {
    std::int64_t transitions = -1;  // -1: not known yet
    std::int64_t commits = 0;
  };

  std::vector<std::string> head(std::size_t columns, const std::string& clock) const;
  std::vector<std::string> body(std::size_t columns) const;
  std::vector<std::string> states(std::size_t columns) const;
  std::vector<std::string> busiest(std::size_t columns) const;

  std::string name_;
  std::string problem_;
  std::deque<Tick> ticks_;  // the newest at the back
  Tick present_;
  Counters last_;
  std::vector<std::pair<std::string, std::string>> order_;  // (machine, state)
  std::deque<double> rates_;
  double commit_rate_ = 0;
  std::map<std::string, std::int64_t> gauges_;
  std::vector<std::pair<std::pair<std::string, std::string>, std::int64_t>> counts_;
};

/// A bar per number, scaled to the highest.
std::string sparkline(const std::deque<double>& numbers);

}  // namespace pawl::cli
