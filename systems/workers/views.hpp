// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The JSON objects of the API for workers.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/engine.hpp"
#include "pawl/supervisor.hpp"
#include "workers/config/diff.hpp"
#include "workers/config/problem.hpp"
#include "workers/process/process.hpp"
#include "workers/recent_history.hpp"
#include "workers/secrets.hpp"

namespace pawl::workers {

struct NodeView {
  std::string path;
  std::string name;
  std::string type;
  std::string parent;
  std::string state;
  std::string phase;
  std::string reason;
  std::string health;
  std::string problem;
  std::string intent;
  double in_state_seconds = 0;
  std::optional<double> observed_seconds_ago{};
  std::string action;
  std::uint32_t failures = 0;
  std::optional<double> next_try_seconds{};
  bool restarting = false;
  std::uint32_t incarnation = 1;
  std::int64_t transitions = 0;
  std::uint64_t children = 0;
  std::uint64_t children_healthy = 0;
};

struct ProblemView {
  std::string file;
  int line = 1;
  std::string key;
  std::string problem;
  std::string expected;
  std::string actual;
  std::string suggestion;
  std::string text;  ///< everything in one line
};

struct NodeList {
  std::int64_t version = 0;  ///< of the tree
  std::string file;          ///< the watched file; empty if there is none
  std::vector<ProblemView> problems{};
  std::uint64_t total = 0;
  std::vector<NodeView> workers{};  ///< parents before their children
};

struct NodeDetail {
  NodeView worker;
  std::int64_t desired_version = 0;
  Json desired{};
  Json observed{};
  std::string config;
  std::map<std::string, Json> user_variables{};
  std::map<std::string, Json> global_variables{};
  std::vector<std::string> child_paths{};
  std::uint32_t collector_restarts = 0;
  bool has_logs = false;
  std::vector<EventView> history{};  ///< newest first
};

struct LogLineView {
  std::string at;
  bool error = false;
  bool cut = false;
  std::string text;
};
struct LogView {
  std::vector<LogLineView> lines{};
};

struct TreeView {
  std::int64_t version = 0;
  std::string yaml;
};

struct ChangeView {
  std::string change;  ///< added, removed, changed or variable
  std::string name;
};
struct DiffView {
  std::int64_t version = 0;  ///< of the tree that the file was compared with
  bool differs = false;
  std::string text;
  std::vector<ChangeView> changes{};
};

struct AppliedView {
  std::int64_t version = 0;
  bool changed = false;
  std::string text;  ///< the difference
};

NodeView view_worker(const WorkerView& worker);
NodeDetail view_detail(const WorkerView& worker, const RecentHistory& history);
/// Hides what roles below operator do not see: secrets, and all texts about an earlier configuration, whose
/// secrets are not known any more.
void hide_secrets(NodeView& worker, const Secrets& secrets, const RecentHistory& history);
void hide_secrets(NodeDetail& detail, const Secrets& secrets, const RecentHistory& history);
/// Keeps only the position of a mistake.
void hide_secrets(ProblemView& problem);
ProblemView view_problem(const ConfigProblem& problem);
DiffView view_diff(const TreeDiff& diff, std::int64_t version);
LogView view_log(const std::vector<LogLine>& lines);

/// Replaces bytes that are not UTF-8 by U+FFFD.
std::string as_utf8(std::string_view text);

}  // namespace pawl::workers
