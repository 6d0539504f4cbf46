// SPDX-License-Identifier: Apache-2.0
// What an object store answers: whatever its heads, refusals and redirects hold, what is read of them is
// well-formed.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "images/source/answer.hpp"
#include "images/source/s3.hpp"
#include "images/source/sigv4.hpp"
#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"

namespace pawl::images::s3 {
namespace {

void check_refusal(std::string_view body) {
  const auto refusal = parse_refusal(body);
  PAWL_ASSERT(refusal.code.size() <= 64 && refusal.message.size() <= 256, "what is shown is short");
  PAWL_ASSERT(is_utf8(refusal.code) && is_utf8(refusal.message), "it can be shown and sent");
  PAWL_ASSERT(std::ranges::none_of(refusal.message, [](unsigned char c) { return c < ' ' || c == 0x7f; }),
              "it does not steer a terminal");
  PAWL_ASSERT(refusal.region.empty() || is_region(refusal.region), "a region is fit for a host name");
}

void check_url(std::string_view text) {
  const auto url = parse_url(text);
  if (!url) {
    PAWL_ASSERT(is_utf8(url.error().message()), "a message can be shown and sent");
    return;
  }
  PAWL_ASSERT(may_follow(*url, *url), "the same place is allowed");
  const auto again = parse_url(origin(*url) + encode(url->path, true));
  PAWL_ASSERT(again && *again == *url, "what was written can be read", text);
}

void check_head(std::string_view lines) {
  AnswerHead head;
  while (!lines.empty()) {
    const auto end = std::min(lines.find('\n'), lines.size() - 1);
    head.add(lines.substr(0, end + 1));
    lines.remove_prefix(end + 1);
  }
  PAWL_ASSERT(head.status >= 0 && head.status <= 999, "a status has three digits");
  PAWL_ASSERT(is_utf8(head.etag) && head.etag.find('\n') == std::string::npos, "a tag is one line");
  PAWL_ASSERT(!head.range || head.range->first <= head.range->last, "a range has an order");
  PAWL_ASSERT(!head.range || head.range->last <= head.range->total, "a range is within the whole");
  PAWL_ASSERT(head.region.empty() || is_region(head.region), "a region is fit for a host name");
  check_url(head.location);
}

}  // namespace
}  // namespace pawl::images::s3

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  pawl::images::s3::check_head(input);
  pawl::images::s3::check_refusal(input);
  pawl::images::s3::check_url(input);
  return 0;
}
