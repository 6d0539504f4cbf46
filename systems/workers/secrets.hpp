// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What people who may only look do not see: the values of environments and headers, which are where
/// passwords and tokens are. Their names are shown.

#include <string>
#include <string_view>

namespace pawl::workers {

inline constexpr std::string_view kHidden = "(hidden)";

/// The same JSON with the values of every object called `environment` or `headers` hidden, and texts that
/// name one of them, such as the configuration of a parent's children. What is no JSON is hidden as a whole.
std::string hide_secrets(std::string_view json);

/// The same for the text of a configuration.
std::string hide_secrets_in_text(std::string_view text);

}  // namespace pawl::workers
