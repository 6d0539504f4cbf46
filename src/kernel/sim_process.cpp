// SPDX-License-Identifier: Apache-2.0
#include "kernel/sim_core.hpp"
#include "pawl/assert.hpp"

namespace pawl::sim {
namespace detail {
namespace {

// Not zero, which programs like to use for "never".
constexpr Instant kFirstInstant{std::chrono::hours{1}};

}  // namespace

Instant Node::instant() const { return kFirstInstant + clock.local(core.time); }
Time Node::now() const { return kEpoch + spawned_at + clock.local(core.time) + jumped; }
Duration Node::reaches(Instant deadline) const { return clock.reaches(deadline - kFirstInstant); }

}  // namespace detail

Process::Process(std::unique_ptr<detail::Node> node) : node_(std::move(node)) {}

Process::~Process() {
  PAWL_ASSERT(node_->lanes.empty() && node_->workers.empty(),
              "lanes and workers are destroyed before their simulation", node_->label);
}

const std::string& Process::name() const noexcept { return node_->name; }
bool Process::crashed() const noexcept { return node_->dead; }

void Process::crash() {
  if (node_->dead) return;
  auto& core = node_->core;
  core.crash(*node_, "");
  const auto* context = core.context();
  if (context != nullptr && &context->node == node_.get() && !core.unwinding()) throw Crashed{};
}

bool Process::attempt(const std::function<void()>& work) {
  PAWL_ASSERT(node_->core.context() == nullptr, "an attempt is made outside any task", node_->label);
  try {
    work();
  } catch (const Crashed&) {
    PAWL_ASSERT(node_->dead, "the process that crashes in an attempt is its own", node_->label);
  }
  node_->crashed_inline = false;
  return !node_->dead;
}

void Process::jump_clock(Duration by) {
  node_->jumped += by;
  node_->core.note("{} clock jumps by {} us", node_->label, by.count());
}

void Process::set_drift_ppm(std::int64_t ppm) {
  PAWL_ASSERT(ppm > -1'000'000 && ppm <= 1'000'000'000, "a drifting clock still goes forward", ppm);
  node_->clock.set_drift(node_->core.time, ppm);
  node_->core.note("{} clock drifts by {} ppm", node_->label, ppm);
}

Time Process::now() { return node_->now(); }
Instant Process::instant() { return node_->instant(); }
std::uint64_t Process::random() { return node_->random.next(); }

std::unique_ptr<Lane> Process::open_lane(std::string name) {
  return std::make_unique<detail::SimLane>(*node_, name);
}

std::unique_ptr<ThreadPool> Process::open_thread_pool(std::string name, ThreadPool::Options options) {
  return std::make_unique<detail::SimThreadPool>(*node_, name, options);
}

bool Process::wait(Gate& gate, std::optional<Duration> timeout) {
  return node_->core.wait(*node_, gate, timeout);
}

bool Process::fault(std::string_view point) { return node_->core.fault(*node_, point); }

}  // namespace pawl::sim
