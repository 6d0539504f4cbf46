// SPDX-License-Identifier: Apache-2.0
// Conformance: random lives against a model that is a list in memory.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "tests/store/conformance.hpp"

namespace pawl::test {
namespace {

constexpr int kKeys = 6;

/// What a store holds, as simply as it can be said.
struct Model {
  struct Life {
    Draft newest;
    Seq seq = 0;
    std::string partition;
    Time created_at{};
  };
  std::vector<Entry> log;  ///< above and below the horizon
  std::map<std::string, Life> lives;
  Seq horizon = 0;

  Seq last() const { return log.empty() ? 0 : log.back().seq; }
};

/// Drives a store and the model side by side.
class Twin {
 public:
  Twin(Place& place, PlaceOptions options)
      : place_(place), options_(options), store_(place.open(options).value()) {}

  void step(int what, int key, int part) {
    const auto name = "k" + std::to_string(key);
    switch (what) {
      case 0:
      case 1:
      case 2:
      case 3:
        return write(name, part);
      case 4:
      case 5:
        return commit();
      case 6:
        store_->discard();
        open_ = durable_;
        return;
      case 7:
        return reopen(part % 2 == 0);
      default:
        return retain(key, part);
    }
  }

  void finish() {
    commit();
    reopen(true);
    RC_ASSERT(problems(*store_) == "");
  }

 private:
  void write(const std::string& key, int part) {
    auto& life = open_.lives[key];
    Draft draft;
    if (life.seq == 0 || life.newest.finished) {
      const bool again = life.seq != 0;
      draft = created(key);
      draft.version = again ? life.newest.version + 1 : 1;
      draft.generation = again ? life.newest.generation + 1 : 1;
      draft.prev = life.seq;
      draft.partition = part % 3 == 0 ? "p" + std::to_string(part) : "";
      life.partition = draft.partition;
    } else {
      draft = after(life.newest, life.seq, part % 2 == 0 ? "open" : "closed");
      draft.finished = part % 5 == 0;
    }
    draft.extra = part % 4 == 1 ? R"({"n":)" + std::to_string(part) + "}" : "";
    now_ += Duration(part);
    draft.at = now_;
    if (draft.kind == EntryKind::created) life.created_at = now_;
    const auto seq = join(*store_, draft);
    RC_ASSERT(seq.has_value());
    if (crashed_) {
      RC_ASSERT(*seq > durable_.last());
    } else {
      RC_ASSERT(*seq == given_ + 1);
    }
    crashed_ = false;
    given_ = *seq;
    life.newest = draft;
    life.seq = *seq;
    open_.log.push_back(draft.stored(*seq));
  }

  void commit() {
    RC_ASSERT(store_->commit().has_value());
    durable_ = open_;
    compare();
  }

  void reopen(bool clean) {
    open_ = durable_;
    if (clean) {
      store_.reset();
      store_ = place_.open(options_).value();
    } else {
      store_ = place_.open_after_crash(std::move(store_), options_).value();
      crashed_ = true;  // numbers of a batch that died with the process were never seen by anybody
    }
    compare();
  }

  void retain(int key, int part) {
    commit();
    const Seq horizon = durable_.last() * key / kKeys;
    const Seq forget = durable_.last() * (part % 10) / 10;
    while (true) {
      const auto done = store_->retain(horizon);
      RC_ASSERT(done.has_value());
      if (*done) break;
    }
    durable_.horizon = std::max(durable_.horizon, horizon);
    std::vector<InstanceId> ids;
    std::erase_if(durable_.lives, [&](const auto& life) {
      const bool gone =
          life.second.newest.finished && life.second.seq <= forget && life.second.newest.extra.empty();
      if (gone) ids.push_back(life.second.newest.id);
      return gone;
    });
    RC_ASSERT(store_->forget(ids).has_value());
    open_ = durable_;
    compare();
  }

  void compare() {
    const auto info = store_->info();
    RC_ASSERT(info.last == durable_.last());
    RC_ASSERT(info.horizon == durable_.horizon);
    std::vector<Entry> visible;
    for (const auto& entry : durable_.log) {
      if (entry.seq > durable_.horizon) visible.push_back(entry);
    }
    RC_ASSERT(store_->feed(durable_.horizon, 10'000).value() == visible);
    compare_heads();
  }

  void compare_heads() {
    const auto heads = load_all(*store_);
    std::size_t lives = 0;
    for (const auto& [key, life] : durable_.lives) {
      if (life.seq == 0) continue;
      ++lives;
      const auto& newest = life.newest;
      const LoadedHead expected{.id = newest.id,
                                .machine = newest.machine,
                                .key = key,
                                .partition = life.partition,
                                .version = newest.version,
                                .generation = newest.generation,
                                .seq = life.seq,
                                .state = newest.state,
                                .created_at = life.created_at,
                                .at = newest.at,
                                .extra = newest.extra,
                                .finished = newest.finished};
      RC_ASSERT(heads.contains(newest.id));
      RC_ASSERT(heads.at(newest.id) == expected);
      RC_ASSERT(store_->head_entry(newest.id, life.seq).value() == newest.stored(life.seq));
      compare_history(newest.id, life.seq);
    }
    RC_ASSERT(heads.size() == lives);
  }

  void compare_history(const InstanceId& id, Seq head) {
    std::vector<Entry> expected;
    std::map<Seq, Entry> by_seq;
    for (const auto& entry : durable_.log) by_seq.emplace(entry.seq, entry);
    for (Seq seq = head; seq != 0; seq = by_seq.at(seq).prev) {
      if (seq <= durable_.horizon && seq != head) break;
      expected.push_back(by_seq.at(seq));
    }
    RC_ASSERT(store_->history(id, head, 0, 10'000).value() == expected);
  }

  Place& place_;
  PlaceOptions options_;
  std::unique_ptr<Store> store_;
  Model durable_;
  Model open_;
  Time now_ = at_second(0);
  Seq given_ = 0;
  bool crashed_ = false;
};

TEST_P(Conformance, ARandomLifeMatchesTheModel) {
  // It only says whether the property holds; without this the test would pass whatever it says.
  EXPECT_TRUE(rc::check("a random life matches the model", [&] {
    const auto steps = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
        rc::gen::tuple(rc::gen::inRange(0, 9), rc::gen::inRange(0, kKeys), rc::gen::inRange(0, 20)));
    const auto place = GetParam()();
    Twin twin(*place, {.flush_every = *rc::gen::inRange(1, 12)});
    for (const auto& [what, key, part] : steps) twin.step(what, key, part);
    twin.finish();
  }));
}

}  // namespace
}  // namespace pawl::test
