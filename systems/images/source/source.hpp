// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where the bytes of an image come from: an object in a bucket, or a file.
///
///     PAWL_TRY(const auto source, open_s3({.endpoint = "http://127.0.0.1:9000", .key_id = …}));
///     PAWL_TRY(const auto fetched, source->fetch({"images", "alpine.tar"}, "alpine.tar", {.stop = stop}));
///     fetched.sha256;                     // of everything, made while it came in
///
/// What was fetched before an interruption is kept beside the target and used by the next call, as long as
/// the object is still the same.

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl::images {

/// Names an object. The bucket is empty for a file.
struct ObjectName {
  std::string bucket;
  std::string key;
  bool operator==(const ObjectName&) const = default;
};

struct ObjectInfo {
  std::uint64_t bytes = 0;
  std::string etag;  ///< changes with the content
};

struct FetchOptions {
  std::uint64_t max_bytes = std::uint64_t{10} << 30;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  ///< total is 0 while unknown
  std::stop_token stop{};
};

struct Fetched {
  std::uint64_t bytes = 0;
  std::string sha256;  ///< 64 hexadecimal digits
  std::string etag;
  std::uint64_t resumed_at = 0;  ///< bytes that an earlier, interrupted call had fetched
};

/// Thread-safe; each call stands for itself. Errors of every call: `invalid_argument` for a name that is not
/// allowed, `source_missing`, `source_denied`, `source_failed` for what may go away by itself, `cancelled`.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  virtual Result<ObjectInfo> look(const ObjectName& name, std::stop_token stop) = 0;

  /// Fetches into `path`, which is there only when everything is, durable. Until then the bytes are in
  /// `path` + ".part", with the object's tag in `path` + ".part.tag". More errors: `too_large`, `disk_full`,
  /// `source_changed` if the object became another one meanwhile: what was kept is gone after these, and
  /// after `source_missing`, and the next call begins anew. `source_failed` also while another run fetches
  /// to the same path, `store_io` if the file cannot be written.
  virtual Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                                const FetchOptions& options) = 0;
};

/// Removes what an interrupted fetch has left beside `path`.
Result<void> forget_part(const std::string& path);

/// What the store takes: 1 to 1,024 bytes of UTF-8 without NUL; no component between slashes is "." or "..".
/// Error: `invalid_argument`.
Result<void> check_key(std::string_view key);

struct S3Options {
  std::string endpoint{};  ///< "https://host[:port]"; empty: Amazon's for the region
  std::string region = "us-east-1";
  std::string key_id{};  ///< empty: requests are not signed
  std::string secret{};  ///< never logged
  std::string session_token{};
  bool path_style = true;  ///< false: the bucket is part of the host name
  Duration connect_timeout = std::chrono::seconds(10);
  Duration stall_timeout = std::chrono::seconds(30);  ///< without a byte
};

/// Requests are repeated where the store says how they would be right: once with its clock, and up to three
/// times with its region or at the place it redirects to, which has to be the same host, or one below it. A
/// refusal has the fields `url`, `status` and, where the store gave one, `s3_code`. Error:
/// `invalid_argument`.
Result<std::unique_ptr<Source>> open_s3(S3Options options);

/// Regular files below these directories only, named by their absolute path; what follows the directory is a
/// key as `check_key` wants it. Symbolic links below it are not followed. Error: `invalid_argument`.
Result<std::unique_ptr<Source>> open_files(std::vector<std::string> directories);

}  // namespace pawl::images
