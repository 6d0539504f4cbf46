// SPDX-License-Identifier: Apache-2.0
#include "workers/types/http_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "workers/types/http_call.hpp"

namespace pawl::workers {
namespace {

constexpr int kFirstStatus = 100;
constexpr int kLastStatus = 599;

bool is_expected(int status, const std::vector<StatusRange>& ranges) {
  return std::ranges::any_of(
      ranges, [&](const StatusRange& range) { return range.first <= status && status <= range.last; });
}

/// Why the answer is not as expected; empty if it is.
std::string problem_of(const HttpAnswer& answer, const HttpDesired& desired) {
  if (!answer.error.empty()) return answer.error;
  if (!is_expected(answer.status, desired.expect_status))
    return fmt::format("status {} is not among the expected ones", answer.status);
  if (!desired.expect_body.empty() && answer.body.find(desired.expect_body) == std::string::npos)
    return "the answer does not hold the expected text";
  return {};
}

bool is_header_name(std::string_view name) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kMarks.contains(c);
  });
}

Result<void> validate_headers(const HttpDesired& desired) {
  for (const auto& [name, value] : desired.headers) {
    if (is_header_name(name) && value.find_first_of("\r\n") == std::string::npos &&
        value.find('\0') == std::string::npos)
      continue;
    // The value may be a secret.
    return fail(Code::spec_invalid, fmt::format("the header '{}' has letters that HTTP does not allow", name),
                {{"field", "headers"}});
  }
  return {};
}

bool read_number(std::string_view text, int& out) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Certificate certificate_at(Time expires, Time now) {
  using std::chrono::days;
  if (expires <= now) return Certificate::expired;
  if (expires - now > days(30)) return Certificate::over_30_days;
  if (expires - now > days(7)) return Certificate::over_7_days;
  return expires - now > days(1) ? Certificate::over_1_day : Certificate::within_1_day;
}

Result<HttpDesired> HttpCheck::derive(HttpDesired read) {
  const std::string_view url = *read.url;
  if ((!url.starts_with("http://") && !url.starts_with("https://")) ||
      url.find_first_of(" \r\n") != url.npos) {
    return fail(Code::spec_invalid,
                fmt::format("url is '{}'; write http://… or https://… without blanks", url),
                {{"field", "url"}});
  }
  const auto host = url.substr(url.find("//") + 2);
  if (host.substr(0, host.find_first_of("/?#")).find('@') != host.npos) {
    return fail(Code::spec_invalid,
                "url holds a name or a password; it is stored and shown, so leave them out",
                {{"field", "url"}});
  }
  if (read.method != "GET" && read.method != "HEAD") {
    return fail(Code::spec_invalid, fmt::format("method is '{}'; it is GET or HEAD", read.method),
                {{"field", "method"}});
  }
  if (read.method == "HEAD" && !read.expect_body.empty()) {
    return fail(Code::spec_invalid, "expect_body needs the method GET: an answer to HEAD has no body",
                {{"field", "expect_body"}});
  }
  if (read.expect_status.empty()) {
    return fail(Code::spec_invalid, "expect_status is empty; name at least one status, or leave it out",
                {{"field", "expect_status"}});
  }
  PAWL_CHECK(validate_headers(read));
  PAWL_CHECK(validate_check(limits(read), read.timeout));
  return read;
}

Result<HttpObserved> HttpCheck::collect(CheckRun& run, const HttpDesired& desired,
                                        const CollectContext& context) {
  PAWL_TRY(const auto answer, ask(desired, context.stop));
  HttpObserved seen;
  if (answer.status != 0) seen.status = answer.status;
  if (answer.certificate_expires) seen.certificate = certificate_at(*answer.certificate_expires, context.now);
  if (answer.certificate_expired) seen.certificate = Certificate::expired;
  auto problem = problem_of(answer, desired);
  seen.check = problem.empty() ? run.passed(answer.taken, context.now, limits(desired))
                               : run.failed(std::move(problem), context.now, limits(desired));
  return seen;
}

void add_http_check(WorkerTypes& types) { types.add<HttpCheck>(); }

}  // namespace pawl::workers

namespace pawl {

void Codec<workers::StatusRange>::write(JsonWriter& out, const workers::StatusRange& value) {
  if (value.first == value.last) {
    out.integer(std::int64_t{value.first});
  } else {
    out.string(fmt::format("{}-{}", value.first, value.last));
  }
}

bool Codec<workers::StatusRange>::read(JsonValue in, workers::StatusRange& out, DecodeFailure& why) {
  constexpr std::string_view kExpected = "a status such as 200, or a range such as \"200-299\"";
  if (const auto text = in.as_string()) {
    const auto dash = std::min(text->find('-'), text->size());
    const auto last = dash == text->size() ? *text : text->substr(dash + 1);
    if (!workers::read_number(text->substr(0, dash), out.first) || !workers::read_number(last, out.last))
      return why.refuse(kExpected, in);
  } else {
    std::int64_t number = 0;
    if (!Codec<std::int64_t>::read(in, number, why)) return false;
    out.first = out.last = static_cast<int>(std::clamp<std::int64_t>(number, 0, 1000));
  }
  const bool possible =
      workers::kFirstStatus <= out.first && out.first <= out.last && out.last <= workers::kLastStatus;
  return possible || why.refuse(Code::wrong_type, "a status is 100 to 599, and a range goes upwards");
}

}  // namespace pawl
