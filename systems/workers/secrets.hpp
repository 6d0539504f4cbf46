// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What roles below operator do not see of a worker: the values of its variables wherever they were put, the
/// fields that its type declares as confidential (`WorkerType::confidential`), and the user information and
/// the query of URLs. Names of fields and variables are shown.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"
#include "pawl/worker_types.hpp"

namespace pawl::workers {

inline constexpr std::string_view kHidden = "(hidden)";

/// The secrets of one worker. A value; const use is safe concurrently. The type must outlive it.
class Secrets {
 public:
  Secrets(const WorkerView& worker, const WorkerType& type);

  /// Hides the secrets of an earlier specification of the worker, too.
  void add(const UserSpec& spec);

  /// The text without secret values. Values shorter than four characters are part of too many words: they are
  /// hidden only where they are the whole text.
  std::string hide(std::string_view text) const;
  /// The same for each text and number in JSON. Text that is not JSON is hidden as a whole.
  std::string hide_json(std::string_view json) const;
  /// The same for what is desired; values in confidential fields are hidden whatever they are.
  std::string hide_desired(std::string_view json) const;
  /// The same for the text of a configuration. It is hidden as a whole if it names a confidential field.
  std::string hide_config(std::string_view text) const;

 private:
  void add_variables(const Variables& variables);
  void add_desired(std::string_view json);
  void add_value(std::string value);

  const WorkerType* type_;
  std::vector<std::string> values_{};  ///< the longest first, because one may be part of another
  std::set<std::string, std::less<>> short_values_{};
};

}  // namespace pawl::workers
