// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An OpenStack Swift with its S3 interface, which checks signatures, for the tests of one program. It ends
/// with its object, and also where the test program dies: swift_server.py watches over it.
///
///     auto& swift = shared_swift();                      // starts it: about five seconds
///     swift.put("images", "a.tar", bytes);
///     open_s3({.endpoint = swift.endpoint(), .key_id = kSwiftKey, .secret = kSwiftSecret});

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "images/source/sigv4.hpp"

namespace pawl::test {

inline constexpr const char* kSwiftKey = "test:tester";
inline constexpr const char* kSwiftSecret = "testing";

bool swift_is_installed();

/// Used by one thread at a time. Throws std::runtime_error where something cannot be done.
class SwiftServer {
 public:
  SwiftServer();
  SwiftServer(const SwiftServer&) = delete;
  SwiftServer& operator=(const SwiftServer&) = delete;
  ~SwiftServer();

  std::string endpoint() const;
  /// A name that resolves to loopback with anything in front of it, for buckets in the host name.
  std::string named_endpoint() const;

  void make_bucket(const std::string& bucket);
  void put(const std::string& bucket, const std::string& key, std::string_view bytes);
  void put_in_parts(const std::string& bucket, const std::string& key, const std::vector<std::string>& parts);
  void remove(const std::string& bucket, const std::string& key);

  struct Answer {
    long status = 0;
    std::string body;
    std::string etag;
  };
  /// A request that is signed rightly, with whatever bytes in its path and query.
  Answer request(const std::string& method, const std::string& path, const images::s3::Pairs& query = {},
                 std::string_view body = {}) const;

 private:
  Answer must(const std::string& method, const std::string& path, const images::s3::Pairs& query,
              std::string_view body) const;
  void wait_until_ready() const;

  std::string directory_;
  std::string log_;
  int port_ = 0;
  pid_t process_ = -1;
  int leash_ = -1;  ///< its end tells the server that this process is gone
};

/// The server that the tests of this program share; started when it is first asked for.
SwiftServer& shared_swift();

/// Skips a test visibly where Swift is not installed.
#define PAWL_NEEDS_SWIFT() \
  if (!::pawl::test::swift_is_installed()) GTEST_SKIP() << "Swift or memcached is not installed"

}  // namespace pawl::test
