// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a system brings to the server: machines, flows, tables, routes, verbs of the command, metrics, a
/// page.
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
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/http.hpp"
#include "pawl/machines.hpp"
#include "pawl/metrics.hpp"
#include "pawl/runtime.hpp"
#include "pawl/sql.hpp"

namespace pawl {

class Flows;

/// `pawl <system> <verb> [argument…]`.
struct Verb {
  std::string name;
  std::string summary;                                                ///< one line of the help
  std::function<int(const std::vector<std::string>& arguments)> run;  ///< the exit code (docs/cli.md)
};

/// A page of the dashboard: a JavaScript module, served by the server itself.
struct Page {
  std::string title;
  std::string script;
};

/// Made in `main` and given to the server. The order of the calls: `add_flows`, `add_machines`, `tables` and
/// `pools` before the engine opens; `start` when it is open and the flows are attached to it, which is after
/// interrupted work and steps have begun to run again; `routes` and `page` when the server starts; then
/// `write_metrics` from any thread; `stop` before the flows are detached and the engine closes.
class System {
 public:
  System() = default;
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  virtual ~System() = default;

  /// Stable; names it in the configuration, in paths and in the command. Lower case.
  virtual std::string name() const = 0;
  virtual std::string summary() const { return {}; }

  /// Its flows. They are there until the system is destroyed; from `start` to `stop` it may start runs.
  virtual void add_flows(Flows&) {}
  virtual void add_machines(Machines&) {}
  /// Statements that make its tables; run at every start, so written with IF NOT EXISTS.
  virtual std::vector<Sql> tables() const { return {}; }
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
