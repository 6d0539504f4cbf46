// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Hashes bytes while the caller continues to use them.
///
///     BackgroundHash hash;
///     while (read(bytes)) write(hash.take(bytes));
///     hash.hex();

#include <openssl/evp.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace pawl::images {

/// SHA-256 on a thread of its own, so that hashing does not delay reading and writing. Used by one thread.
class BackgroundHash {
 public:
  BackgroundHash();
  BackgroundHash(const BackgroundHash&) = delete;
  BackgroundHash& operator=(const BackgroundHash&) = delete;
  ~BackgroundHash() = default;

  /// Waits for the previous call to finish and hashes these; `bytes` gets the memory of another string.
  /// The result is what is being hashed, to be read until the next call.
  std::string_view take(std::string& bytes);
  /// Forgets everything.
  void restart();
  /// Of everything that it was given, as 64 hexadecimal digits.
  std::string hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };

  void work(const std::stop_token& stop);
  void wait_until_idle();

  std::unique_ptr<EVP_MD_CTX, Free> context_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool busy_ = false;
  std::string bytes_;    ///< owned by the thread while it hashes, read-only then
  std::jthread thread_;  ///< the last member: it uses all others
};

}  // namespace pawl::images
