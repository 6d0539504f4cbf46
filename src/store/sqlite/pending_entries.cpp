// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/pending_entries.hpp"

#include <utility>

namespace pawl::sqlite {
namespace {

/// The source of a column: a number, a text, or the id.
struct ColumnSource {
  enum class Kind : std::uint8_t { id, number, text } kind;
  std::size_t index;
};
using Kind = ColumnSource::Kind;
constexpr auto kSources = std::to_array<ColumnSource>({
    {Kind::number, 0},  // seq
    {Kind::id, 0},      // id
    {Kind::number, 1},  // machine
    {Kind::number, 2},  // kind
    {Kind::number, 3},  // version
    {Kind::number, 4},  // generation
    {Kind::number, 5},  // prev
    {Kind::number, 6},  // at
    {Kind::text, 0},    // state
    {Kind::number, 7},  // schema
    {Kind::number, 8},  // finished
    {Kind::text, 1},    // event
    {Kind::text, 2},    // payload
    {Kind::text, 3},    // data
    {Kind::text, 4},    // extra
    {Kind::text, 5},    // key
    {Kind::text, 6},    // partition
});

}  // namespace

struct PendingEntries::Table : sqlite3_vtab {
  const PendingEntries* entries;
};
struct PendingEntries::Cursor : sqlite3_vtab_cursor {
  const PendingEntries* entries;
  std::size_t row;
};

int PendingEntries::connect(sqlite3* db, void* self, int, const char* const*, sqlite3_vtab** made, char**) {
  const auto declaration = "CREATE TABLE pending(" + std::string(EntryRows::kColumns) + ")";
  if (const int code = sqlite3_declare_vtab(db, declaration.c_str()); code != SQLITE_OK) return code;
  *made = new Table{{}, static_cast<const PendingEntries*>(self)};
  return SQLITE_OK;
}

void EntryRows::column(std::size_t number, sqlite3_context* context, int column) const {
  const auto& row = rows_[number];
  const auto source = kSources.at(static_cast<std::size_t>(column));
  if (source.kind == Kind::number) {
    sqlite3_result_int64(context, row.numbers.at(source.index));
  } else if (source.kind == Kind::id) {
    sqlite3_result_blob(context, row.id.bytes.data(), static_cast<int>(row.id.bytes.size()), SQLITE_STATIC);
  } else if (row.sizes.at(source.index) != 0) {
    auto begin = row.text;
    for (std::size_t i = 0; i < source.index; ++i) begin += row.sizes.at(i);
    sqlite3_result_text(context, texts_.data() + begin, static_cast<int>(row.sizes.at(source.index)),
                        SQLITE_STATIC);
  }
}

const sqlite3_module PendingEntries::kModule{
    .iVersion = 1,
    .xConnect = &PendingEntries::connect,
    .xBestIndex = [](sqlite3_vtab*, sqlite3_index_info*) { return SQLITE_OK; },
    .xDisconnect =
        [](sqlite3_vtab* table) {
          delete static_cast<Table*>(table);
          return SQLITE_OK;
        },
    .xOpen =
        [](sqlite3_vtab* table, sqlite3_vtab_cursor** made) {
          *made = new Cursor{{}, static_cast<Table*>(table)->entries, 0};
          return SQLITE_OK;
        },
    .xClose =
        [](sqlite3_vtab_cursor* cursor) {
          delete static_cast<Cursor*>(cursor);
          return SQLITE_OK;
        },
    .xFilter =
        [](sqlite3_vtab_cursor* cursor, int, const char*, int, sqlite3_value**) {
          static_cast<Cursor*>(cursor)->row = 0;
          return SQLITE_OK;
        },
    .xNext =
        [](sqlite3_vtab_cursor* cursor) {
          ++static_cast<Cursor*>(cursor)->row;
          return SQLITE_OK;
        },
    .xEof =
        [](sqlite3_vtab_cursor* cursor) {
          const auto* at = static_cast<Cursor*>(cursor);
          return at->row < at->entries->rows_->size() ? 0 : 1;
        },
    .xColumn =
        [](sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
          const auto* at = static_cast<Cursor*>(cursor);
          at->entries->rows_->column(at->row, context, column);
          return SQLITE_OK;
        },
    .xRowid =
        [](sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) {
          *rowid = static_cast<sqlite3_int64>(static_cast<Cursor*>(cursor)->row);
          return SQLITE_OK;
        },
};

Result<void> PendingEntries::attach(Database& db) {
  const int code = sqlite3_create_module_v2(db.get(), "pawl_pending", &kModule, this, nullptr);
  if (code != SQLITE_OK) return fail(db.error(code, "making the pending entries readable"));
  return {};
}

void EntryRows::add(const EntryView& entry, Seq seq, std::int64_t machine) {
  Row row{.id = entry.id,
          .numbers = {seq, machine, std::int64_t{std::to_underlying(entry.kind)}, entry.version,
                      entry.generation, entry.prev, std::int64_t{entry.at.time_since_epoch().count()},
                      entry.schema, std::int64_t{entry.finished}},
          .sizes = {},
          .text = texts_.size()};
  const std::array<std::string_view, kTexts> texts{entry.state, entry.event, entry.payload,  entry.data,
                                                   entry.extra, entry.key,   entry.partition};
  for (std::size_t i = 0; i < kTexts; ++i) {
    row.sizes.at(i) = static_cast<std::uint32_t>(texts.at(i).size());
    texts_ += texts.at(i);
  }
  rows_.push_back(row);
}

void EntryRows::clear() {
  rows_.clear();
  texts_.clear();
}

}  // namespace pawl::sqlite
