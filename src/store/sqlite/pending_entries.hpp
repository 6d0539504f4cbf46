// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Entries of the open batch that are not in the table yet. SQLite reads them as the rows of a virtual table
/// of the writer's connection, so that one statement appends them all:
///
///     INSERT INTO log(…) SELECT … FROM pawl_pending
///
/// This costs about half as much as one statement for each entry. `Appender` runs it.

#include <sqlite3.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "store/store.hpp"

namespace pawl::sqlite {

/// Some entries as rows. A value; not thread-safe.
class EntryRows {
 public:
  void add(const EntryView& entry, Seq seq, std::int64_t machine);
  /// Keeps its memory.
  void clear();
  bool empty() const { return rows_.empty(); }
  std::size_t size() const { return rows_.size(); }
  std::size_t bytes() const { return texts_.size(); }

  void column(std::size_t row, sqlite3_context* context, int column) const;

  /// The columns, in the order of `log`.
  static constexpr std::string_view kColumns =
      "seq, id, machine, kind, version, generation, prev, at, state, schema, finished, event, payload, data, "
      "extra, key, partition";

 private:
  static constexpr std::size_t kTexts = 7;  // state, event, payload, data, extra, key, partition
  struct Row {
    InstanceId id;
    std::array<std::int64_t, 9> numbers;  // those of the columns that are not texts
    std::array<std::uint32_t, kTexts> sizes;
    std::size_t text = 0;  // where the first of them begins
  };

  std::vector<Row> rows_;
  std::string texts_;
};

/// The virtual table. For one thread at a time. Not movable: the connection holds its address.
class PendingEntries {
 public:
  PendingEntries() = default;
  PendingEntries(const PendingEntries&) = delete;
  PendingEntries& operator=(const PendingEntries&) = delete;

  /// Registers the table with the connection, which must not outlive this object.
  Result<void> attach(Database& db);
  /// Sets the rows of the table; they must outlive the statements that read them.
  void show(const EntryRows& rows) { rows_ = &rows; }

 private:
  struct Cursor;
  struct Table;
  static const sqlite3_module kModule;
  static int connect(sqlite3* db, void* self, int, const char* const*, sqlite3_vtab** made, char**);

  const EntryRows* rows_ = nullptr;
};

}  // namespace pawl::sqlite
