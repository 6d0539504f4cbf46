// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/server/world.hpp"

namespace pawl::test {

/// A reader of the feed over a real connection.
class Reader {
 public:
  Reader(World& world, std::string_view query, std::string_view headers = {})
      : client_(world.server->port()) {
    client_.send(fmt::format("GET /v1/events{} HTTP/1.1\r\nHost: [::1]:80\r\n{}\r\n", query, headers));
    head = client_.read_until("\r\n\r\n");
  }

  struct Event {
    std::string id;
    std::string kind;
    std::string data;
  };
  /// The next event; comments and bare ids are passed over.
  Event next() {
    while (true) {
      const auto text = client_.read_until("\n\n");
      if (text.empty()) return {};
      Event event{.id = line(text, "id: "), .kind = line(text, "event: "), .data = line(text, "data: ")};
      if (!event.data.empty()) return event;
    }
  }
  bool at_end() { return client_.at_end(); }

  std::string head;

 private:
  static std::string line(const std::string& text, std::string_view begin) {
    const auto at = text.starts_with(begin) ? 0 : text.find(fmt::format("\n{}", begin));
    if (at == std::string::npos) return {};
    const auto from = at + begin.size() + (at == 0 ? 0 : 1);
    return text.substr(from, text.find('\n', from) - from);
  }
  Client client_;
};

}  // namespace pawl::test
