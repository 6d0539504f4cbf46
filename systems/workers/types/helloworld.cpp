// SPDX-License-Identifier: Apache-2.0
#include "workers/types/helloworld.hpp"

#include <cstddef>
#include <memory>
#include <string_view>

namespace pawl::workers {
namespace {

constexpr std::size_t kLongestMood = 32;

/// Short visible ASCII, because it is stored.
std::string first_word(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const bool visible = c > ' ' && c <= '~';
    if (visible && word.size() < kLongestMood) word += c;
    if (!visible && !word.empty()) break;
  }
  return word;
}

bool is_sad(const Helloworld::Snapshot& now) { return now.observed.mood == "sad"; }

Go<Helloworld::Stopped> say_goodbye() { return {"it only greets; there is nothing to undo"}; }

}  // namespace

Result<void> Helloworld::SayHello::run(HelloworldTools& tools, const HelloworldDesired&,
                                       const ActionContext& context) {
  if (context.stop.stop_requested()) return fail(Code::cancelled, "stopped before it greeted");
  tools.greeted = true;
  return {};
}

Next<Go<Helloworld::TryingToStart>> Helloworld::next(Stopped, const Snapshot&) {
  return Go<TryingToStart>{"it should run"};
}

Next<Go<Helloworld::Running>, Do<Helloworld::SayHello>> Helloworld::next(TryingToStart, const Snapshot& now) {
  if (now.observed.greeted) return Go<Running>{"it has said hello"};
  return Do<SayHello>{"it has not said hello yet"};
}

Next<Go<Helloworld::Degraded>, Stay> Helloworld::next(Running, const Snapshot& now) {
  if (is_sad(now)) return Go<Degraded>{"its mood is sad"};
  return Stay{"it is healthy"};
}

Next<Go<Helloworld::Running>, Stay> Helloworld::next(Degraded, const Snapshot& now) {
  if (!is_sad(now)) return Go<Running>{"its mood is no longer sad"};
  return Stay{"its mood is sad"};
}

Next<Go<Helloworld::Stopped>> Helloworld::stop(TryingToStart, const Snapshot&) { return say_goodbye(); }
Next<Go<Helloworld::Stopped>> Helloworld::stop(Running, const Snapshot&) { return say_goodbye(); }
Next<Go<Helloworld::Stopped>> Helloworld::stop(Degraded, const Snapshot&) { return say_goodbye(); }

Result<HelloworldObserved> Helloworld::collect(HelloworldTools& tools, const HelloworldDesired& desired,
                                               const CollectContext&) {
  HelloworldObserved seen{.greeted = tools.greeted};
  if (desired.mood_file.empty()) return seen;
  PAWL_TRY(const auto text, tools.read_file(desired.mood_file));
  seen.mood = first_word(text.value_or(""));
  return seen;
}

void add_helloworld(WorkerTypes& types, const TypeServices& services) {
  types.add<Helloworld>([read_file = services.read_file](const WorkerIdentity&) {
    auto tools = std::make_shared<HelloworldTools>();
    tools->read_file = read_file;
    return tools;
  });
}

}  // namespace pawl::workers
