// SPDX-License-Identifier: Apache-2.0
// The demo's flow: deliveries that are picked, packed and shipped.
#include "server/demo_flow.hpp"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace pawl::server::demo {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kNowhere = "Atlantis";

/// Random, but the same for each attempt at a step, so that a retried step continues as it was.
std::size_t chance(const Step& step, std::size_t of) {
  return std::hash<std::string>{}(step.request_id() + step.run_ulid()) % of;
}

/// Works through parts that take this long each. False if it was stopped.
bool work(Step& step, int parts, std::chrono::milliseconds each, std::string_view text) {
  std::mutex mutex;
  std::condition_variable_any never;
  for (int part = 0; part < parts; ++part) {
    step.progress(static_cast<double>(part) / parts, fmt::format("{} {} of {}", text, part + 1, parts));
    std::unique_lock lock(mutex);
    never.wait_for(lock, step.stop(), each, [] { return false; });
    if (step.stop().stop_requested()) return false;
  }
  return true;
}

Outcome stopped() { return Error(Code::cancelled, "it was called back"); }

Outcome pick(Step& step, const Consignment&, Parcel& parcel) {
  if (step.attempt() == 1 && chance(step, 4) == 0) return Error(Code::timed_out, "the shelf is being filled");
  if (!work(step, 3, 150ms, "aisle")) return stopped();
  parcel.shelf = fmt::format("shelf {}", 1 + chance(step, 40));
  return Outcome::done();
}

Outcome pack(Step& step, const Consignment&, Parcel& parcel) {
  const auto boxes = static_cast<int>(1 + chance(step, 3));
  if (!work(step, boxes, 250ms, "box")) return stopped();
  parcel.boxes = boxes;
  return Outcome::done();
}

Outcome unpack(Step& step, const Consignment&, Parcel&) {
  return work(step, 1, 200ms, "box") ? Outcome::done() : stopped();
}

Outcome ship(Step& step, const Consignment& consignment, Parcel& parcel) {
  if (consignment.city == kNowhere || chance(step, 9) == 0)
    return Outcome::abort(fmt::format("there is no road to {}", consignment.city));
  if (!work(step, 5, 200ms, "mile")) return stopped();
  parcel.tracking = step.request_id();
  return Outcome::done();
}

}  // namespace

Flow<Consignment, Parcel> delivery_flow() {
  return flow<Consignment, Parcel>(kDelivery)
      .start("pick", pick)
      .to("pack", pack)
      .undo(unpack)
      .to("ship", ship)
      .end();
}

}  // namespace pawl::server::demo
