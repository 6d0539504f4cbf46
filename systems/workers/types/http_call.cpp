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

#include "support/curl_transfer.hpp"

namespace pawl::workers {
namespace {

constexpr std::size_t kMostBody = std::size_t{64} * 1024;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

/// Returns a short count when enough was read, so that libcurl ends the transfer.
std::size_t take_body(char* bytes, std::size_t size, std::size_t count, void* text) {
  auto& body = *static_cast<std::string*>(text);
  const auto taken = std::min(size * count, kMostBody - body.size());
  body.append(bytes, taken);
  return taken;
}

void configure(systems::CurlTransfer& transfer, const HttpDesired& desired, std::string& body) {
  transfer.set(CURLOPT_URL, desired.url->c_str());
  transfer.set(CURLOPT_PROTOCOLS_STR, "http,https");
  transfer.set(CURLOPT_NOPROXY, "*");
  transfer.set(CURLOPT_FOLLOWLOCATION, 0L);
  transfer.set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  transfer.set(CURLOPT_NOSIGNAL, 1L);
  transfer.set(CURLOPT_NOBODY, desired.method == "HEAD" ? 1L : 0L);
  for (const auto& [name, value] : desired.headers) transfer.add_header(name, value);
  transfer.set(CURLOPT_CERTINFO, 1L);
  if (!desired.ca_file.empty()) transfer.set(CURLOPT_CAINFO, desired.ca_file.c_str());
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(desired.timeout).count();
  transfer.set(CURLOPT_TIMEOUT_MS, static_cast<long>(milliseconds));
  transfer.set(CURLOPT_WRITEFUNCTION, &take_body);
  transfer.set(CURLOPT_WRITEDATA, &body);
}

/// When the server's own certificate, the first of the chain, expires.
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

/// The same text for the same reason; libcurl's own texts contain times.
std::string words_of(CURLcode outcome, const HttpDesired& desired) {
  if (outcome == CURLE_OPERATION_TIMEDOUT)
    return fmt::format("no whole answer within {}", to_string(desired.timeout));
  return curl_easy_strerror(outcome);
}

}  // namespace

Result<HttpAnswer> ask(const HttpDesired& desired, const std::stop_token& stop) {
  HttpAnswer answer;
  systems::CurlTransfer transfer;
  configure(transfer, desired, answer.body);
  constexpr int kLongestWait = 1000;  // libcurl enforces the timeout
  const auto outcome = transfer.run(stop, [] { return kLongestWait; });
  if (!outcome) return fail(Code::cancelled, fmt::format("stopped while asking {}", *desired.url));

  long status = 0;
  curl_off_t taken = 0;
  long verified = 0;
  curl_easy_getinfo(transfer.easy(), CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer.easy(), CURLINFO_STARTTRANSFER_TIME_T, &taken);
  curl_easy_getinfo(transfer.easy(), CURLINFO_SSL_VERIFYRESULT, &verified);
  answer.taken = Duration(taken);
  answer.certificate_expires = expiry(transfer.easy());
  answer.certificate_expired = verified == X509_V_ERR_CERT_HAS_EXPIRED;
  // A transfer that ended because enough was read has a write error.
  const bool enough = *outcome == CURLE_WRITE_ERROR && answer.body.size() == kMostBody;
  if (*outcome == CURLE_OK || enough) {
    answer.status = static_cast<int>(status);
  } else {
    answer.error = words_of(*outcome, desired);
  }
  return answer;
}

}  // namespace pawl::workers
