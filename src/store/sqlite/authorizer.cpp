// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite/authorizer.hpp"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

#include "store/sqlite/schema.hpp"

namespace pawl::sqlite {
namespace {

std::string_view view(const char* text) { return text == nullptr ? std::string_view{} : text; }

/// Describes an action for a refusal.
std::string describe(int action, std::string_view first, std::string_view second) {
  switch (action) {
    case SQLITE_TRANSACTION:
      return fmt::format("{} (transaction control)", first);
    case SQLITE_SAVEPOINT:
      return fmt::format("{} of a savepoint (transaction control)", first);
    case SQLITE_PRAGMA:
      return fmt::format("PRAGMA {}", first);
    case SQLITE_ATTACH:
      return "ATTACH, or VACUUM, which attaches";
    case SQLITE_DETACH:
      return "DETACH";
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      return fmt::format("writing the table '{}', which is not the application's", first);
    case SQLITE_ANALYZE:
      return "ANALYZE";
    case SQLITE_REINDEX:
      return fmt::format("REINDEX {}", first);
    default:
      return fmt::format("changing the schema ('{}'{}{})", first, second.empty() ? "" : " on ", second);
  }
}

/// Tables that SQLite itself writes when a schema changes.
bool is_schema_table(std::string_view name) {
  return name.starts_with("sqlite_master") || name.starts_with("sqlite_schema") ||
         name == "sqlite_sequence" || name.starts_with("sqlite_stat");
}

}  // namespace

void Authorizer::install(Database& db) { sqlite3_set_authorizer(db.get(), &Authorizer::decide, this); }

Authorizer::Scope Authorizer::allow(Allow what) {
  allow_ = what;
  refused_.clear();
  return Scope(*this);
}

int Authorizer::decide(void* self, int action, const char* first, const char* second, const char* database,
                       const char* /*trigger*/) {
  auto& authorizer = *static_cast<Authorizer*>(self);
  if (authorizer.allow_ == Allow::all || authorizer.permits(action, first, second, database))
    return SQLITE_OK;
  if (authorizer.refused_.empty()) authorizer.refused_ = describe(action, view(first), view(second));
  return SQLITE_DENY;
}

bool Authorizer::permits(int action, const char* first, const char* second, const char* database) const {
  const bool defining = allow_ == Allow::define;
  const bool temporary = view(database) == "temp";
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE:
      return true;
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
      if (allow_ == Allow::read || is_own_table(view(first))) return false;
      // SQLite keeps AUTOINCREMENT's counters without asking; its schema table it asks for while defining.
      return !is_schema_table(view(first)) || defining;
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_CREATE_VTABLE:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_VTABLE:
      return defining && !temporary && !is_own_table(view(first));
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
      return defining && !temporary && !is_own_table(view(second));
    case SQLITE_ALTER_TABLE:  // the arguments are the database and the table
      return defining && !is_own_table(view(second));
    case SQLITE_REINDEX:
      return defining;
    default:
      return false;
  }
}

}  // namespace pawl::sqlite
