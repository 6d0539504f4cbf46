// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The specification of a worker: its configuration, the variables in it, and the children of a parent.
///
///     pawl::ChildSpec pump{
///         .name = "pump-1",
///         .worker_type = "mqtt_client",
///         .user_spec = {.config = "url: tcp://{{ .IP }}:{{ .PORT }}",
///                       .variables = {.user = {{"IP", {"\"10.0.0.7\""}}, {"PORT", {"1883"}}}}},
///         .state_mapping = {{"running", "connected"}, {"stopped", "stopped"}}};
///
///     // "10.0.0.7 of north"
///     pawl::render("{{ .IP }} of {{ .global.site }}", variables, internal).value();
///
/// There are three kinds of variables: the user's (`{{ .IP }}`), those of the whole tree (`{{ .global.site
/// }}`), and those that only the running program knows (`{{ .internal.id }}`), which are never stored. All
/// types here are values.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Variables that are stored and inherited by children. Each value is JSON, so that a number stays a number.
struct Variables {
  std::map<std::string, Json> user{};
  std::map<std::string, Json> global{};
  bool operator==(const Variables&) const = default;
};

/// Variables that only the running program knows: `{{ .internal.id }}`, `created_at`, `timestamp` (of the
/// last change of the specification), `parent_id` and its older name `bridged_by`.
struct InternalVariables {
  std::string id{};
  std::string parent_id{};  ///< empty at the root
  Time created_at{};
  Time timestamp{};
};

struct UserSpec {
  std::string config{};  ///< a template; the worker's type reads the rendered text
  Variables variables{};
  bool operator==(const UserSpec&) const = default;
};

struct ChildSpec {
  std::string name{};         ///< unique among its siblings; letters, digits, '_', '-', '.'; at most 63
  std::string worker_type{};  ///< a registered type
  UserSpec user_spec{};
  /// What the child should do in a state of the parent: "run", "park", or a stopped or running state of the
  /// child. `*` stands for all other states; without it they change nothing.
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;  ///< if false, the worker is parked
  static constexpr std::string_view kAnyState = "*";
  bool operator==(const ChildSpec&) const = default;
};

/// The variables of a child: its own, and those of the parent that it does not define. Objects are not
/// merged.
Variables inherit(const Variables& parent, const Variables& child);

/// Errors, each with the field `key` as a template names the variable: `spec_invalid` for a user variable
/// named `global` or `internal`, for a name that does not consist of letters, digits and '_' or begins with a
/// digit, and for a value that is not JSON or is nested more than 16 levels deep.
Result<void> validate(const Variables& variables);

/// Replaces each `{{ .name }}`, or `{{ .plc.port }}` for a member of an object, by its value. Strings are
/// inserted as they are, other values as compact JSON; inserted text is not expanded again. A quoted text
/// stands for itself, with the escapes \" \\ \n \t: `{{ "{{" }}`. An expression must be on one line. Errors,
/// each with the fields `line` and `column` (in characters, from 1) of the opening braces: `template_invalid`
/// for an invalid expression; `variable_missing`, with the fields `key`, `known` (the names at that place)
/// and, if one is similar, `nearest`; `spec_invalid` for a value that is not JSON; `too_large` if the text or
/// the result exceeds 1 MiB. Takes time proportional to the text and the values.
Result<std::string> render(std::string_view text, const Variables& variables,
                           const InternalVariables& internal);

/// For readers of configurations whose format has unquoted strings, such as YAML: marks an unquoted scalar,
/// so that a variable that is the whole scalar keeps its type. Scalars without variables are returned
/// unchanged.
std::string unquoted_text(std::string_view scalar);

/// The known name most similar to `written`, for "did you mean"; empty if none is similar. Similar means at
/// most one edit for up to four characters, two for up to eight, otherwise three; case is ignored. The first
/// of equally similar names wins. Names of more than 64 characters match only if nothing but the case
/// differs.
std::string nearest_name(std::string_view written, const std::vector<std::string>& known);

/// A location in five levels, as in ISA-95: enterprise, site, area, line, cell.
struct Location {
  static constexpr std::size_t kLevels = 5;
  std::vector<std::string> levels{};  ///< from the enterprise down; empty if unknown
};

/// The child's levels, and the parent's for those that are empty; always five. Error: `spec_invalid` for more
/// than five levels.
Result<Location> merge(const Location& parent, const Location& child);

/// The known levels, joined with dots.
std::string location_path(const Location& location);

}  // namespace pawl
