// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace bench {

/// The plainest server there is on Boost.Beast: keeps connections, reads a request with its body and answers
/// "hello", on two threads. What HTTP itself costs here.
class Hello {
 public:
  Hello();
  Hello(const Hello&) = delete;
  Hello& operator=(const Hello&) = delete;
  ~Hello();
  std::uint16_t port() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace bench
