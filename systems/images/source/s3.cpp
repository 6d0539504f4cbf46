// SPDX-License-Identifier: Apache-2.0
#include "images/source/s3.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "images/source/part.hpp"
#include "images/source/sigv4.hpp"
#include "images/source/transport.hpp"
#include "kernel/utf8.hpp"

namespace pawl::images::s3 {
namespace {

using source::Part;

constexpr int kMostRedirects = 3;
constexpr std::size_t kLongestRefusal = 65536;

/// Where one object is asked for, and for which region the request is signed.
struct Target {
  Url url;
  std::string region;
  std::string bucket_label{};  ///< "bucket." where it is part of the host name
  bool clock_corrected = false;
  int redirects = 0;
};

Url amazon(std::string_view region) {
  const auto* domain = region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return {.tls = true, .host = fmt::format("s3.{}.{}", region, domain), .port = 443};
}

/// "[bucket.]s3.region.amazonaws.com" and its older forms. Machines of Amazon's customers have names in the
/// same domain, but not these.
bool is_amazon_s3(std::string_view host) {
  for (const std::string_view domain : {".amazonaws.com", ".amazonaws.com.cn"}) {
    if (!host.ends_with(domain)) continue;
    host.remove_suffix(domain.size());
    const auto last_label = [&host] {
      const auto dot = host.rfind('.');
      const auto label = host.substr(dot == std::string_view::npos ? 0 : dot + 1);
      host = host.substr(0, dot == std::string_view::npos ? 0 : dot);
      return label;
    };
    auto label = last_label();
    if (label == "s3" || label.starts_with("s3-")) return true;
    if (!is_region(label)) return false;
    label = last_label();
    return label == "s3" || (label == "dualstack" && last_label() == "s3");
  }
  return false;
}

Result<void> check_bucket(std::string_view bucket, bool is_host_name) {
  const auto is_allowed = [&](char c) {
    const bool in_host = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    return in_host || (!is_host_name && ((c >= 'A' && c <= 'Z') || c == '_'));
  };
  const auto at_end = [](char c) { return c == '.' || c == '-'; };
  const std::size_t longest = is_host_name ? 63 : 255;
  if (!bucket.empty() && bucket.size() <= longest && std::ranges::all_of(bucket, is_allowed) &&
      !at_end(bucket.front()) && !at_end(bucket.back()) && bucket.find("..") == std::string_view::npos)
    return {};
  return fail(
      Code::invalid_argument,
      fmt::format("bucket \"{}\": it has 1 to {} {}letters, digits, \"-\"{} and single \".\", and neither "
                  "begins nor ends with one of the signs",
                  shown(bucket), longest, is_host_name ? "lower-case " : "", is_host_name ? "" : ", \"_\""));
}

/// What a refusal means for the caller. Only what may be otherwise next time is `source_failed`.
Code code_of(int status, std::string_view said) {
  if (status == 404 || status == 410) return Code::source_missing;
  if (status == 412 || status == 416) return Code::source_changed;
  if (status == 408 || status == 429 || said == "SlowDown" || said == "RequestTimeout")
    return Code::source_failed;
  return status >= 400 && status < 500 ? Code::source_denied : Code::source_failed;
}

/// Puts an answer's bytes into a part.
class Receiver {
 public:
  Receiver(Part& part, const FetchOptions& options) : part_(part), options_(options) {}

  Result<bool> take(const AnswerHead& head, std::string_view bytes) {
    if (!begun_) PAWL_CHECK(begin(head));
    if (total_ && bytes.size() > *total_ - part_.size()) {
      part_.discard();
      return fail(Code::source_failed,
                  fmt::format("the object store sent more than the {} bytes it announced", *total_));
    }
    PAWL_CHECK(check_limit(part_.size() + bytes.size()));
    PAWL_CHECK(part_.append(bytes));
    if (options_.progress) options_.progress(part_.size(), total_.value_or(0));
    return true;
  }

  Result<Fetched> finish(const AnswerHead& head) {
    if (!begun_) PAWL_CHECK(begin(head));  // an empty object has no body
    if (total_ && part_.size() != *total_)
      return fail(Code::source_failed,
                  fmt::format("the object store sent {} of {} bytes", part_.size(), *total_));
    return part_.finish();
  }

 private:
  Result<void> check_limit(std::uint64_t bytes) const {
    if (bytes <= options_.max_bytes) return {};
    return fail(Code::too_large,
                fmt::format("the object has at least {} bytes; at most {} are allowed (images.image_size)",
                            bytes, options_.max_bytes));
  }

  Result<void> begin(const AnswerHead& head) {
    begun_ = true;
    if (head.status == 206) return go_on(head);
    if (head.status != 200)
      return fail(Code::source_failed,
                  fmt::format("the object store answered {}; 200 or 206 would be right", head.status));
    if (!head.length && !head.chunked)
      return fail(Code::source_failed,
                  "the answer does not say how long it is: its end could not be told from a break");
    total_ = head.length;
    PAWL_CHECK(check_limit(total_.value_or(0)));
    // A weak tag does not promise the same bytes.
    return part_.begin_anew(head.etag.starts_with('"') ? head.etag : "", total_);
  }

  Result<void> go_on(const AnswerHead& head) {
    const auto& tag = part_.tag();
    if (!head.range || part_.size() == 0 || head.range->first != part_.size()) {
      part_.discard();
      return fail(Code::source_failed, "the object store answered with another range than was asked for");
    }
    if (head.etag != tag.etag || head.range->total != tag.bytes)
      return fail(Code::source_changed, fmt::format("the object was {} and is {} now", tag.etag, head.etag));
    total_ = tag.bytes;
    return {};
  }

  Part& part_;
  const FetchOptions& options_;
  bool begun_ = false;
  std::optional<std::uint64_t> total_;
};

class S3Source final : public Source {
 public:
  S3Source(S3Options options, Url base, std::function<Time()> clock)
      : options_(std::move(options)), base_(std::move(base)), clock_(std::move(clock)) {}

  Result<ObjectInfo> look(const ObjectName& name, std::stop_token stop) override {
    PAWL_TRY(auto target, target_of(name));
    auto head = exchange(target, {.head_only = true}, stop);
    if (!head && head.error().code() == Code::source_denied) {
      // An answer to HEAD has no body, so it does not say why. This one does, and corrects region and clock.
      const auto enough = [](const AnswerHead&, std::string_view) -> Result<bool> { return false; };
      PAWL_CHECK(exchange(target, {.headers = {{"range", "bytes=0-0"}}, .on_body = enough}, stop));
      head = exchange(target, {.head_only = true}, stop);
    }
    if (!head) return fail(std::move(head).error());
    if (!head->length)
      return fail(Code::source_failed, "the object store does not say how large the object is");
    return ObjectInfo{.bytes = *head->length, .etag = head->etag};
  }

  Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                        const FetchOptions& options) override {
    PAWL_TRY(auto target, target_of(name));
    PAWL_TRY(auto part, Part::open(path, fmt::format("{}/{}/{}", origin(base_), name.bucket, name.key)));
    auto fetched = receive(name, target, part, options);
    if (!fetched) return part.give_up(std::move(fetched).error());
    return fetched;
  }

 private:
  Result<Fetched> receive(const ObjectName& name, Target& target, Part& part, const FetchOptions& options) {
    HttpCall call;
    if (part.size() > 0) {
      PAWL_CHECK(part.hash_kept(options.stop));
      if (part.size() == part.tag().bytes) return finish_whole(name, part, options);
      call.headers = {{"range", fmt::format("bytes={}-", part.size())}, {"if-match", part.tag().etag}};
    }
    Receiver receiver(part, options);
    call.on_body = [&](const AnswerHead& head, std::string_view bytes) { return receiver.take(head, bytes); };
    PAWL_TRY(const auto head, exchange(target, std::move(call), options.stop));
    return receiver.finish(head);
  }

  /// Everything had come when the last call was interrupted: there is no range left to ask for.
  Result<Fetched> finish_whole(const ObjectName& name, Part& part, const FetchOptions& options) {
    PAWL_TRY(const auto info, look(name, options.stop));
    if (info.etag != part.tag().etag || info.bytes != part.tag().bytes)
      return fail(Code::source_changed,
                  fmt::format("the object was {} and is {} now", part.tag().etag, info.etag));
    if (info.bytes > options.max_bytes)
      return fail(Code::too_large,
                  fmt::format("the object has {} bytes; at most {} are allowed (images.image_size)",
                              info.bytes, options.max_bytes));
    return part.finish();
  }

  Result<Target> target_of(const ObjectName& name) const {
    PAWL_CHECK(check_bucket(name.bucket, !options_.path_style));
    PAWL_CHECK(check_key(name.key));
    Target target{.url = base_, .region = options_.region};
    if (options_.path_style) {
      target.url.path = fmt::format("/{}/{}", name.bucket, name.key);
    } else {
      target.bucket_label = name.bucket + ".";
      target.url.host = target.bucket_label + base_.host;
      target.url.path = "/" + name.key;
    }
    return target;
  }

  HttpCall complete(const Target& target, HttpCall call) const {
    SignedRequest request{.method = call.head_only ? "HEAD" : "GET",
                          .host = authority(target.url),
                          .path = target.url.path,
                          .headers = std::move(call.headers)};
    if (!options_.key_id.empty()) {
      const Credentials credentials{options_.key_id, options_.secret, options_.session_token};
      sign(request, credentials, target.region, clock_() + Duration(skew_.load()));
    }
    call.url = origin(target.url) + request_target(request);
    call.headers = std::move(request.headers);
    call.connect_timeout = options_.connect_timeout;
    call.stall_timeout = options_.stall_timeout;
    return call;
  }

  /// One request, repeated where the store says how it would be right. `target` learns with it.
  Result<AnswerHead> exchange(Target& target, HttpCall call, const std::stop_token& stop) {
    const auto on_body = std::move(call.on_body);
    std::string refusal;
    call.on_body = [&](const AnswerHead& head, std::string_view bytes) -> Result<bool> {
      if (head.status >= 200 && head.status < 300) return on_body ? on_body(head, bytes) : Result<bool>(true);
      refusal.append(bytes.substr(0, kLongestRefusal - refusal.size()));
      return refusal.size() < kLongestRefusal;
    };
    while (true) {
      refusal.clear();
      auto head = perform(complete(target, call), stop);
      if (!head) return fail(std::move(head).error().with("url", where(target)));
      if (head->status >= 200 && head->status < 300) return head;
      PAWL_TRY(const bool again, learn(target, *head, parse_refusal(refusal)));
      if (!again) return fail(refused(target, *head, parse_refusal(refusal)));
    }
  }

  /// Whether another request may have another answer.
  Result<bool> learn(Target& target, const AnswerHead& head, const Refusal& refusal) {
    if (refusal.code == "RequestTimeTooSkewed" && head.date && !target.clock_corrected) {
      target.clock_corrected = true;
      skew_ = (*head.date - clock_()).count();
      return true;
    }
    const auto& region = head.region.empty() ? refusal.region : head.region;
    const bool moved =
        is_region(region) && region != target.region && head.status >= 300 && head.status < 500;
    const bool redirected =
        head.status >= 301 && head.status <= 308 && head.status != 304 && !head.location.empty();
    if (!moved && !redirected) return false;
    if (++target.redirects > kMostRedirects)
      return fail(Error(Code::source_failed, fmt::format("more than {} redirects", kMostRedirects))
                      .with("url", where(target)));
    if (moved) {
      target.region = region;
      if (options_.endpoint.empty()) target.url.host = target.bucket_label + amazon(region).host;
    }
    if (redirected) PAWL_CHECK(follow(target, head.location));
    return true;
  }

  Result<void> follow(Target& target, std::string_view location) const {
    const auto absolute =
        location.starts_with('/') ? origin(target.url) + std::string(location) : std::string(location);
    auto url = parse_url(absolute);
    if (!url || !may_follow(base_, *url)) {
      return fail(
          Error(
              Code::source_denied,
              fmt::format("the object store redirects to \"{}\", which is not followed: it would have to be "
                          "the same host, or one below it, without a query",
                          shown(absolute)))
              .with("url", where(target)));
    }
    target.url = *std::move(url);
    return {};
  }

  Error refused(const Target& target, const AnswerHead& head, const Refusal& refusal) const {
    auto message = refusal.message;
    // A store that repeats what it was sent must not bring a secret into a log.
    for (const auto* secret : {&options_.secret, &options_.session_token}) {
      if (!secret->empty() && message.find(*secret) != std::string::npos) message = "(not shown)";
    }
    auto text = fmt::format("the object store answered {}", head.status);
    if (!refusal.code.empty()) text += " " + refusal.code;
    if (!message.empty()) text += ": " + message;
    Error error(code_of(head.status, refusal.code), std::move(text));
    error.with("url", where(target)).with("status", fmt::to_string(head.status));
    if (!refusal.code.empty()) error.with("s3_code", refusal.code);
    return error;
  }

  static std::string where(const Target& target) {
    return origin(target.url) + encode(target.url.path, true);
  }

  const S3Options options_;
  const Url base_;  ///< without a bucket
  const std::function<Time()> clock_;
  std::atomic<Duration::rep> skew_ = 0;  ///< how far the store's clock is ahead
};

}  // namespace

bool may_follow(const Url& base, const Url& target) {
  if (base.tls && !target.tls) return false;
  const bool same_port = target.port == base.port || (target.tls && !base.tls && target.port == 443);
  if (!same_port) return false;
  if (target.host == base.host || target.host.ends_with("." + base.host)) return true;
  return is_amazon_s3(base.host) && is_amazon_s3(target.host);
}

Result<std::unique_ptr<Source>> open_with_clock(S3Options options, std::function<Time()> clock) {
  static const auto ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return fail(Code::internal, "libcurl cannot be initialized");
  const auto wrong = [](std::string_view field, std::string_view what) {
    return fail(Code::invalid_argument, std::string(what), {{"field", std::string(field)}});
  };
  if (!is_region(options.region))
    return wrong("region", "a region has 1 to 32 lower-case letters, digits and \"-\"");
  if (options.key_id.empty() != options.secret.empty())
    return wrong("secret", "an access key has both an id and a secret, or neither");
  const auto is_printable = [](std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  };
  if (!is_printable(options.key_id))
    return wrong("key_id", "the id of an access key has printable ASCII only");
  if (!is_printable(options.session_token))
    return wrong("session_token", "a session token has printable ASCII only");
  if (options.connect_timeout <= Duration(0) || options.stall_timeout <= Duration(0))
    return wrong("stall_timeout", "the timeouts must be positive");
  Url base = amazon(options.region);
  if (!options.endpoint.empty()) {
    PAWL_TRY(base, parse_url(options.endpoint));
    if (!base.path.empty() && base.path != "/")
      return wrong("endpoint", "an endpoint has no path: http[s]://host[:port]");
    base.path.clear();
  }
  return std::make_unique<S3Source>(std::move(options), std::move(base), std::move(clock));
}

}  // namespace pawl::images::s3

namespace pawl::images {

Result<std::unique_ptr<Source>> open_s3(S3Options options) {
  return s3::open_with_clock(std::move(options), [] {
    return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  });
}

}  // namespace pawl::images
