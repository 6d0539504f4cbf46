// SPDX-License-Identifier: Apache-2.0
#include "supervise/hands.hpp"

#include <fmt/format.h>

#include <utility>

namespace pawl::supervise {

Result<std::shared_ptr<void>> Hands::make_tools() const {
  PAWL_TRY(auto made, detail::contained(type_->name, "making its tools",
                                        [this] { return type_->make_tools(*identity_); }));
  if (made) return made;
  return fail(Code::spec_invalid, fmt::format("{}: what makes the tools of a \"{}\" returned a null pointer",
                                              identity_->path, type_->name));
}

void Hands::made(std::shared_ptr<void> tools) {
  const std::lock_guard lock(mutex_);
  making_ = false;
  if (tools) tools_ = std::move(tools);
  for (const auto& gate : std::exchange(waiting_, {})) gate->open();
}

/// Whoever comes while the tools are made waits for them, but only as long as it may: making them may hang.
Result<Hands::Grip> Hands::grip(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Gate> gate;
    {
      const std::lock_guard lock(mutex_);
      if (!desired_) {
        return fail(Code::spec_invalid,
                    fmt::format("{}: there is no readable configuration", identity_->path));
      }
      if (tools_) return Grip{tools_, desired_};
      if (!std::exchange(making_, true)) break;
      gate = waiting_.emplace_back(std::make_shared<Gate>());
    }
    {
      const std::stop_callback stopped(stop, [gate] { gate->open(); });
      (void)runtime_.wait(*gate);
    }
    if (stop.stop_requested())
      return fail(Code::cancelled, fmt::format("{}: its tools are still being made", identity_->path));
  }
  // Also when the simulation unwinds it.
  const auto give_up = [](Hands* hands) { hands->made({}); };
  std::unique_ptr<Hands, decltype(give_up)> making(this, give_up);
  PAWL_TRY(auto tools, make_tools());
  (void)making.release();
  made(tools);
  const std::lock_guard lock(mutex_);
  return Grip{std::move(tools), desired_};
}

Result<Seen> Hands::collect(Time now, std::stop_token stop) {
  PAWL_TRY(const auto grip, grip(stop));
  return type_->collect(grip.tools.get(), grip.desired.get(),
                        {.identity = *identity_, .now = now, .stop = std::move(stop)});
}

Result<void> Hands::act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                        std::stop_token stop) {
  if (identity_->predecessor && identity_->predecessor->running != 0) {
    return fail(
        Code::overloaded,
        fmt::format("{}: an action of the removed worker of this name was given up but has not returned",
                    identity_->path));
  }
  const auto bit = std::uint64_t{1} << static_cast<std::size_t>(&action - type_->actions.data());
  if ((identity_->running.fetch_or(bit) & bit) != 0) {
    return fail(Code::overloaded, fmt::format("{}: an earlier {} was given up but has not returned",
                                              identity_->path, action.name));
  }
  // Also when the simulation unwinds it.
  const auto release = [bit](std::atomic<std::uint64_t>* running) { running->fetch_and(~bit); };
  const std::unique_ptr<std::atomic<std::uint64_t>, decltype(release)> running(&identity_->running, release);
  if (stop.stop_requested()) return fail(Code::cancelled, "it was to stop before it began");
  PAWL_TRY(const auto grip, grip(stop));
  return action.run(grip.tools.get(), grip.desired.get(),
                    {.identity = *identity_, .number = number, .attempt = attempt, .stop = std::move(stop)});
}

}  // namespace pawl::supervise
