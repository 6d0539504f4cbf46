// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace pawl {

/// Whether the whole text is well-formed UTF-8, without surrogates and overlong forms.
bool is_utf8(std::string_view text) noexcept;

/// The beginning of a text from outside, fit for a message: about 64 bytes, cut between characters and then
/// ending in "…", and always UTF-8, because messages travel as JSON.
std::string shown(std::string_view text);

}  // namespace pawl
