// SPDX-License-Identifier: Apache-2.0
#include "images/background_hash.hpp"

#include <fmt/format.h>

#include <array>

#include "pawl/assert.hpp"

namespace pawl::images {

BackgroundHash::BackgroundHash() : context_(EVP_MD_CTX_new()) {
  PAWL_ASSERT(context_, "memory for a hash");
  restart();
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void BackgroundHash::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return busy_; })) {
    lock.unlock();
    PAWL_ASSERT(EVP_DigestUpdate(context_.get(), bytes_.data(), bytes_.size()) == 1,
                "SHA-256 takes any bytes");
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

void BackgroundHash::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
}

std::string_view BackgroundHash::take(std::string& bytes) {
  wait_until_idle();
  bytes_.swap(bytes);
  const std::lock_guard lock(mutex_);
  busy_ = true;
  changed_.notify_all();
  return bytes_;
}

void BackgroundHash::restart() {
  wait_until_idle();
  PAWL_ASSERT(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1, "OpenSSL has SHA-256");
}

std::string BackgroundHash::hex() {
  wait_until_idle();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  PAWL_ASSERT(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1, "SHA-256 ends");
  return fmt::format("{:02x}", fmt::join(digest.data(), digest.data() + size, ""));
}

}  // namespace pawl::images
