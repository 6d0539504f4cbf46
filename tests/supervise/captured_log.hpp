// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a supervisor has logged.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/log.hpp"

namespace pawl::test {

struct LogLine {
  LogLevel level = LogLevel::info;
  std::string message;
  std::map<std::string, std::string> fields;  ///< texts alone
};

class CapturedLog {
 public:
  /// Makes `logger` one that is captured.
  explicit CapturedLog(Logger& logger) {
    logger = Logger(std::make_shared<CallbackSink>([lines = lines_](const LogRecord& record) {
                      LogLine line{record.level, std::string(record.message), {}};
                      for (const auto& field : record.fields) {
                        if (const auto* text = std::get_if<std::string_view>(&field.value.get()))
                          line.fields.emplace(field.key, *text);
                      }
                      lines->push_back(std::move(line));
                    }),
                    [] { return Time{}; });
  }

  const std::vector<LogLine>& lines() const { return *lines_; }
  std::vector<LogLine> with(std::string_view message) const {
    std::vector<LogLine> found;
    std::ranges::copy_if(*lines_, std::back_inserter(found),
                         [message](const LogLine& line) { return line.message == message; });
    return found;
  }
  std::vector<std::string> warnings() const {
    std::vector<std::string> found;
    for (const auto& line : *lines_) {
      if (line.level >= LogLevel::warn) found.push_back(line.message);
    }
    return found;
  }

 private:
  std::shared_ptr<std::vector<LogLine>> lines_ = std::make_shared<std::vector<LogLine>>();
};

}  // namespace pawl::test
