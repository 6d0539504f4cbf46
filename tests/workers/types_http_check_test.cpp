// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <fstream>
#include <sstream>

#include "pawl/codec.hpp"
#include "tests/support/s3_server_double.hpp"
#include "tests/workers/types_servers.hpp"
#include "tests/workers/types_table.hpp"
#include "workers/types/http_check.hpp"

namespace pawl::test {
namespace {

using namespace pawl::workers;
using namespace std::chrono_literals;

Time real_now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

HttpObserved check(const HttpDesired& desired, CheckRun& run) {
  return HttpCheck::collect(run, desired, collect_context(real_now())).value();
}
HttpObserved check(const HttpDesired& desired) {
  CheckRun run;
  return check(desired, run);
}

/// Python's, of a directory.
class FileServer {
 public:
  FileServer()
      : port_(free_port()),
        program_({"/usr/bin/python3", "-m", "http.server", std::to_string(port_), "--bind", "127.0.0.1",
                  "--directory", place_.path()},
                 place_.path() / "log") {
    if (!eventually([&] { return accepts(port_); })) throw std::runtime_error("no server");
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  const TemporaryDirectory& place() const { return place_; }
  void kill() { program_.kill(); }

 private:
  TemporaryDirectory place_;
  std::uint16_t port_;
  Program program_;
};

TEST(HttpCheck, HasTheTableOfAllChecks) {
  Table<HttpCheck> table;
  const HttpDesired desired{.url = "http://h", .unhealthy_after = 1};
  const HttpObserved nothing{};
  const HttpObserved up{.check = {.up = true, .successes = 1}};
  const HttpObserved down{.check = {.failures = 1, .error = "status 500"}};
  EXPECT_EQ(table.next<check::Stopped>(nothing, desired), "go Checking");
  EXPECT_EQ(table.next<check::Checking>(nothing, desired), "stay");
  EXPECT_EQ(table.next<check::Checking>(up, desired), "go Healthy");
  EXPECT_EQ(table.next<check::Checking>(down, desired), "go Unhealthy");
  EXPECT_EQ(table.next<check::Healthy>(up, desired), "stay");
  EXPECT_EQ(table.next<check::Healthy>(down, desired), "go Unhealthy");
  EXPECT_EQ(table.next<check::Unhealthy>(down, desired), "stay");
  EXPECT_EQ(table.next<check::Unhealthy>(up, desired), "go Healthy");
  EXPECT_EQ(table.stop<check::Checking>(nothing, desired), "go Stopped");
  EXPECT_EQ(table.stop<check::Healthy>(up, desired), "go Stopped");
  EXPECT_EQ(table.stop<check::Unhealthy>(down, desired), "go Stopped");
  EXPECT_EQ(table.never_given(), "");
}

TEST(HttpCheck, AsksARealServer) {
  FileServer server;
  server.place().write("health", "all is ok here");
  CheckRun run;
  const auto up = check({.url = server.url("/health"), .expect_body = "is ok", .timeout = 2s}, run);
  EXPECT_TRUE(up.check.up) << up.check.error;
  EXPECT_EQ(up.status, 200);
  EXPECT_EQ(up.certificate, Certificate::none);
  EXPECT_NE(up.check.latency, Latency::unknown);

  const auto other = check({.url = server.url("/health"), .expect_body = "is bad", .timeout = 2s}, run);
  EXPECT_EQ(other.check.error, "the answer does not hold the expected text");
  EXPECT_EQ(other.status, 200);

  const auto missing = check({.url = server.url("/none"), .timeout = 2s}, run);
  EXPECT_EQ(missing.check.error, "status 404 is not among the expected ones");
  EXPECT_EQ(missing.check.failures, 2U);
  EXPECT_EQ(missing.status, 404);
  const std::vector<StatusRange> gone{{.first = 204, .last = 204}, {.first = 404, .last = 410}};
  EXPECT_TRUE(check({.url = server.url("/none"), .expect_status = gone, .timeout = 2s}, run).check.up);

  server.kill();
  const auto down = check({.url = server.url("/health"), .timeout = 2s}, run);
  EXPECT_EQ(down.check.error, "Couldn't connect to server");
  EXPECT_EQ(down.status, std::nullopt);
}

TEST(HttpCheck, ReadsNoMoreThan64KiBOfAnAnswer) {
  const FileServer server;
  const std::string before(65'536 - 4, '.');
  server.place().write("within", before + "here" + std::string(500'000, '.'));
  server.place().write("beyond", before + ".here" + std::string(500'000, '.'));
  EXPECT_TRUE(check({.url = server.url("/within"), .expect_body = "here", .timeout = 2s}).check.up);
  const auto beyond = check({.url = server.url("/beyond"), .expect_body = "here", .timeout = 2s});
  EXPECT_EQ(beyond.check.error, "the answer does not hold the expected text");
  EXPECT_EQ(beyond.status, 200);
}

TEST(HttpCheck, SendsItsMethodAndItsHeaders) {
  S3ServerDouble server({{.bytes = "HTTP/1.1 204 None\r\nContent-Length: 9\r\nConnection: close\r\n\r\n"}});
  const HttpDesired desired{
      .url = server.endpoint() + "/x", .method = "HEAD", .timeout = 2s, .headers = {{"x-colour", "blue"}}};
  EXPECT_EQ(check(desired).status, 204);
  const auto asked = server.requests().at(0);
  EXPECT_TRUE(asked.starts_with("HEAD /x HTTP/1.1\r\n")) << asked;
  EXPECT_NE(asked.find("x-colour: blue\r\n"), std::string::npos) << asked;
}

TEST(HttpCheck, DoesNotFollowARedirect) {
  S3ServerDouble server({{.bytes = http_answer("302 Found", "Location: {origin}/other\r\n", "")}});
  const auto seen = check({.url = server.endpoint(), .timeout = 2s});
  EXPECT_EQ(seen.status, 302);
  EXPECT_EQ(seen.check.error, "status 302 is not among the expected ones");
}

TEST(HttpCheck, TakesHalfAnAnswerWithinItsTimeAsDown) {
  S3ServerDouble server({{.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", .hold = true}});
  const auto seen = check({.url = server.endpoint(), .timeout = 100ms});
  EXPECT_EQ(seen.check.error, "no whole answer within 0.1s");
  EXPECT_EQ(seen.status, std::nullopt);
}

TEST(HttpCheck, IsStoppedWhileItWaitsAndThenSaysNothing) {
  std::stop_source stop;
  S3ServerDouble server(
      {{.bytes = "HTTP/1.1 200 OK\r\n", .hold = true, .then = [&] { stop.request_stop(); }}});
  CheckRun run;
  const auto cancelled = HttpCheck::collect(run, {.url = server.endpoint(), .timeout = 60s},
                                            collect_context(real_now(), stop.get_token()));
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code(), Code::cancelled);
}

TEST(HttpCheck, PutsTheExpiryOfACertificateInSteps) {
  const auto now = real_now();
  using std::chrono::days;
  EXPECT_EQ(certificate_at(now + days(31), now), Certificate::over_30_days);
  EXPECT_EQ(certificate_at(now + days(30), now), Certificate::over_7_days);
  EXPECT_EQ(certificate_at(now + days(7), now), Certificate::over_1_day);
  EXPECT_EQ(certificate_at(now + days(1), now), Certificate::within_1_day);
  EXPECT_EQ(certificate_at(now, now), Certificate::expired);
}

/// OpenSSL's own server, with a certificate for 127.0.0.1 that trusts itself.
class TlsServer {
 public:
  explicit TlsServer(std::chrono::seconds valid)
      : certificate_(place_.path() / "certificate.pem"), port_(free_port()) {
    make_certificate(valid);
    program_.emplace(std::vector<std::string>{"/usr/bin/openssl", "s_server", "-accept",
                                              "127.0.0.1:" + std::to_string(port_), "-cert", certificate_,
                                              "-key", place_.path() / "key.pem", "-www", "-quiet"},
                     place_.path() / "log");
    if (!eventually([&] { return accepts(port_); })) throw std::runtime_error("no server");
  }
  HttpDesired desired() const {
    return {
        .url = "https://127.0.0.1:" + std::to_string(port_) + "/", .timeout = 2s, .ca_file = certificate_};
  }

 private:
  void make_certificate(std::chrono::seconds valid) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -7'200);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), valid.count());
    X509_set_pubkey(made.get(), key.get());
    auto* name = X509_get_subject_name(made.get());
    const auto* text = reinterpret_cast<const unsigned char*>("test");
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> names(
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1"), X509_EXTENSION_free);
    X509_add_ext(made.get(), names.get(), -1);
    X509_sign(made.get(), key.get(), EVP_sha256());
    write_pem("key.pem", [&](BIO* out) {
      return PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    write_pem("certificate.pem", [&](BIO* out) { return PEM_write_bio_X509(out, made.get()); });
  }

  template <class Write>
  void write_pem(const std::string& name, Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> out(BIO_new_file((place_.path() / name).c_str(), "w"),
                                                        BIO_free);
    if (!out || write(out.get()) != 1) throw std::runtime_error("no certificate");
  }

  TemporaryDirectory place_;
  std::string certificate_;
  std::uint16_t port_;
  std::optional<Program> program_;
};

TEST(HttpCheck, SaysHowLongACertificateIsStillGood) {
  const TlsServer server(std::chrono::days(20));
  const auto seen = check(server.desired());
  EXPECT_TRUE(seen.check.up) << seen.check.error;
  EXPECT_EQ(seen.certificate, Certificate::over_7_days);
}

TEST(HttpCheck, SaysThatACertificateHasExpired) {
  const TlsServer server(-1h);
  const auto seen = check(server.desired());
  EXPECT_FALSE(seen.check.up);
  EXPECT_EQ(seen.certificate, Certificate::expired);
}

TEST(HttpCheck, DoesNotTrustACertificateThatNobodyVouchesFor) {
  const TlsServer server(std::chrono::days(20));
  auto desired = server.desired();
  desired.ca_file.clear();
  const auto seen = check(desired);
  EXPECT_FALSE(seen.check.up);
  EXPECT_EQ(seen.status, std::nullopt);
}

TEST(HttpCheck, ReadsAndWritesStatusesAndRanges) {
  const auto desired = decode<HttpDesired>(R"({"url":"http://h","expect_status":[204,"200-202"]})").value();
  const std::vector<StatusRange> ranges{{.first = 204, .last = 204}, {.first = 200, .last = 202}};
  EXPECT_EQ(desired.expect_status, ranges);
  EXPECT_NE(encode(desired).value().find(R"("expect_status":[204,"200-202"])"), std::string::npos);
  for (const auto* wrong : {"99", "600", "\"300-200\"", "\"2xx\"", "\"200-\"", "-1", "1.5", "null", "\"\""}) {
    const auto text = R"({"url":"http://h","expect_status":[)" + std::string(wrong) + "]}";
    EXPECT_EQ(decode<HttpDesired>(text).error().field("path"), "$.expect_status[0]") << wrong;
  }
}

TEST(HttpCheck, RefusesAConfigurationThatCannotBeMeant) {
  const auto refused = [](const HttpDesired& desired) {
    return std::string(HttpCheck::derive(desired).error().field("field"));
  };
  EXPECT_TRUE(HttpCheck::derive({.url = "https://h/x?y=a@b"}));
  EXPECT_EQ(refused({.url = "ftp://h"}), "url");
  EXPECT_EQ(refused({.url = "http://h /"}), "url");
  EXPECT_EQ(refused({.url = "http://h", .method = "POST"}), "method");
  EXPECT_EQ(refused({.url = "http://h", .method = "HEAD", .expect_body = "x"}), "expect_body");
  EXPECT_EQ(refused({.url = "http://h", .expect_status = {}}), "expect_status");
  EXPECT_EQ(refused({.url = "http://h", .headers = {{"a", "b\r\nc: d"}}}), "headers");
  EXPECT_EQ(refused({.url = "http://h", .headers = {{"a b", "c"}}}), "headers");
  EXPECT_EQ(refused({.url = "http://h", .timeout = 1h}), "timeout");
}

TEST(HttpCheck, NeverSaysAPasswordThatIsInItsAddress) {
  const auto error = HttpCheck::derive({.url = "https://me:secret@h/"}).error();
  EXPECT_EQ(error.field("field"), "url");
  EXPECT_EQ(error.to_string().find("secret"), std::string::npos);
}

}  // namespace
}  // namespace pawl::test
