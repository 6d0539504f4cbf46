// SPDX-License-Identifier: Apache-2.0
#include "images/source/transport.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>

#include "kernel/utf8.hpp"
#include "support/curl_transfer.hpp"

namespace pawl::images::s3 {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr long kReceiveBuffer = 512L * 1024;

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

void configure(systems::CurlTransfer& transfer, Exchange& exchange,
               std::array<char, CURL_ERROR_SIZE>& words) {
  const auto& call = exchange.call;
  transfer.set(CURLOPT_URL, call.url.c_str());
  transfer.set(CURLOPT_PATH_AS_IS, 1L);
  transfer.set(CURLOPT_PROTOCOLS_STR, "http,https");
  transfer.set(CURLOPT_FOLLOWLOCATION, 0L);
  transfer.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  transfer.set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  transfer.set(CURLOPT_NOSIGNAL, 1L);
  transfer.set(CURLOPT_NOBODY, call.head_only ? 1L : 0L);
  for (const auto& [name, value] : call.headers) transfer.add_header(name, value);
  transfer.set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  transfer.set(CURLOPT_ERRORBUFFER, words.data());
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(call.connect_timeout).count();
  transfer.set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(1, milliseconds)));
  transfer.set(CURLOPT_HEADERFUNCTION, &on_header);
  transfer.set(CURLOPT_HEADERDATA, &exchange);
  transfer.set(CURLOPT_WRITEFUNCTION, &on_write);
  transfer.set(CURLOPT_WRITEDATA, &exchange);
}

}  // namespace

Result<AnswerHead> perform(const HttpCall& call, const std::stop_token& stop) {
  Exchange exchange{.call = call, .stop = stop};
  std::array<char, CURL_ERROR_SIZE> words{};
  systems::CurlTransfer transfer;
  configure(transfer, exchange, words);
  const auto outcome = transfer.run(stop, [&] {
    return std::chrono::ceil<std::chrono::milliseconds>(exchange.last_byte + call.stall_timeout -
                                                        SteadyClock::now())
        .count();
  });

  if (exchange.failure) return fail(*std::move(exchange.failure));
  if (exchange.enough || outcome == CURLE_OK) return exchange.head;
  if (stop.stop_requested()) return fail(Code::cancelled, "stopped while talking to the object store");
  const std::string_view said(words.data());
  const auto why = said.empty() ? std::string_view(curl_easy_strerror(*outcome)) : said;
  return fail(Code::source_failed, fmt::format("no whole answer of the object store: {}",
                                               is_utf8(why) ? why : "no readable reason"));
}

}  // namespace pawl::images::s3
