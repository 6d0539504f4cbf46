// SPDX-License-Identifier: Apache-2.0
#include "images/source/transport.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>

#include "kernel/utf8.hpp"
#include "pawl/assert.hpp"

namespace pawl::images::s3 {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr long kReceiveBuffer = 512L * 1024;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

/// The state that libcurl's callbacks see.
struct Exchange {
  const HttpCall& call;
  const std::stop_token& stop;
  AnswerHead head{};
  bool enough = false;
  std::optional<Error> failure{};
  SteadyClock::time_point last_byte = SteadyClock::now();

  std::size_t take_header(std::string_view line) {
    last_byte = SteadyClock::now();
    head.add(line);
    return line.size();
  }

  /// A short count makes libcurl end the transfer.
  std::size_t take_body(std::string_view bytes) {
    if (stop.stop_requested()) return 0;
    auto taken = call.on_body ? call.on_body(head, bytes) : Result<bool>(true);
    last_byte = SteadyClock::now();  // what the disk needed is not the server's
    if (!taken)
      failure = std::move(taken).error();
    else
      enough = !*taken;
    return failure || enough ? 0 : bytes.size();
  }
};

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* exchange) {
  return static_cast<Exchange*>(exchange)->take_header({bytes, size * count});
}

std::size_t on_write(char* bytes, std::size_t size, std::size_t count, void* exchange) {
  return static_cast<Exchange*>(exchange)->take_body({bytes, size * count});
}

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  const auto outcome = curl_easy_setopt(easy, option, value);
  PAWL_ASSERT(outcome == CURLE_OK, "libcurl knows the option", static_cast<int>(option),
              curl_easy_strerror(outcome));
}

void configure(CURL* easy, Exchange& exchange, curl_slist* headers,
               std::array<char, CURL_ERROR_SIZE>& words) {
  const auto& call = exchange.call;
  set(easy, CURLOPT_URL, call.url.c_str());
  set(easy, CURLOPT_PATH_AS_IS, 1L);
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_NOBODY, call.head_only ? 1L : 0L);
  set(easy, CURLOPT_HTTPHEADER, headers);
  set(easy, CURLOPT_BUFFERSIZE, kReceiveBuffer);
  set(easy, CURLOPT_ERRORBUFFER, words.data());
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(call.connect_timeout).count();
  set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(1, milliseconds)));
  set(easy, CURLOPT_HEADERFUNCTION, &on_header);
  set(easy, CURLOPT_HEADERDATA, &exchange);
  set(easy, CURLOPT_WRITEFUNCTION, &on_write);
  set(easy, CURLOPT_WRITEDATA, &exchange);
}

/// Runs until the transfer has ended by itself, was stopped, or stalls; the first of them with its outcome.
std::optional<CURLcode> drive(CURLM* multi, const Exchange& exchange) {
  for (int running = 1;;) {
    PAWL_ASSERT(curl_multi_perform(multi, &running) == CURLM_OK, "libcurl runs");
    int left = 0;
    if (const auto* message = curl_multi_info_read(multi, &left); message != nullptr)
      return message->data.result;
    if (exchange.stop.stop_requested()) return std::nullopt;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(
        exchange.last_byte + exchange.call.stall_timeout - SteadyClock::now());
    if (rest.count() <= 0) return CURLE_OPERATION_TIMEDOUT;
    const auto wait = static_cast<int>(std::min<std::int64_t>(rest.count(), 60'000));
    PAWL_ASSERT(curl_multi_poll(multi, nullptr, 0, wait, nullptr) == CURLM_OK, "libcurl waits");
  }
}

}  // namespace

Result<AnswerHead> perform(const HttpCall& call, const std::stop_token& stop) {
  Exchange exchange{.call = call, .stop = stop};
  std::array<char, CURL_ERROR_SIZE> words{};
  std::unique_ptr<curl_slist, FreeList> headers;
  for (const auto& [name, value] : call.headers) {
    auto* longer = curl_slist_append(headers.get(), fmt::format("{}: {}", name, value).c_str());
    PAWL_ASSERT(longer != nullptr, "memory for a header");
    static_cast<void>(headers.release());
    headers.reset(longer);
  }
  const std::unique_ptr<CURLM, FreeMulti> multi(curl_multi_init());
  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  PAWL_ASSERT(multi && easy, "memory for a transfer");
  configure(easy.get(), exchange, headers.get(), words);
  PAWL_ASSERT(curl_multi_add_handle(multi.get(), easy.get()) == CURLM_OK, "a new transfer can be added");
  std::optional<CURLcode> outcome;
  {
    // Wakes the wait at once, from whatever thread the stop comes.
    const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
    outcome = drive(multi.get(), exchange);
  }
  curl_multi_remove_handle(multi.get(), easy.get());

  if (exchange.failure) return fail(*std::move(exchange.failure));
  if (exchange.enough || outcome == CURLE_OK) return exchange.head;
  if (stop.stop_requested()) return fail(Code::cancelled, "stopped while talking to the object store");
  const std::string_view said(words.data());
  const auto why = said.empty() ? std::string_view(curl_easy_strerror(*outcome)) : said;
  return fail(Code::source_failed, fmt::format("no whole answer of the object store: {}",
                                               is_utf8(why) ? why : "no readable reason"));
}

}  // namespace pawl::images::s3
