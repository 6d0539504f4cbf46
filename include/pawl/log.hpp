// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Structured logging: a message for people, typed fields for programs.
///
///     auto sink = std::make_shared<pawl::StreamSink>(2, pawl::StreamSink::Options{.format =
///     pawl::LogFormat::json}); pawl::Logger log(sink, runtime, pawl::LogLevel::info); log.info("store
///     opened", {{"path", path}, {"instances", 42}, {"took", duration}});
///
///     pawl::Logger feeds = log.with({{"system", "feeds"}});   // on every line from here
///     feeds.warn("login refused", {{"user", user}, {"password", text}});   // password=***
///
/// A line is one line, whatever its values hold: line breaks and control characters are escaped, invalid
/// UTF-8 is replaced, long texts are cut with a mark. Secrets are not shown: values of type `Secret`, and
/// every field whose key looks like one (`looks_secret`). A message is shown as it is: keep secrets out of
/// it.

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "pawl/error.hpp"
#include "pawl/time.hpp"

namespace pawl {

class Runtime;

enum class LogLevel : std::uint8_t { trace, debug, info, warn, error };

/// "trace", "debug", "info", "warn", "error".
std::string_view name(LogLevel level) noexcept;

/// The level of that name. Error: `unknown_name`.
Result<LogLevel> parse_log_level(std::string_view text);

/// A text that must not be shown. Logs render it as ***; only `reveal` gives it away. A value; const use is
/// safe concurrently.
class Secret {
 public:
  explicit Secret(std::string text) : text_(std::move(text)) {}
  const std::string& reveal() const noexcept { return text_; }

 private:
  std::string text_;
};

/// True for keys such as password, db.passwd, accessToken, X-Api-Key, Set-Cookie, client_secret: case and
/// punctuation do not matter.
bool looks_secret(std::string_view key) noexcept;

/// The value of a field: converts from texts, bool, integers, floating point numbers, durations, times and
/// `Secret`. Does not own its text: use it as an argument, do not keep it.
class LogValue {
 public:
  struct Redacted {};
  using Variant =
      std::variant<std::string_view, bool, std::int64_t, std::uint64_t, double, Duration, Time, Redacted>;

  // NOLINTBEGIN(google-explicit-constructor): converting is what it is for.
  template <std::convertible_to<std::string_view> T>
  LogValue(const T& text) : value_(std::string_view(text)) {}
  LogValue(const char* text)
      : value_(text == nullptr ? std::string_view("(null)") : std::string_view(text)) {}
  template <std::same_as<bool> T>
  LogValue(T value) : value_(value) {}
  template <std::signed_integral T>
    requires(!std::same_as<T, char>)
  LogValue(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  LogValue(T value) : value_(static_cast<std::uint64_t>(value)) {}
  template <std::floating_point T>
  LogValue(T value) : value_(static_cast<double>(value)) {}
  template <class Rep, class Period>
  LogValue(std::chrono::duration<Rep, Period> value) : value_(std::chrono::duration_cast<Duration>(value)) {}
  template <class D>
  LogValue(std::chrono::sys_time<D> value) : value_(std::chrono::time_point_cast<Duration>(value)) {}
  LogValue(const Secret&) : value_(Redacted{}) {}
  LogValue(Redacted value) : value_(value) {}
  // NOLINTEND(google-explicit-constructor)

  const Variant& get() const noexcept { return value_; }

 private:
  Variant value_;
};

struct LogField {
  std::string_view key;
  LogValue value;
};

/// One line on its way to a sink; valid during the call only. Fields are redacted already, and a key occurs
/// once.
struct LogRecord {
  Time time;
  LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// Longer texts (message, key or value) are cut to this many bytes and marked "…+<cut> bytes".
inline constexpr std::size_t kLogTextLimit = 4096;

/// Appends one JSON object and a newline: "time", "level", "message", then the fields. Always valid JSON in
/// UTF-8. Durations are seconds; NaN and infinities are strings; a field named like one of the first three is
/// written as "field.<name>".
void append_json(std::string& out, const LogRecord& record);

/// Appends one aligned line for people; with ANSI colours if asked.
void append_text(std::string& out, const LogRecord& record, bool colour = false);

/// Where lines go. Implementations are thread-safe, write each record whole, and do not throw.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;

  virtual void write(const LogRecord& record) = 0;
};

enum class LogFormat : std::uint8_t { text, json };

/// Writes lines to a file descriptor (2 is standard error), which must outlive it and is not closed. One
/// write call per line; goes on after short writes and interrupts, and waits when a non-blocking descriptor
/// is full. A line that breaks off (disk full) does not spoil the next one, which starts on a new line.
/// Thread-safe.
class StreamSink final : public LogSink {
 public:
  struct Options {
    LogFormat format = LogFormat::text;
    bool colour = false;  ///< text only; whether the other end is a terminal is the caller's business
  };

  explicit StreamSink(int descriptor) : StreamSink(descriptor, Options{}) {}
  StreamSink(int descriptor, Options options) : descriptor_(descriptor), options_(options) {}

  void write(const LogRecord& record) override;

  /// Lines the system refused to take. A logger has nowhere to report that; a metric does.
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  const int descriptor_;
  const Options options_;
  std::mutex mutex_;
  bool torn_ = false;  ///< the last line ended in the middle
  std::atomic<std::uint64_t> lost_{0};
};

/// Hands each record to a function, one at a time. The function must not log to the same sink and not throw.
/// Thread-safe.
class CallbackSink final : public LogSink {
 public:
  using Callback = std::function<void(const LogRecord&)>;
  explicit CallbackSink(Callback callback) : callback_(std::move(callback)) {}

  void write(const LogRecord& record) override;

 private:
  std::mutex mutex_;
  Callback callback_;
};

/// A cheap handle: copies and what `with` returns share sink, clock and level. Thread-safe. A default-made
/// one discards everything.
class Logger {
 public:
  using Clock = std::function<Time()>;

  Logger() = default;
  /// `clock` is called from every thread that logs.
  Logger(std::shared_ptr<LogSink> sink, Clock clock, LogLevel level = LogLevel::info);
  /// `runtime` must outlive the logger and its copies.
  Logger(std::shared_ptr<LogSink> sink, Runtime& runtime, LogLevel level = LogLevel::info);

  /// A logger that adds these fields to each line. A field of the same key replaces an earlier one.
  Logger with(std::initializer_list<LogField> fields) const;

  bool enabled(LogLevel level) const noexcept;

  /// For all loggers of this origin, at once.
  void set_level(LogLevel level) const noexcept;

  void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) const {
    if (enabled(level)) write(level, message, fields);
  }
  /// A line that no level silences, such as one of an audit.
  void always(std::string_view message, std::span<const LogField> fields) const {
    if (core_ != nullptr) write(LogLevel::info, message, fields);
  }
  void trace(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::trace, message, fields);
  }
  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::info, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::warn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const {
    log(LogLevel::error, message, fields);
  }

 private:
  struct Core;
  struct Bound;

  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) const;

  std::shared_ptr<Core> core_;
  std::shared_ptr<const Bound> bound_;
};

}  // namespace pawl
