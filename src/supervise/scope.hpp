// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/worker_spec.hpp"

namespace pawl::supervise {

/// The length of the name that the text begins with (letters, digits and '_', not a digit first); 0: none.
std::size_t name_length(std::string_view text) noexcept;

/// Reads the value of a variable. It may be nested half as deeply as other JSON, so that it can be stored
/// inside of specifications.
Result<JsonDocument> parse_value(const Json& value);

/// "plc.port"
std::string joined_path(const std::vector<std::string_view>& path);

/// One value, with the members of an object, by name, once they were asked for.
struct ScopeNode {
  std::string_view name;
  JsonValue value;
  bool opened = false;
  std::vector<ScopeNode> members{};
};

/// Finds what a template names. Each value is read once, when it is first needed, and each object is sorted
/// once, so that the whole of a template takes time in proportion to it and to the values. Keeps references.
/// Not thread-safe.
class Scope {
 public:
  using Path = std::vector<std::string_view>;

  Scope(const Variables& variables, const InternalVariables& internal);

  struct Value {
    std::string text;
    bool is_text = true;  ///< otherwise `text` is JSON
  };
  /// What `{{ .a.b }}` stands for; the path is not empty. Errors: `variable_missing`,
  /// `template_invalid` for a whole namespace, `spec_invalid` for a value that is not JSON.
  Result<Value> value_of(const Path& path);

 private:
  struct Root {
    JsonDocument document;
    ScopeNode node;
  };
  using Roots = std::map<std::string_view, Root>;

  Result<Value> internal_value(const Path& path) const;
  /// The value of the variable at `path[at]`, then down the rest of the path.
  Result<Value> stored_value(const std::map<std::string, Json>& stored, Roots& roots, const Path& path,
                             std::size_t at);
  Result<Value> nested_value(ScopeNode& root, const Path& path, std::size_t at) const;
  /// The error for `path[at]`, where these names are known.
  std::unexpected<Error> missing(const Path& path, std::size_t at,
                                 const std::vector<std::string>& known) const;
  /// The name of a namespace that has a variable of this name, for those who forgot it; or empty.
  std::string elsewhere(const Path& path) const;

  const Variables& variables_;
  std::map<std::string, std::string, std::less<>> internal_;
  Roots user_;
  Roots global_;
};

}  // namespace pawl::supervise
