// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a PostgreSQL store is: the URL taken apart. What libpq understands is passed on to it untouched;
/// what begins with `pawl_` is ours.
///
///     PAWL_TRY(auto address, Address::parse(options));   // takes pawl_… parameters over into the options
///     address.shown();                                   // "pawl@db1:5432/orders", never a password

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store.hpp"

namespace pawl::postgres {

/// A value.
class Address {
 public:
  /// Error: `invalid_argument`; its message holds nothing of the URL that could be a secret.
  static Result<Address> parse(PostgresOptions& options);

  /// What to call it in messages.
  const std::string& shown() const { return shown_; }
  /// What libpq is given.
  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }
  /// Uses this value unless the URL says something else.
  void set_default(const std::string& name, const std::string& value);
  /// The text without any password of this address in it.
  std::string redact(std::string text) const;

 private:
  std::vector<std::pair<std::string, std::string>> settings_;
  std::vector<std::string> secrets_;
  std::string shown_;
};

}  // namespace pawl::postgres
