// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Restricts what a statement may do, using SQLite's own parser instead of the text.
///
///     authorizer.install(db);
///     const auto scope = authorizer.allow(Allow::write);   // application statements run here
///
/// Installed once per connection and switched by a variable, because installing an authorizer makes SQLite
/// prepare every statement of the connection again.

#include <cstdint>
#include <string>

#include "store/sqlite/connection.hpp"

namespace pawl::sqlite {

enum class Allow : std::uint8_t {
  all,     ///< our own statements
  read,    ///< an application's SELECT
  write,   ///< reads and writes of the application's own tables
  define,  ///< CREATE, ALTER and DROP of these tables as well
};

/// Must outlive its connection and must not move. For the connection's thread.
class Authorizer {
 public:
  Authorizer() = default;
  Authorizer(const Authorizer&) = delete;
  Authorizer& operator=(const Authorizer&) = delete;

  void install(Database& db);

  class Scope {
   public:
    explicit Scope(Authorizer& authorizer) : authorizer_(authorizer) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() { authorizer_.allow_ = Allow::all; }

   private:
    Authorizer& authorizer_;
  };
  [[nodiscard]] Scope allow(Allow what);

  /// The action for which the last statement was refused, e.g. "PRAGMA journal_mode".
  const std::string& refused() const { return refused_; }

 private:
  static int decide(void* self, int action, const char* first, const char* second, const char* database,
                    const char* trigger);
  bool permits(int action, const char* first, const char* second, const char* database) const;

  Allow allow_ = Allow::all;
  std::string refused_;
};

}  // namespace pawl::sqlite
