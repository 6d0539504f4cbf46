// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A test double of an object store: a TCP server that answers each connection with the next of the replies
/// that it was given, whatever is asked. For what a real server does not do on demand.
///
///     S3ServerDouble store({{.bytes = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}});
///     open_s3({.endpoint = store.endpoint()});
///     store.requests()[0];                // the head of what was asked

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pawl::test {

struct ScriptedReply {
  std::string bytes;
  bool hold = false;             ///< afterwards nothing more comes, until the client goes away
  std::function<void()> then{};  ///< called when the bytes are sent, on the server's thread
};

/// "{origin}" in a reply becomes the double's own address.
class S3ServerDouble {
 public:
  explicit S3ServerDouble(std::vector<ScriptedReply> replies);
  S3ServerDouble(const S3ServerDouble&) = delete;
  S3ServerDouble& operator=(const S3ServerDouble&) = delete;
  ~S3ServerDouble();

  std::string endpoint() const;
  /// The heads of all requests so far.
  std::vector<std::string> requests() const;

 private:
  void serve();
  void answer(int connection, const ScriptedReply& reply);

  std::vector<ScriptedReply> replies_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::jthread thread_;
};

/// An answer with its length. Each of `headers` ends in "\r\n".
std::string http_answer(std::string_view status, std::string_view headers, std::string_view body);

}  // namespace pawl::test
