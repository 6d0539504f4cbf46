// SPDX-License-Identifier: Apache-2.0
// A subscriber keeps its cursor; the engine stops and starts, and it goes on with the next entry.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "pawl/engine.hpp"

enum class Parcel { packed, posted, delivered };
struct Post {};
struct Deliver {};
struct Address {
  std::string to;
};

constexpr auto parcel = pawl::machine<Parcel, Address>("parcel")
                            .initial(Parcel::packed)
                            .on<Post>(Parcel::packed, Parcel::posted)
                            .on<Deliver>(Parcel::posted, Parcel::delivered)
                            .terminal(Parcel::delivered);
static_assert(pawl::verified<parcel>);

static const std::filesystem::path kPlace = "parcels";  // a directory of its own, removed at the end

static auto open(pawl::Runtime& runtime) {
  const auto store = "sqlite:" + (kPlace / "parcels.db").string();
  return pawl::Engine::open(runtime, pawl::Machines().add<parcel>(), {.store = store}).value();
}

// excerpt: follow
// Prints what is new. The cursor is stored after the entries were handled: after a crash in between, they
// come again.
static void follow(pawl::Engine& engine) {
  std::string cursor = "begin";
  std::ifstream(kPlace / "cursor") >> cursor;
  auto subscription = engine.subscribe(cursor).value();
  while (true) {
    const auto entries = subscription.poll().value();
    if (entries.empty()) break;
    for (const auto& entry : entries) {
      std::cout << entry.seq << ' ' << entry.key << ' ' << entry.kind << ' ' << entry.state << '\n';
    }
    std::ofstream(kPlace / "cursor") << subscription.cursor();
  }
}
// excerpt end

int main() {
  std::filesystem::remove_all(kPlace);  // what an interrupted run has left
  std::filesystem::create_directory(kPlace);
  pawl::ThreadRuntime runtime;
  auto engine = open(runtime);
  engine->create<parcel>("p-1", {.to = "Ada"}).value();
  engine->create<parcel>("p-2", {.to = "Max"}).value();
  follow(*engine);
  engine->send<parcel>("p-2", Post{}).value();
  engine.reset();

  std::cout << "the engine was opened again\n";
  engine = open(runtime);
  engine->send<parcel>("p-2", Deliver{}).value();
  follow(*engine);
  engine.reset();
  std::filesystem::remove_all(kPlace);
}

// prints: 1 p-1 created packed
// prints: 2 p-2 created packed
// prints: the engine was opened again
// prints: 3 p-2 fired posted
// prints: 4 p-2 fired delivered
