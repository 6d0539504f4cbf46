// SPDX-License-Identifier: Apache-2.0
#include "workers/system.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>

#include "pawl/names.hpp"
#include "pawl/supervisor.hpp"
#include "supervise/application.hpp"
#include "workers/config/tree.hpp"
#include "workers/config/yaml.hpp"
#include "workers/demo_tree.hpp"
#include "workers/drain_base.hpp"
#include "workers/orphan_cleanup.hpp"
#include "workers/page.hpp"
#include "workers/routes.hpp"
#include "workers/settings.hpp"
#include "workers/tree_file.hpp"
#include "workers/types/all.hpp"
#include "workers/types/process.hpp"
#include "workers/verbs.hpp"

namespace pawl::workers {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPollInterval = 1s;

class WorkersSystem final : public System {
 public:
  ~WorkersSystem() override { stop(); }

  std::string name() const override { return "workers"; }
  std::string summary() const override { return "Supervises processes and connections declared in YAML"; }

  std::vector<Setting> settings() override { return worker_settings(options_); }

  Result<void> prepare(const SystemContext& place) override {
    log_ = place.log.with({{"system", name()}});
    demo_ = place.demo;
    directory_ = std::filesystem::absolute(place.data + "/workers").string();
    WorkerTypes types;
    add_worker_types(types, {});
    PAWL_CHECK(open_manager());
    if (manager_) {
      add_process(types, *manager_, records());
    } else {
      add_process_without_shim(types);
    }
    PAWL_CHECK(types.validate());
    supervisor_.emplace(runtime_, std::move(types),
                        SupervisorOptions{.tick = options_.tick,
                                          .drain_base = options_.drain_base,
                                          .collectors = options_.collectors,
                                          .actions = options_.actions,
                                          .read_config = read_yaml,
                                          .log = log_});
    file_.emplace(options_.file, runtime_, log_);
    return {};
  }

  void add_machines(Machines& machines) override { supervisor_->add_machines(machines); }
  std::map<std::string, std::uint32_t> pools() const override {
    return {{std::string(Supervisor::kPool), options_.actions}};
  }

  Result<void> start(Runtime&, Engine& engine) override {
    PAWL_TRY(const auto found, supervisor_->attach(engine));
    attached_ = true;
    for (const auto& path : found.unknown) {
      log_.warn("unknown worker type; the worker is left untouched", {{"worker", path}});
    }
    if (manager_) orphan_cleanup_.emplace(*manager_, records(), log_, found.unknown);
    auto begun = begin();
    // If the server does not start, the engine goes away.
    if (!begun) stop();
    return begun;
  }

  void stop() override {
    if (!attached_) return;
    attached_ = false;
    stopping_.open();
    watcher_.reset();
    // A demo leaves no processes behind.
    const bool is_demo = demo_ && options_.file.empty();
    if (options_.on_stop == OnStop::drain || is_demo) drain();
    supervisor_->detach();
  }

  std::vector<http::Route> routes(Engine& engine) override {
    return worker_routes({.supervisor = *supervisor_,
                          .engine = engine,
                          .file = *file_,
                          .runtime = runtime_,
                          .manager = manager_ ? &*manager_ : nullptr});
  }
  std::vector<Verb> verbs() override { return worker_verbs(); }
  std::optional<Page> page() override { return Page{.title = "Workers", .script = kPageScript}; }

  void write_metrics(Engine&, MetricsText& out) override {
    auto counts = supervisor_->counts();
    out.gauge("pawl_workers", "Workers by type and phase.");
    for (const auto& type : supervisor_->types().all()) {
      if (type->name == supervise::Application::kType) continue;
      for (const auto phase : enum_values<Phase>)
        out.sample({{"type", type->name}, {"phase", std::string(enum_name(phase))}},
                   static_cast<double>(counts[type->name][phase]));
    }
    auto health = supervisor_->health_counts();
    out.gauge("pawl_workers_health", "Workers by type and health.");
    for (const auto& type : supervisor_->types().all()) {
      if (type->name == supervise::Application::kType) continue;
      for (const auto kind : enum_values<Health>)
        out.sample({{"type", type->name}, {"health", std::string(enum_name(kind))}},
                   static_cast<double>(health[type->name][kind]));
    }
    write_counters(supervisor_->stats(), out);
    out.gauge("pawl_workers_file_mistakes", "Mistakes in the worker file.")
        .sample(static_cast<double>(file_->problems().size()));
  }

 private:
  static void write_counters(const SupervisorStats& stats, MetricsText& out) {
    const auto count = [&out](std::string_view name, std::string_view help, std::uint64_t value) {
      out.counter(fmt::format("pawl_workers_{}_total", name), help).sample(static_cast<double>(value));
    };
    count("ticks", "Supervisor ticks.", stats.ticks);
    count("decisions", "Decisions.", stats.decisions);
    count("transitions", "State transitions.", stats.transitions);
    count("actions", "Actions run.", stats.actions);
    count("action_failures", "Failed actions.", stats.actions_failed);
    count("collections", "Observations started.", stats.collections);
    count("collection_failures", "Failed observations.", stats.collections_failed);
    count("collector_restarts", "Restarts of hung observations.", stats.collector_restarts);
    count("observations_written", "Changed observations stored.", stats.observations_written);
    count("restarts", "Worker restarts.", stats.restarts);
    count("config_errors", "Configurations that could not be read.", stats.config_errors);
    count("exceptions", "Exceptions thrown by workers.", stats.exceptions);
    out.gauge("pawl_workers_abandoned", "Hung observations that were abandoned.")
        .sample(static_cast<double>(stats.abandoned));
  }

  Result<void> begin() {
    if (options_.file.empty() && demo_) PAWL_CHECK(apply_demo());
    if (!options_.file.empty()) file_->poll(*supervisor_);
    watcher_ = runtime_.open_thread_pool("workers", {.threads = 1, .queue = 1});
    PAWL_CHECK(watcher_->submit([this](const std::stop_token&) { watch(); }));
    return {};
  }

  std::string records() const { return directory_ + "/notes"; }

  /// Without the shim, processes are neither started nor stopped; other workers are not affected.
  Result<void> open_manager() {
    const auto shim = find_shim(options_.shim);
    if (shim.empty()) {
      log_.warn("pawl-shim not found: processes are neither started nor stopped",
                {{"hint", "set workers.shim"}});
      return {};
    }
    PAWL_TRY(auto manager, ProcessManager::open(directory_ + "/processes", std::filesystem::absolute(shim)));
    manager_.emplace(std::move(manager));
    return {};
  }

  Result<void> apply_demo() {
    PAWL_TRY(const auto now, supervisor_->applied());
    if (!now.first.children.empty()) return {};
    PAWL_TRY(auto tree, read_tree(kDemoTree, "demo", &supervisor_->types()));
    if (!manager_) {
      std::erase_if(tree.children, [](const ChildSpec& child) { return child.worker_type == "process"; });
    }
    PAWL_CHECK(supervisor_->apply(tree));
    return {};
  }

  void watch() {
    while (!runtime_.wait(stopping_, kPollInterval)) {
      if (!options_.file.empty()) file_->poll(*supervisor_);
      clean_orphans();
    }
  }

  void clean_orphans() {
    if (!orphan_cleanup_) return;
    const auto applied = supervisor_->applied();
    const auto paths = supervisor_->paths();
    // End processes only if the tree is known.
    if (!applied || (paths.empty() && !applied->first.children.empty())) return;
    orphan_cleanup_->run(paths);
  }

  void drain() {
    const auto base = drain_base(supervisor_->tree(), options_.drain_base, options_.actions);
    const auto drained = supervisor_->drain(base);
    for (const auto& path : drained.cut) log_.error("the worker did not stop in time", {{"worker", path}});
    if (!drained.clean) {
      log_.error("the server stops although some workers did not; their processes go on",
                 {{"workers", drained.cut.size()}, {"drain_base", base}});
    }
  }

  WorkersOptions options_;
  Logger log_;
  bool demo_ = false;
  bool attached_ = false;
  std::string directory_;
  // Its own runtime: the server's is not known when the machines are made, and must outlive the supervisor.
  ThreadRuntime runtime_;
  std::optional<ProcessManager> manager_;
  std::optional<Supervisor> supervisor_;
  std::optional<TreeFile> file_;
  std::optional<OrphanCleanup> orphan_cleanup_;
  Gate stopping_;
  std::unique_ptr<ThreadPool> watcher_;
};

}  // namespace

std::unique_ptr<System> make_workers() { return std::make_unique<WorkersSystem>(); }

}  // namespace pawl::workers
