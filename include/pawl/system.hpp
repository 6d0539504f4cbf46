// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a system brings to the server: settings, machines, flows, tables with their migrations, routes, verbs
/// of the command, metrics, a page.
///
///     class Hello final : public pawl::System {
///      public:
///       std::string name() const override { return "hello"; }
///       std::string summary() const override { return "greets people"; }
///       void add_machines(pawl::Machines& machines) override { machines.add<greeting>(); }
///     };
///
/// Every part but the name is optional. Removing a system is deleting its folder and the line that adds it.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/log.hpp"
#include "pawl/machines.hpp"
#include "pawl/metrics.hpp"
#include "pawl/runtime.hpp"
#include "pawl/sql.hpp"

namespace pawl {

class Flows;

/// One key of the configuration, below the system's name.
struct Setting {
  std::string name;           ///< "backend" for `images.backend`
  std::string type;           ///< what it may be, for people
  std::string default_value;  ///< its default, as YAML
  std::string description;    ///< one line
  /// Takes the value as text. An error's message says what would be right.
  std::function<Result<void>(std::string_view text)> set;
};

/// What a verb takes: a place in its line, or an option where the name begins with dashes.
struct VerbArgument {
  std::string name;  ///< "image", "--timeout"
  std::string description;
  bool required = false;
  bool flag = false;  ///< an option without a value
};

/// What a verb was given, and what it can use; made by the command.
struct VerbCall {
  std::map<std::string, std::string, std::less<>> arguments{};  ///< by name without dashes; a flag is "true"
  bool json = false;                                            ///< data is printed as JSON
  /// Asks the server that the command talks to; the body of its answer.
  std::function<Result<std::string>(http::Method method, std::string target, std::string body)> ask{};
  /// Prints a table for people; a head that begins with '>' is a column of numbers.
  std::function<void(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows)>
      table{};
  /// Shows progress from 0 to 1; no-op without a terminal. An empty label removes it.
  std::function<void(std::string_view label, double fraction, std::string_view text)> progress{};

  /// Empty where it was not given.
  std::string argument(std::string_view name) const {
    const auto found = arguments.find(name);
    return found == arguments.end() ? std::string() : found->second;
  }
};

/// `pawl <system> <verb> [argument…]`.
struct Verb {
  std::string name;
  std::string summary;  ///< one line of the help
  std::vector<VerbArgument> arguments{};
  bool local = false;                                    ///< asks no server
  std::function<Result<int>(const VerbCall& call)> run;  ///< the exit code (docs/cli.md)
};

/// A page of the dashboard: a JavaScript module, served by the server itself.
struct Page {
  std::string title;
  std::string script;
};

/// Where a system finds itself when the server starts.
struct SystemContext {
  std::string data;   ///< the server's directory; a system may make one of its own name below it
  bool demo = false;  ///< people look at it for the first time: something to see is welcome
  Logger log{};
};

/// Made in `main` and given to the server. The order of the calls: `settings`, `prepare`, `add_flows`,
/// `add_machines`, `migrations` and `pools` before the engine opens; `start` when it is open and the flows
/// are attached to it, which is after interrupted work and steps have resumed; `routes` and `page`
/// when the server starts; then `write_metrics` from any thread; `stop` before the flows are detached and the
/// engine closes.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// Stable; names it in the configuration, in paths and in the command. Lower case.
  virtual std::string name() const = 0;
  virtual std::string summary() const { return {}; }

  /// Its keys of the configuration; set before anything else is called.
  virtual std::vector<Setting> settings() { return {}; }
  /// An error ends the start of the server.
  virtual Result<void> prepare(const SystemContext&) { return {}; }
  /// Its flows. They are there until the system is destroyed; from `start` to `stop` it may start runs.
  virtual void add_flows(Flows&) {}
  virtual void add_machines(Machines&) {}
  /// What makes its tables and, release by release, changes them: see `EngineOptions::migrations`. The first
  /// uses IF NOT EXISTS where a release before there were migrations has made the tables already.
  virtual std::vector<Migration> migrations() const { return {}; }
  /// Its permit pools by name.
  virtual std::map<std::string, std::uint32_t> pools() const { return {}; }

  /// Begins whatever it does by itself. An error ends the start of the server.
  virtual Result<void> start(Runtime&, Engine&) { return {}; }
  /// Ends it, and returns when it has ended.
  virtual void stop() {}

  virtual std::vector<http::Route> routes(Engine&) { return {}; }
  virtual std::vector<Verb> verbs() { return {}; }
  virtual void write_metrics(Engine&, MetricsText&) {}
  virtual std::optional<Page> page() { return std::nullopt; }
};

}  // namespace pawl
