// SPDX-License-Identifier: Apache-2.0
#include "supervise/hands.hpp"

#include <fmt/format.h>

namespace pawl::supervise {

Result<Hands::Grip> Hands::grip() {
  const std::lock_guard making(making_);
  {
    const std::lock_guard lock(mutex_);
    if (!desired_) {
      return fail(Code::spec_invalid, fmt::format("{}: there is no readable configuration", identity_->path));
    }
    if (tools_) return Grip{tools_, desired_};
  }
  PAWL_TRY(auto made, type_->make_tools(*identity_));
  const std::lock_guard lock(mutex_);
  tools_ = std::move(made);
  return Grip{tools_, desired_};
}

Result<Seen> Hands::collect(Time now, std::stop_token stop) {
  PAWL_TRY(const auto grip, grip());
  return type_->collect(grip.tools.get(), grip.desired.get(),
                        {.identity = *identity_, .now = now, .stop = std::move(stop)});
}

Result<void> Hands::act(const WorkerType::Action& action, std::int64_t number, std::uint32_t attempt,
                        std::stop_token stop) {
  const auto bit = std::uint64_t{1} << static_cast<std::size_t>(&action - type_->actions.data());
  if ((running_->fetch_or(bit) & bit) != 0) {
    return fail(Code::overloaded, fmt::format("{}: an earlier {} was given up but has not returned",
                                              identity_->path, action.name));
  }
  // Also when the simulation unwinds it.
  const auto release = [bit](std::atomic<std::uint64_t>* running) { running->fetch_and(~bit); };
  const std::unique_ptr<std::atomic<std::uint64_t>, decltype(release)> running(running_.get(), release);
  if (stop.stop_requested()) return fail(Code::cancelled, "it was to stop before it began");
  PAWL_TRY(const auto grip, grip());
  return action.run(grip.tools.get(), grip.desired.get(),
                    {.identity = *identity_, .number = number, .attempt = attempt, .stop = std::move(stop)});
}

}  // namespace pawl::supervise
