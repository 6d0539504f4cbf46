// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a worker is to be: its configuration text, the variables in it, and the children of a parent.
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
/// Three kinds of variables: the user's stand at the top (`{{ .IP }}`), those of the whole tree below
/// `global`, and what is known at run time only below `internal`; the last are never stored. Everything here
/// is a value.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/codec.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl {

/// Variables that are stored and handed down; each value is JSON, so that a number stays a number.
struct Variables {
  std::map<std::string, Json> user{};
  std::map<std::string, Json> global{};
  bool operator==(const Variables&) const = default;
};

/// What only the running program knows of a worker: `{{ .internal.id }}`, `created_at`, `timestamp` (of the
/// last change of its specification), `parent_id` and, as an older name of it, `bridged_by`.
struct InternalVariables {
  std::string id{};
  std::string parent_id{};  ///< empty at the root
  Time created_at{};
  Time timestamp{};
};

struct UserSpec {
  std::string config{};  ///< a template; what it renders to is read by the worker's type
  Variables variables{};
  bool operator==(const UserSpec&) const = default;
};

struct ChildSpec {
  std::string name{};         ///< unique among its siblings; letters, digits, '_', '-', '.'; at most 63
  std::string worker_type{};  ///< a registered one
  UserSpec user_spec{};
  /// State of the parent to what the child should be then: one of the child's own states in which it rests or
  /// runs, or "run" or "park". `*` stands for all states that are not named; without it they change nothing.
  std::map<std::string, std::string> state_mapping{};
  bool enabled = true;  ///< false: it is there, but parked
  static constexpr std::string_view kAnyState = "*";
  bool operator==(const ChildSpec&) const = default;
};

/// What the child sees: everything of the parent, where it has no value of its own. Values are taken whole;
/// objects are not merged.
Variables inherit(const Variables& parent, const Variables& child);

/// Errors: `spec_invalid` for a user variable called `global` or `internal`, a name that no template can use
/// (letters, digits and '_', not beginning with a digit), and a value that is not JSON or is nested more than
/// 16 levels deep; each with the field `key`, as a template would name it.
Result<void> validate(const Variables& variables);

/// Puts values in place of `{{ .name }}`, and of `{{ .plc.port }}` inside of an object. A string stands as it
/// is, other values as compact JSON; what was put in is not read again. There is nothing else but a quoted
/// text, which stands for itself and may have the escapes \" \\ \n \t: `{{ "{{" }}`. An expression is on one
/// line. Errors, each with the fields `line` and `column` (in characters, from 1) of the opening braces:
/// `template_invalid` for what is not such an expression; `variable_missing`, with the fields `key`, `known`
/// (the names at that place) and, if one is near, `nearest`; `spec_invalid` for a value that is not JSON;
/// `too_large` for a text or a result beyond 1 MiB. Takes time in proportion to the text and the values.
Result<std::string> render(std::string_view text, const Variables& variables,
                           const InternalVariables& internal);

/// What a reader of configurations gives for a text that stands without quotes, where the format has quotes
/// and the text is one that is not: a variable that stands there alone keeps its type. Others are left as
/// they are.
std::string unquoted_text(std::string_view scalar);

/// The known name nearest to what was written, or empty where none is near: for "did you mean". Near is one
/// change for up to four characters, two for up to eight, else three; the case of letters is none. Of equally
/// near ones it is the first. Names of more than 64 characters are near only where nothing but the case
/// differs.
std::string nearest_name(std::string_view written, const std::vector<std::string>& known);

/// Five levels of a place, as in ISA-95: enterprise, site, area, line, cell.
struct Location {
  static constexpr std::size_t kLevels = 5;
  std::vector<std::string> levels{};  ///< from the enterprise down; an empty one is not known
};

/// The child's levels where it has them, otherwise the parent's; always five. Error: `spec_invalid` where one
/// of them has more than five.
Result<Location> merge(const Location& parent, const Location& child);

/// The known levels, joined by dots.
std::string location_path(const Location& location);

}  // namespace pawl
