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

/// The length of the name (letters, digits and '_', not a digit first) at the start of the text; 0 if none.
std::size_t name_length(std::string_view text) noexcept;

/// Parses the value of a variable. It may be nested half as deeply as other JSON, so that specifications can
/// contain it.
Result<JsonDocument> parse_value(const Json& value);

/// "plc.port"
std::string joined_path(const std::vector<std::string_view>& path);

/// A value; the members of an object are filled in on first use.
struct ScopeNode {
  std::string_view name;
  JsonValue value;
  bool opened = false;
  std::vector<ScopeNode> members{};
};

/// Looks up the variables of a template. Parses each value and sorts each object once, on first use, so that
/// rendering takes time proportional to the template and the values. Keeps references. Not thread-safe.
class Scope {
 public:
  using Path = std::vector<std::string_view>;

  Scope(const Variables& variables, const InternalVariables& internal);

  struct Value {
    std::string text;
    bool is_text = true;  ///< otherwise `text` is JSON
  };
  /// The value of `{{ .a.b }}`; the path must not be empty. Errors: `variable_missing`,
  /// `template_invalid` for a whole namespace, `spec_invalid` for a value that is not JSON.
  Result<Value> value_of(const Path& path);

 private:
  struct Root {
    JsonDocument document;
    ScopeNode node;
  };
  using Roots = std::map<std::string_view, Root>;

  Result<Value> internal_value(const Path& path) const;
  /// The value of the variable `path[at]`, followed down the rest of the path.
  Result<Value> stored_value(const std::map<std::string, Json>& stored, Roots& roots, const Path& path,
                             std::size_t at);
  Result<Value> nested_value(ScopeNode& root, const Path& path, std::size_t at) const;
  /// The error for an unknown name `path[at]`.
  std::unexpected<Error> missing(const Path& path, std::size_t at,
                                 const std::vector<std::string>& known) const;
  /// A namespace that has a variable of this name, for "did you mean"; otherwise empty.
  std::string elsewhere(const Path& path) const;

  const Variables& variables_;
  std::map<std::string, std::string, std::less<>> internal_;
  Roots user_;
  Roots global_;
};

}  // namespace pawl::supervise
