// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/url.hpp"
#include "pawl/error.hpp"

namespace pawl::cli {

/// The token for a server: of `file` where one is given, else $PAWL_TOKEN, else the line of the credentials
/// file that begins with the server's address, else none. A file that others may read is refused with
/// `forbidden`.
Result<std::string> find_token(const Url& url, const std::string& file);

/// $PAWL_CREDENTIALS, else pawl/credentials in the directory of the user's configuration.
std::string credentials_path();

/// Stores the token in the credentials file, which only its owner may read; replaces the server's older line.
Result<void> keep_token(const Url& url, const std::string& token);

}  // namespace pawl::cli
