// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A libcurl transfer that ends at once when stop is requested.
///
///     CurlTransfer transfer;
///     transfer.set(CURLOPT_URL, url.c_str());
///     transfer.add_header("Accept", "text/plain");
///     const auto outcome = transfer.run(stop, [] { return 1000; });     // empty if stopped

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "pawl/assert.hpp"

namespace pawl::systems {

/// Not thread-safe.
class CurlTransfer {
 public:
  CurlTransfer() { PAWL_ASSERT(multi_ && easy_, "memory for a transfer"); }

  CURL* easy() const { return easy_.get(); }

  template <class Value>
  void set(CURLoption option, Value value) {
    const auto outcome = curl_easy_setopt(easy_.get(), option, value);
    PAWL_ASSERT(outcome == CURLE_OK, "libcurl knows the option", static_cast<int>(option),
                curl_easy_strerror(outcome));
  }

  void add_header(std::string_view name, std::string_view value) {
    auto* longer = curl_slist_append(headers_.get(), fmt::format("{}: {}", name, value).c_str());
    PAWL_ASSERT(longer != nullptr, "memory for a header");
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  /// Runs until the transfer has ended or stop is requested (then the result is empty). Calls
  /// `milliseconds_left` before each wait; zero is a timeout.
  template <class Left>
  std::optional<CURLcode> run(const std::stop_token& stop, Left milliseconds_left) {
    set(CURLOPT_HTTPHEADER, headers_.get());
    PAWL_ASSERT(curl_multi_add_handle(multi_.get(), easy_.get()) == CURLM_OK, "a new transfer can be added");
    std::optional<CURLcode> outcome;
    {
      // Wakes the wait from any thread.
      const std::stop_callback wake(stop, [this] { curl_multi_wakeup(multi_.get()); });
      outcome = drive(stop, milliseconds_left);
    }
    curl_multi_remove_handle(multi_.get(), easy_.get());
    return outcome;
  }

 private:
  struct FreeEasy {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
  };
  struct FreeMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
  };
  struct FreeList {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  template <class Left>
  std::optional<CURLcode> drive(const std::stop_token& stop, Left milliseconds_left) {
    for (int unfinished = 1;;) {
      PAWL_ASSERT(curl_multi_perform(multi_.get(), &unfinished) == CURLM_OK, "libcurl runs");
      int left = 0;
      if (const auto* message = curl_multi_info_read(multi_.get(), &left); message != nullptr)
        return message->data.result;
      if (stop.stop_requested()) return std::nullopt;
      const std::int64_t rest = milliseconds_left();
      if (rest <= 0) return CURLE_OPERATION_TIMEDOUT;
      const auto wait = static_cast<int>(std::min<std::int64_t>(rest, 60'000));
      PAWL_ASSERT(curl_multi_poll(multi_.get(), nullptr, 0, wait, nullptr) == CURLM_OK, "libcurl waits");
    }
  }

  // The list must outlive the transfer.
  std::unique_ptr<curl_slist, FreeList> headers_;
  std::unique_ptr<CURLM, FreeMulti> multi_{curl_multi_init()};
  std::unique_ptr<CURL, FreeEasy> easy_{curl_easy_init()};
};

}  // namespace pawl::systems
