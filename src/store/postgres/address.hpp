// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parsed URL of a PostgreSQL store. Parameters of libpq are passed on unchanged; those that begin with
/// `pawl_` are Pawl's own.
///
///     PAWL_TRY(auto address, Address::parse(options));   // moves pawl_… parameters into the options
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
  /// Error: `invalid_argument`; its message contains no part of the URL that could be a secret.
  static Result<Address> parse(PostgresOptions& options);

  /// Name of the store in messages.
  const std::string& shown() const { return shown_; }
  /// The settings for libpq.
  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }
  /// Sets a value unless the URL contains one.
  void set_default(const std::string& name, const std::string& value);
  /// The text with the password of this address removed.
  std::string redact(std::string text) const;

 private:
  std::vector<std::pair<std::string, std::string>> settings_;
  std::vector<std::string> secrets_;
  std::string shown_;
};

}  // namespace pawl::postgres
