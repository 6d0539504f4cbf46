// SPDX-License-Identifier: Apache-2.0
#include "supervise/tool_holder.hpp"

#include <fmt/format.h>

#include <utility>

namespace pawl::supervise {

Result<std::shared_ptr<void>> ToolHolder::make_tools() const {
  PAWL_TRY(auto made, detail::contained(type_->name, "creating its tools",
                                        [this] { return type_->make_tools(*identity_); }));
  if (made) return made;
  return fail(Code::spec_invalid,
              fmt::format("{}: the function that creates the tools of a \"{}\" returned a null pointer",
                          identity_->path, type_->name));
}

void ToolHolder::tools_made(std::shared_ptr<void> tools) {
  const std::lock_guard lock(mutex_);
  making_ = false;
  if (tools) tools_ = std::move(tools);
  for (const auto& gate : std::exchange(waiting_, {})) gate->open();
}

/// A second caller waits while the first one creates the tools, until its own stop token is set: creating
/// them may hang.
Result<ToolHolder::BoundTools> ToolHolder::bind(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Gate> gate;
    {
      const std::lock_guard lock(mutex_);
      if (!desired_) {
        return fail(Code::spec_invalid, fmt::format("{}: it has no valid configuration", identity_->path));
      }
      if (tools_) return BoundTools{tools_, desired_};
      if (!std::exchange(making_, true)) break;
      gate = waiting_.emplace_back(std::make_shared<Gate>());
    }
    {
      const std::stop_callback stopped(stop, [gate] { gate->open(); });
      (void)runtime_.wait(*gate);
    }
    if (stop.stop_requested())
      return fail(Code::cancelled,
                  fmt::format("{}: stopped while its tools were being created", identity_->path));
  }
  // A guard, because the simulation unwinds this thread when it crashes the process.
  const auto give_up = [](ToolHolder* tools) { tools->tools_made({}); };
  std::unique_ptr<ToolHolder, decltype(give_up)> making(this, give_up);
  PAWL_TRY(auto tools, make_tools());
  (void)making.release();
  tools_made(tools);
  const std::lock_guard lock(mutex_);
  return BoundTools{std::move(tools), desired_};
}

Result<Observation> ToolHolder::collect(Time now, std::stop_token stop) {
  PAWL_TRY(const auto bound, bind(stop));
  return type_->collect(bound.tools.get(), bound.desired.get(),
                        {.identity = *identity_, .now = now, .stop = std::move(stop)});
}

Result<void> ToolHolder::act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                             std::stop_token stop) {
  if (identity_->predecessor && identity_->predecessor->running != 0) {
    return fail(Code::overloaded,
                fmt::format("{}: an abandoned action of the removed worker of this name has not returned",
                            identity_->path));
  }
  const auto bit = std::uint64_t{1} << static_cast<std::size_t>(&action - type_->actions.data());
  if ((identity_->running.fetch_or(bit) & bit) != 0) {
    return fail(Code::overloaded,
                fmt::format("{}: an abandoned run of {} has not returned", identity_->path, action.name));
  }
  // A guard, because the simulation unwinds this thread when it crashes the process.
  const auto release = [bit](std::atomic<std::uint64_t>* running) { running->fetch_and(~bit); };
  const std::unique_ptr<std::atomic<std::uint64_t>, decltype(release)> running(&identity_->running, release);
  if (stop.stop_requested()) return fail(Code::cancelled, "stopped before it started");
  PAWL_TRY(const auto bound, bind(stop));
  return action.run(bound.tools.get(), bound.desired.get(),
                    {.identity = *identity_, .number = number, .attempt = attempt, .stop = std::move(stop)});
}

}  // namespace pawl::supervise
