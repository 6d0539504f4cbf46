// SPDX-License-Identifier: Apache-2.0
#include "pawl/sim_program.hpp"

#include <fmt/format.h>

#include "pawl/assert.hpp"

namespace pawl::sim {

void Program::begin() {
  const auto started = survive([]() -> Result<void> { return {}; });
  PAWL_ASSERT(started.has_value(), "the program starts", started.error().to_string());
}

Result<void> Program::start() {
  process_ = &simulation_.spawn("program");
  Result<void> opened;
  const bool alive = process_->attempt([&] { opened = open(*process_); });
  if (alive && opened) return {};
  close();
  if (alive) return opened;
  return fail(Code::stopped, "crashed while it started");
}

void Program::crash() {
  process_->crash();
  disk_.process_kill();
  restart();
}

void Program::restart() {
  close();
  const auto started = start();
  PAWL_ASSERT(started.has_value(), "the program starts again", started.error().to_string());
}

Result<void> Program::survive(const std::function<Result<void>()>& work) {
  constexpr int kStarts = 100;
  for (int starts = 0; starts < kStarts; ++starts) {
    if (process_ == nullptr || process_->crashed()) {
      disk_.process_kill();
      close();
      const auto started = start();
      if (!started && process_->crashed()) continue;
      PAWL_CHECK(started);
    }
    Result<void> outcome;
    if (process_->attempt([&] { outcome = work(); }) && !process_->crashed()) return outcome;
  }
  return fail(Code::internal, fmt::format("the program crashed {} times", kStarts));
}

}  // namespace pawl::sim
