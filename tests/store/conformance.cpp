// SPDX-License-Identifier: Apache-2.0
#include "tests/store/conformance.hpp"

#include <chrono>
#include <ostream>

namespace pawl::test {

EntryView Draft::view() const {
  return {.id = id,
          .kind = kind,
          .machine = machine,
          .key = key,
          .partition = partition,
          .version = version,
          .generation = generation,
          .prev = prev,
          .state = state,
          .schema = schema,
          .at = at,
          .event = event,
          .payload = payload,
          .data = data,
          .extra = extra,
          .finished = finished};
}

Entry Draft::stored(Seq seq) const {
  return {.seq = seq,
          .id = id,
          .kind = kind,
          .machine = machine,
          .key = key,
          .partition = partition,
          .version = version,
          .generation = generation,
          .prev = prev,
          .state = state,
          .schema = schema,
          .at = at,
          .event = event,
          .payload = payload,
          .data = data,
          .extra = extra,
          .finished = finished};
}

std::map<InstanceId, LoadedHead> load_all(Store& store) {
  std::map<InstanceId, LoadedHead> heads;
  const auto done = store.load([&](const StoredHead& head) {
    LoadedHead copy{.id = head.id,
                    .machine = std::string(head.machine),
                    .key = std::string(head.key),
                    .partition = std::string(head.partition),
                    .version = head.version,
                    .generation = head.generation,
                    .seq = head.seq,
                    .state = std::string(head.state),
                    .created_at = head.created_at,
                    .at = head.at,
                    .extra = std::string(head.extra),
                    .finished = head.finished};
    EXPECT_TRUE(heads.emplace(head.id, std::move(copy)).second) << "loaded twice: " << head.key;
  });
  EXPECT_TRUE(done) << done.error().to_string();
  return heads;
}

void PrintTo(const LoadedHead& head, std::ostream* out) {
  *out << head.machine << " '" << head.key << "' in '" << head.partition << "' version " << head.version
       << " generation " << head.generation << " seq " << head.seq << " state " << head.state << " created "
       << head.created_at.time_since_epoch().count() << " at " << head.at.time_since_epoch().count()
       << " extra '" << head.extra << "' finished " << head.finished;
}

std::string problems(Store& store) {
  const auto checked = store.check();
  if (!checked) return checked.error().to_string();
  std::string lines;
  for (const auto& problem : checked->problems) lines += problem + "\n";
  return lines;
}

Time at_second(std::int64_t k) { return Time(std::chrono::seconds(1'700'000'000 + k)); }

Draft created(const std::string& key) {
  return {.id = instance_id("door", key),
          .kind = EntryKind::created,
          .key = key,
          .at = at_second(0),
          .data = R"({"opened":0})"};
}

Draft after(const Draft& last, Seq seq, const std::string& state) {
  Draft draft = last;
  draft.kind = EntryKind::fired;
  draft.key.clear();
  draft.partition.clear();
  ++draft.version;
  draft.prev = seq;
  draft.state = state;
  draft.at = last.at + std::chrono::seconds(1);
  draft.event = "Push";
  draft.payload = R"({"by":"hand"})";
  draft.data = R"({"opened":)" + std::to_string(draft.version) + "}";
  return draft;
}

Result<Seq> join(Store& store, const Draft& draft, std::optional<RequestTag> request) {
  return join(store, std::vector{draft}, {}, request);
}

Result<Seq> join(Store& store, const std::vector<Draft>& drafts, const std::vector<Sql>& sql,
                 std::optional<RequestTag> request) {
  std::vector<EntryView> views;
  for (const auto& draft : drafts) views.push_back(draft.view());
  return store.apply({.entries = views, .sql = sql, .request = request});
}

Seq write(Store& store, const Draft& draft) {
  const auto seq = join(store, draft);
  EXPECT_TRUE(seq) << seq.error().to_string();
  const auto done = store.commit();
  EXPECT_TRUE(done) << done.error().to_string();
  return seq.value_or(0);
}

std::vector<Draft> fill(Store& store, int count) {
  std::vector<Draft> drafts;
  for (int i = 0; i < count; ++i) {
    drafts.push_back(created("k" + std::to_string(i)));
    write(store, drafts.back());
  }
  return drafts;
}

RequestTag request(std::uint8_t number, std::int64_t content) {
  RequestTag tag;
  tag.id.fill(number);
  tag.content = content;
  return tag;
}

void Conformance::SetUp() {
  if (!place_) GTEST_SKIP() << "what this store needs is not installed";
}

std::unique_ptr<Store> Conformance::open(const PlaceOptions& options) {
  auto store = place_->open(options);
  if (!store) throw std::runtime_error(store.error().to_string());
  return *std::move(store);
}

std::unique_ptr<Store> Conformance::reopen(std::unique_ptr<Store> store, const PlaceOptions& options) {
  store.reset();
  return open(options);
}

std::unique_ptr<Store> Conformance::crash(std::unique_ptr<Store> store, const PlaceOptions& options) {
  auto again = place_->open_after_crash(std::move(store), options);
  if (!again) throw std::runtime_error(again.error().to_string());
  return *std::move(again);
}

void StoreSql::SetUp() {
  Conformance::SetUp();
  if (IsSkipped()) return;
  store_ = open();
  const std::vector schema{plain("CREATE TABLE invoice(id TEXT PRIMARY KEY, cents INTEGER NOT NULL)")};
  ASSERT_TRUE(store_->execute(schema));
}

Result<Seq> StoreSql::run(const Sql& sql, const std::string& key) {
  return join(*store_, {created(key)}, {sql});
}

void StoreSql::limit_queries(const QueryLimits& limits) {
  store_ = reopen(std::move(store_), {.query_limits = limits});
}

Rows StoreSql::invoices() {
  return store_->query(plain("SELECT id, cents FROM invoice ORDER BY id")).value();
}

}  // namespace pawl::test

namespace pawl {

void PrintTo(const Entry& entry, std::ostream* out) {
  *out << "entry " << entry.seq << " of " << entry.id.to_string().substr(0, 8) << " version " << entry.version
       << " generation " << entry.generation << " prev " << entry.prev << " state " << entry.state
       << " event '" << entry.event << "' data " << entry.data << " extra '" << entry.extra << "' key '"
       << entry.key << "' at " << entry.at.time_since_epoch().count();
}

void PrintTo(Code code, std::ostream* out) { *out << name(code); }

}  // namespace pawl
