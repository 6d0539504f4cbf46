// SPDX-License-Identifier: Apache-2.0
#include "tests/support/swift_server.hpp"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

#include "images/names.hpp"
#include "pawl/time.hpp"

namespace pawl::test {
namespace {

constexpr const char* kInterpreter = "/usr/bin/python3";
constexpr int kServers = 5;
constexpr int kTurns = 6000;  // of 20 ms: much longer than it takes, even on a busy machine

/// Ports that were free just now, below those the system gives to connections, so that none of them takes one
/// before Swift does. All are held until each is known, so that they differ.
std::array<int, kServers> free_ports() {
  constexpr int kTries = 1000;
  std::random_device numbers;
  std::uniform_int_distribution<int> any_port(10'000, 32'000);
  std::array<int, kServers> sockets{};
  std::array<int, kServers> ports{};
  for (std::size_t at = 0; at < ports.size(); ++at) {
    sockets[at] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int tries = 0; ports[at] == 0; ++tries) {
      if (tries == kTries) throw std::runtime_error("no free port");
      const int port = any_port(numbers);
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      if (bind(sockets[at], reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) ports[at] = port;
    }
  }
  for (const int one : sockets) close(one);
  return ports;
}

std::size_t collect(char* bytes, std::size_t size, std::size_t count, void* text) {
  static_cast<std::string*>(text)->append(bytes, size * count);
  return size * count;
}

/// The value of a header in a raw head.
std::string header(const std::string& head, std::string_view name) {
  const auto begin = head.find(fmt::format("\r\n{}: ", name));
  if (begin == std::string::npos) return "";
  const auto value = begin + name.size() + 4;
  return head.substr(value, head.find("\r\n", value) - value);
}

}  // namespace

bool swift_is_installed() {
  return std::filesystem::exists("/usr/bin/swift-proxy-server") &&
         std::filesystem::exists("/usr/bin/memcached");
}

SwiftServer::SwiftServer() {
  auto name = (std::filesystem::temp_directory_path() / "pawl_swift_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  directory_ = name;
  log_ = directory_ + "/log";
  const auto ports = free_ports();
  port_ = ports[0];
  const std::string script = PAWL_SOURCE_DIR "/tests/support/swift_server.py";
  std::vector<std::string> words{kInterpreter, script, directory_};
  for (const int port : ports) words.push_back(fmt::to_string(port));
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> leash{};
  if (pipe2(leash.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = fork();
  if (process_ == 0) {
    dup2(leash[0], STDIN_FILENO);
    const int log = open(log_.c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execv(kInterpreter, arguments.data());
    _exit(127);
  }
  close(leash[0]);
  leash_ = leash[1];
  wait_until_ready();
}

SwiftServer::~SwiftServer() {
  close(leash_);
  waitpid(process_, nullptr, 0);
}

std::string SwiftServer::endpoint() const { return fmt::format("http://127.0.0.1:{}", port_); }
std::string SwiftServer::named_endpoint() const { return fmt::format("http://s3.localhost:{}", port_); }

void SwiftServer::wait_until_ready() const {
  for (int turn = 0; turn < kTurns; ++turn) {
    // 409: the bucket is there from a turn before, in which its object could not be written yet.
    const auto made = request("PUT", "/ready").status;
    const auto bucket = made == 200 || made == 409;
    if (bucket && request("PUT", "/ready/ready", {}, "ready").status == 200) return;
    if (waitpid(process_, nullptr, WNOHANG) != 0) break;
    poll(nullptr, 0, 20);
  }
  std::ifstream log(log_);
  throw std::runtime_error("Swift does not answer: " + std::string(std::istreambuf_iterator<char>(log), {}));
}

SwiftServer::Answer SwiftServer::request(const std::string& method, const std::string& path,
                                         const images::s3::Pairs& query, std::string_view body) const {
  images::s3::SignedRequest signed_request{.method = method,
                                           .host = fmt::format("127.0.0.1:{}", port_),
                                           .path = path,
                                           .query = query,
                                           .payload_hash = images::sha256_hex(body)};
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  images::s3::sign(signed_request, {kSwiftKey, kSwiftSecret, ""}, "us-east-1", now);
  curl_slist* headers = curl_slist_append(nullptr, "Expect:");
  for (const auto& [name, value] : signed_request.headers)
    headers = curl_slist_append(headers, fmt::format("{}: {}", name, value).c_str());
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> owned(headers, &curl_slist_free_all);
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> easy(curl_easy_init(), &curl_easy_cleanup);
  const auto url = endpoint() + images::s3::request_target(signed_request);
  Answer answer;
  std::string head;
  curl_easy_setopt(easy.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT, 60L);
  if (method == "PUT" || method == "POST") {
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(easy.get(), CURLOPT_POSTFIELDS, body.data() == nullptr ? "" : body.data());
  }
  curl_easy_setopt(easy.get(), CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEFUNCTION, &collect);
  curl_easy_setopt(easy.get(), CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERFUNCTION, &collect);
  curl_easy_setopt(easy.get(), CURLOPT_HEADERDATA, &head);
  if (curl_easy_perform(easy.get()) != CURLE_OK) return {};
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  answer.etag = header(head, "ETag");
  if (answer.etag.empty()) answer.etag = header(head, "Etag");
  return answer;
}

SwiftServer::Answer SwiftServer::must(const std::string& method, const std::string& path,
                                      const images::s3::Pairs& query, std::string_view body) const {
  auto answer = request(method, path, query, body);
  if (answer.status < 200 || answer.status > 299)
    throw std::runtime_error(fmt::format("{} {}: {} {}", method, path, answer.status, answer.body));
  return answer;
}

void SwiftServer::make_bucket(const std::string& bucket) { must("PUT", "/" + bucket, {}, ""); }

void SwiftServer::put(const std::string& bucket, const std::string& key, std::string_view bytes) {
  must("PUT", fmt::format("/{}/{}", bucket, key), {}, bytes);
}

void SwiftServer::remove(const std::string& bucket, const std::string& key) {
  must("DELETE", fmt::format("/{}/{}", bucket, key), {}, "");
}

void SwiftServer::put_in_parts(const std::string& bucket, const std::string& key,
                               const std::vector<std::string>& parts) {
  const auto path = fmt::format("/{}/{}", bucket, key);
  const auto begun = must("POST", path, {{"uploads", ""}}, "").body;
  constexpr std::string_view kOpening = "<UploadId>";
  const auto id_begin = begun.find(kOpening) + kOpening.size();
  const auto id = begun.substr(id_begin, begun.find('<', id_begin) - id_begin);
  std::string list = "<CompleteMultipartUpload>";
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = fmt::to_string(i + 1);
    const auto answer = must("PUT", path, {{"uploadId", id}, {"partNumber", number}}, parts[i]);
    list += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number, answer.etag);
  }
  must("POST", path, {{"uploadId", id}}, list + "</CompleteMultipartUpload>");
}

SwiftServer& shared_swift() {
  static SwiftServer server;
  return server;
}

}  // namespace pawl::test
