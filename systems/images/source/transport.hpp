// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One request over HTTP, with libcurl.
///
///     auto head = perform({.url = "http://127.0.0.1:9000/images/a.tar", .on_body = …}, stop);
///
/// Redirects are not followed and nothing is decoded: what arrives is what is stored.

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "images/source/answer.hpp"
#include "images/source/sigv4.hpp"
#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images::s3 {

/// Takes a piece of the body; false: no more is wanted, which is no failure.
using OnBody = std::function<Result<bool>(const AnswerHead& head, std::string_view bytes)>;

struct HttpCall {
  std::string url;
  bool head_only = false;  ///< HEAD instead of GET
  Pairs headers{};
  Duration connect_timeout{};
  Duration stall_timeout{};
  OnBody on_body{};
};

/// Errors: `source_failed` if no whole answer came, `cancelled`, and what `on_body` returned. Thread-safe.
Result<AnswerHead> perform(const HttpCall& call, const std::stop_token& stop);

}  // namespace pawl::images::s3
