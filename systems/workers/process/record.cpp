// SPDX-License-Identifier: Apache-2.0
#include "workers/process/record.hpp"

#include <charconv>
#include <cstring>

namespace pawl::workers {
namespace {

constexpr std::string_view kFirstLine = "pawl-process 1\n";
constexpr std::string_view kLastLine = ".\n";

/// Appends to a fixed buffer and remembers overflow.
class RecordWriter {
 public:
  explicit RecordWriter(std::span<char> into) : into_(into) {}

  RecordWriter& text(std::string_view text) {
    if (text.size() > into_.size() - used_) {
      whole_ = false;
    } else {
      std::memcpy(into_.data() + used_, text.data(), text.size());
      used_ += text.size();
    }
    return *this;
  }
  template <class Number>
  RecordWriter& number(Number value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    return text(" ").text({digits, static_cast<std::size_t>(end - digits)});
  }
  std::size_t size() const { return whole_ ? used_ : 0; }

 private:
  std::span<char> into_;
  std::size_t used_ = 0;
  bool whole_ = true;
};

/// Removes and returns the text before `separator`, or everything.
std::string_view take(std::string_view& rest, char separator) {
  const auto at = rest.find(separator);
  const std::string_view taken(rest.data(), at == std::string_view::npos ? rest.size() : at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

template <class Number>
bool take_number(std::string_view& rest, Number& number) {
  const auto word = take(rest, ' ');
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size();
}

bool take_key(std::string_view& rest, ProcessKey& key) {
  return take_number(rest, key.pid) && take_number(rest, key.start);
}

bool read_fact(std::string_view name, std::string_view rest, Record& record) {
  if (name == "id") return !(record.id = rest).empty();
  if (name == "generation") return take_number(rest, record.generation);
  if (name == "shim") return take_key(rest, record.shim);
  if (name == "command") return take_key(rest, record.command);
  if (name == "mark") return !(record.mark = rest).empty();
  if (name == "started_at") return take_number(rest, record.started_at);
  if (name == "ended_at") return take_number(rest, record.ended_at);
  if (name == "cpu_us") return take_number(rest, record.cpu_us);
  if (name == "log_lost") return take_number(rest, record.log_lost);
  if (name == "exited" || name == "killed" || name == "not_started") {
    record.end = name == "exited" ? End::exited : name == "killed" ? End::killed : End::not_started;
    if (!take_number(rest, record.value)) return false;
    record.step = rest;
  }
  return true;  // a fact that a later version added
}

}  // namespace

std::size_t write_record(const Record& record, std::span<char> into) {
  RecordWriter out(into);
  out.text(kFirstLine).text("id ").text(record.id).text("\ngeneration").number(record.generation);
  out.text("\nshim").number(record.shim.pid).number(record.shim.start);
  out.text("\ncommand").number(record.command.pid).number(record.command.start);
  out.text("\nmark ").text(record.mark).text("\nstarted_at").number(record.started_at).text("\n");
  if (record.end != End::none) {
    out.text(record.end == End::exited ? "exited" : record.end == End::killed ? "killed" : "not_started");
    out.number(record.value);
    if (!record.step.empty()) out.text(" ").text(record.step);
    out.text("\nended_at").number(record.ended_at).text("\ncpu_us").number(record.cpu_us);
    out.text("\nlog_lost").number(record.log_lost).text("\n");
  }
  return out.text(kLastLine).size();
}

bool read_record(std::string_view text, Record& record) {
  record = {};
  if (!text.starts_with(kFirstLine)) return false;
  text.remove_prefix(kFirstLine.size());
  while (!text.empty()) {
    if (text == kLastLine) return record.generation > 0 && record.shim.pid > 0 && !record.mark.empty();
    auto line = take(text, '\n');
    const auto name = take(line, ' ');
    if (!read_fact(name, line, record)) return false;
  }
  return false;
}

}  // namespace pawl::workers
