// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What people who may only look do not see of a worker: the values of its variables wherever they were put,
/// of environments and of headers, and the arguments of a command. Names are shown.

#include <string>
#include <string_view>
#include <vector>

#include "pawl/supervisor.hpp"

namespace pawl::workers {

inline constexpr std::string_view kHidden = "(hidden)";

/// Of one worker. A value; safe concurrently.
class Secrets {
 public:
  explicit Secrets(const WorkerView& worker);

  /// The text with each secret value hidden.
  std::string hide(std::string_view text) const;
  /// The same for each text in JSON. Hides the values of every object called `environment`, `headers` or
  /// `variables`, all
  /// but the first of a list called `command`, and texts that name one of them, such as the configuration of
  /// a parent's children. What is no JSON is hidden as a whole.
  std::string hide_json(std::string_view json) const;
  /// The same for the text of a configuration.
  std::string hide_config(std::string_view text) const;

 private:
  std::vector<std::string> values_{};  ///< the longest first, because one may be part of another
};

}  // namespace pawl::workers
