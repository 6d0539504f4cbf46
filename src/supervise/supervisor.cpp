// SPDX-License-Identifier: Apache-2.0
#include "pawl/supervisor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "supervise/core.hpp"

namespace pawl {

Supervisor::Supervisor(Runtime& runtime, WorkerTypes types, SupervisorOptions options)
    : core_(std::make_shared<SupervisorCore>(runtime, std::move(types), std::move(options))) {}

Supervisor::~Supervisor() { detach(); }

void Supervisor::add_machines(Machines& machines) { core_->add_machines(machines); }
Result<AttachReport> Supervisor::attach(Engine& engine) { return core_->attach(engine); }
void Supervisor::detach() { core_->detach(); }

Result<std::int64_t> Supervisor::apply(const TreeSpec& tree, std::optional<std::int64_t> expected_version) {
  return core_->apply(tree, expected_version);
}

Result<std::pair<TreeSpec, std::int64_t>> Supervisor::applied() const { return core_->applied(); }

Result<std::int64_t> Supervisor::upsert(const ChildSpec& child) {
  return core_->change_top([&child](TreeSpec& tree) -> Result<void> {
    const auto found = std::ranges::find(tree.children, child.name, &ChildSpec::name);
    if (found != tree.children.end()) {
      *found = child;
    } else {
      tree.children.push_back(child);
    }
    return {};
  });
}

Result<std::int64_t> Supervisor::remove(std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    return fail(
        Code::invalid_argument,
        fmt::format("\"{}\" is a child of another worker: it goes when its parent's configuration does not "
                    "name it any more",
                    name.substr(0, 256)));
  }
  return core_->change_top([name](TreeSpec& tree) -> Result<void> {
    if (std::erase_if(tree.children, [name](const ChildSpec& child) { return child.name == name; }) != 0)
      return {};
    return fail(Code::unknown_instance, fmt::format("no worker \"{}\"", name.substr(0, 256)));
  });
}

Result<void> Supervisor::check(const TreeSpec& tree) const { return core_->check(tree); }
Result<void> Supervisor::park(std::string_view path) { return core_->ask(path, Intent::park); }
Result<void> Supervisor::run(std::string_view path) { return core_->ask(path, Intent::run); }
Result<void> Supervisor::restart(std::string_view path, std::string reason) {
  return core_->restart(path, std::move(reason));
}
Result<WorkerView> Supervisor::show(std::string_view path) const { return core_->show(path); }
std::vector<WorkerView> Supervisor::tree() const { return core_->tree(); }
std::vector<std::string> Supervisor::paths() const { return core_->paths(); }
std::map<std::string, std::map<Phase, std::size_t>> Supervisor::counts() const { return core_->counts(); }
std::map<std::string, std::map<Health, std::size_t>> Supervisor::health_counts() const {
  return core_->health_counts();
}
SupervisorStats Supervisor::stats() const { return core_->stats(); }
const WorkerTypes& Supervisor::types() const { return core_->types(); }
DrainReport Supervisor::drain(std::optional<Duration> base) {
  return core_->drain(base.value_or(core_->options().drain_base));
}
void Supervisor::force() { core_->force(); }

}  // namespace pawl
