// SPDX-License-Identifier: Apache-2.0
#include "workers/types/http_call.hpp"

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <memory>
#include <string_view>

#include "pawl/assert.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kMostBody = std::size_t{64} * 1024;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

/// A short count makes libcurl end the transfer: enough was read.
std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* text) {
  auto& body = *static_cast<std::string*>(text);
  const auto taken = std::min(size * count, kMostBody - body.size());
  body.append(bytes, taken);
  return taken;
}

template <class Value>
void set(CURL* easy, CURLoption option, Value value) {
  const auto outcome = curl_easy_setopt(easy, option, value);
  PAWL_ASSERT(outcome == CURLE_OK, "libcurl knows the option", static_cast<int>(option),
              curl_easy_strerror(outcome));
}

void configure(CURL* easy, const HttpDesired& desired, curl_slist* headers, std::string& body) {
  set(easy, CURLOPT_URL, desired.url->c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_NOPROXY, "*");
  set(easy, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_NOBODY, desired.method == "HEAD" ? 1L : 0L);
  set(easy, CURLOPT_HTTPHEADER, headers);
  set(easy, CURLOPT_CERTINFO, 1L);
  if (!desired.ca_file.empty()) set(easy, CURLOPT_CAINFO, desired.ca_file.c_str());
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(desired.timeout).count();
  set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));
  set(easy, CURLOPT_WRITEFUNCTION, &take_body);
  set(easy, CURLOPT_WRITEDATA, &body);
}

/// Nothing where it was stopped.
std::optional<CURLcode> drive(CURLM* multi, const std::stop_token& stop) {
  constexpr int kLongestWait = 1000;
  for (int unfinished = 1;;) {
    PAWL_ASSERT(curl_multi_perform(multi, &unfinished) == CURLM_OK, "libcurl runs");
    int left = 0;
    if (const auto* message = curl_multi_info_read(multi, &left); message != nullptr)
      return message->data.result;
    if (stop.stop_requested()) return std::nullopt;
    PAWL_ASSERT(curl_multi_poll(multi, nullptr, 0, kLongestWait, nullptr) == CURLM_OK, "libcurl waits");
  }
}

/// When the first certificate of the chain, the server's own, expires.
std::optional<Time> expiry(CURL* easy) {
  constexpr std::string_view kName = "Cert:";
  curl_certinfo* chain = nullptr;
  if (curl_easy_getinfo(easy, CURLINFO_CERTINFO, &chain) != CURLE_OK || chain == nullptr) return std::nullopt;
  if (chain->num_of_certs < 1) return std::nullopt;
  for (const auto* one = chain->certinfo[0]; one != nullptr; one = one->next) {
    std::string_view text(one->data);
    if (!text.starts_with(kName)) continue;
    text.remove_prefix(kName.size());
    const std::unique_ptr<BIO, FreeBio> bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    const std::unique_ptr<X509, FreeX509> certificate(
        PEM_read_bio_X509(bytes.get(), nullptr, nullptr, nullptr));
    std::tm parts{};
    if (!certificate || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &parts) != 1)
      return std::nullopt;
    return Time(std::chrono::seconds(timegm(&parts)));
  }
  return std::nullopt;
}

/// The same words for the same reason: libcurl's own hold times.
std::string words_of(CURLcode outcome, const HttpDesired& desired) {
  if (outcome == CURLE_OPERATION_TIMEDOUT)
    return fmt::format("no whole answer within {}", to_string(desired.timeout));
  return curl_easy_strerror(outcome);
}

std::unique_ptr<curl_slist, FreeList> header_list(const HttpDesired& desired) {
  std::unique_ptr<curl_slist, FreeList> list;
  for (const auto& [name, value] : desired.headers) {
    auto* longer = curl_slist_append(list.get(), fmt::format("{}: {}", name, value).c_str());
    PAWL_ASSERT(longer != nullptr, "memory for a header");
    static_cast<void>(list.release());
    list.reset(longer);
  }
  return list;
}

}  // namespace

Result<HttpAnswer> ask(const HttpDesired& desired, const std::stop_token& stop) {
  HttpAnswer answer;
  const auto headers = header_list(desired);
  const std::unique_ptr<CURLM, FreeMulti> multi(curl_multi_init());
  const std::unique_ptr<CURL, FreeEasy> easy(curl_easy_init());
  PAWL_ASSERT(multi && easy, "memory for a transfer");
  configure(easy.get(), desired, headers.get(), answer.body);
  PAWL_ASSERT(curl_multi_add_handle(multi.get(), easy.get()) == CURLM_OK, "a new transfer can be added");
  std::optional<CURLcode> outcome;
  {
    const std::stop_callback wake(stop, [&] { curl_multi_wakeup(multi.get()); });
    outcome = drive(multi.get(), stop);
  }
  curl_multi_remove_handle(multi.get(), easy.get());
  if (!outcome) return fail(Code::cancelled, fmt::format("stopped while asking {}", *desired.url));

  long status = 0;
  curl_off_t taken = 0;
  long verified = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy.get(), CURLINFO_STARTTRANSFER_TIME_T, &taken);
  curl_easy_getinfo(easy.get(), CURLINFO_SSL_VERIFYRESULT, &verified);
  answer.taken = Duration(taken);
  answer.certificate_expires = expiry(easy.get());
  answer.certificate_expired = verified == X509_V_ERR_CERT_HAS_EXPIRED;
  // A transfer that was cut because enough was read ends with a write error.
  const bool enough = *outcome == CURLE_WRITE_ERROR && answer.body.size() == kMostBody;
  if (*outcome == CURLE_OK || enough) {
    answer.status = static_cast<int>(status);
  } else {
    answer.error = words_of(*outcome, desired);
  }
  return answer;
}

}  // namespace pawl::workers
