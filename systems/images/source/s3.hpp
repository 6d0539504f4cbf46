// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The parts of the S3 source that tests look at by themselves.

#include <functional>
#include <memory>
#include <string_view>

#include "images/source/answer.hpp"
#include "images/source/source.hpp"
#include "pawl/time.hpp"

namespace pawl::images::s3 {

/// Whether a request for an object at `base` may be repeated, signed, at `target`: never with less
/// protection, and only at the same host and port, at a host below it, or from one endpoint of Amazon's S3 to
/// another. Everybody else learns neither a signature nor a session token.
bool may_follow(const Url& base, const Url& target);

/// With a clock to sign by.
Result<std::unique_ptr<Source>> open_with_clock(S3Options options, std::function<Time()> clock);

}  // namespace pawl::images::s3
