// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bench {

/// Many readers of server-sent events, all on one thread of their own, as a browser's page would read them
/// but keeping nothing. `paths` has one target for each.
///
///     Readers readers(port, paths, [&](const std::string& id) { return when_made(id); });
///     … load …
///     readers.stop();
///     readers.worst_lag();
class Readers {
 public:
  using Clock = std::chrono::steady_clock;
  /// When the entry with this id became durable; called for the newest entry of each piece that is read.
  using MadeAt = std::function<Clock::time_point(std::string_view id)>;

  /// Returns when every stream has begun. Throws std::runtime_error where one cannot.
  Readers(std::uint16_t port, const std::vector<std::string>& paths, MadeAt made_at);
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  ~Readers();

  /// Ends the reading.
  void stop();
  double worst_lag() const;  ///< seconds, once stopped
  std::uint64_t events() const;
  std::size_t ended() const;  ///< streams that the server has ended

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace bench
