// SPDX-License-Identifier: Apache-2.0
#include "pawl/log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory_resource>
#include <vector>

#include "pawl/assert.hpp"
#include "pawl/runtime.hpp"

namespace pawl {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames{"trace", "debug", "info", "warn", "error"};

constexpr bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Whether `word` stands at the beginning of `text`, without regard to case and punctuation.
bool begins_with_word(std::string_view text, std::string_view word) {
  std::size_t matched = 0;
  for (std::size_t i = 0; i < text.size() && matched < word.size(); ++i) {
    if (!is_alphanumeric(text[i])) continue;
    if (lower(text[i]) != word[matched]) return false;
    ++matched;
  }
  return matched == word.size();
}

/// Adds fields with a copy of each key once: the later value replaces the earlier one in its place.
template <class Fields>
void merge(Fields& into, std::span<const LogField> from) {
  for (const LogField& field : from) {
    const LogField safe{field.key,
                        looks_secret(field.key) ? LogValue(LogValue::Redacted{}) : LogValue(field.value)};
    const auto found = std::ranges::find(into, field.key, &LogField::key);
    if (found == into.end()) {
      into.push_back(safe);
    } else {
      *found = safe;
    }
  }
}

}  // namespace

std::string_view name(LogLevel level) noexcept { return kLevelNames.at(static_cast<std::size_t>(level)); }

Result<LogLevel> parse_log_level(std::string_view text) {
  const auto* found = std::ranges::find(kLevelNames, text);
  if (found != kLevelNames.end()) return static_cast<LogLevel>(found - kLevelNames.begin());
  return fail(Code::unknown_name,
              fmt::format("\"{}\" is not a log level; expected trace, debug, info, warn or error", text),
              {{"name", std::string(text)}});
}

bool looks_secret(std::string_view key) noexcept {
  static constexpr std::array<std::string_view, 10> kWords{
      "password", "passwd", "passphrase", "secret",     "token",
      "cookie",   "apikey", "credential", "privatekey", "authorization"};
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (!is_alphanumeric(key[i])) continue;
    if (std::ranges::any_of(kWords, [&](auto word) { return begins_with_word(key.substr(i), word); })) {
      return true;
    }
  }
  return false;
}

struct Logger::Core {
  std::shared_ptr<LogSink> sink;
  Clock clock;
  std::atomic<LogLevel> level;
};

/// Fields that own their texts. Not movable: the views point into `texts`, where short ones lie in place.
struct Logger::Bound {
  std::vector<std::string> texts;
  std::vector<LogField> fields;

  explicit Bound(std::vector<LogField> views) : fields(std::move(views)) {
    texts.reserve(2 * fields.size());
    for (LogField& field : fields) {
      field.key = texts.emplace_back(field.key);
      if (const auto* text = std::get_if<std::string_view>(&field.value.get())) {
        field.value = texts.emplace_back(*text);
      }
    }
  }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  ~Bound() = default;
};

Logger::Logger(std::shared_ptr<LogSink> sink, Clock clock, LogLevel level)
    : core_(new Core{std::move(sink), std::move(clock), level}) {
  PAWL_ASSERT(core_->sink != nullptr && core_->clock != nullptr, "a logger has a sink and a clock");
}

Logger::Logger(std::shared_ptr<LogSink> sink, Runtime& runtime, LogLevel level)
    : Logger(std::move(sink), [&runtime] { return runtime.now(); }, level) {}

Logger Logger::with(std::initializer_list<LogField> fields) const {
  if (core_ == nullptr) return *this;
  std::vector<LogField> all;
  if (bound_ != nullptr) all = bound_->fields;
  merge(all, fields);
  Logger bound = *this;
  bound.bound_ = std::make_shared<const Bound>(std::move(all));
  return bound;
}

bool Logger::enabled(LogLevel level) const noexcept {
  return core_ != nullptr && level >= core_->level.load(std::memory_order_relaxed);
}

void Logger::set_level(LogLevel level) const noexcept {
  if (core_ != nullptr) core_->level.store(level, std::memory_order_relaxed);
}

void Logger::write(LogLevel level, std::string_view message, std::span<const LogField> fields) const {
  // Usual lines have few fields: no allocation for them.
  std::array<std::byte, 16 * sizeof(LogField)> room{};
  std::pmr::monotonic_buffer_resource memory(room.data(), room.size());
  std::pmr::vector<LogField> all(&memory);
  all.reserve(fields.size() + (bound_ == nullptr ? 0 : bound_->fields.size()));
  if (bound_ != nullptr) all.assign(bound_->fields.begin(), bound_->fields.end());
  merge(all, fields);
  core_->sink->write({core_->clock(), level, message, all});
}

}  // namespace pawl
