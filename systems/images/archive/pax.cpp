// SPDX-License-Identifier: Apache-2.0
#include "images/archive/pax.hpp"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace pawl::images {
namespace {

using MaybePaxProblem = std::optional<PaxProblem>;

MaybePaxProblem given_twice(std::string_view key) {
  return PaxProblem{.what = fmt::format("its pax headers give \"{}\" twice", key)};
}

MaybePaxProblem take_name(std::string_view key, std::string_view value, std::optional<std::string>& name) {
  if (name) return given_twice(key);
  if (value.empty()) return PaxProblem{Violation::bad_name, fmt::format("has an empty \"{}\"", key)};
  if (value.contains('\0')) return PaxProblem{Violation::bad_name, fmt::format("has a NUL in \"{}\"", key)};
  name = value;
  return {};
}

MaybePaxProblem take_size(std::string_view key, std::string_view value, std::optional<std::uint64_t>& size) {
  if (size) return given_twice(key);
  std::uint64_t number = 0;
  const auto* end = value.data() + value.size();
  const auto read = std::from_chars(value.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number > std::uint64_t{INT64_MAX}) {
    return PaxProblem{Violation::bad_size,
                      fmt::format("has a \"{}\" that is no whole number from 0 to 2^63 - 1", key)};
  }
  size = number;
  return {};
}

MaybePaxProblem take_record(std::string_view key, std::string_view value, PaxFacts& facts) {
  if (key == "path") return take_name(key, value, facts.path);
  if (key == "linkpath") return take_name(key, value, facts.link);
  if (key == "size") return take_size(key, value, facts.size);
  if (key == "GNU.sparse.name") return take_name(key, value, facts.sparse_name);
  if (key == "SCHILY.realsize" || key == "GNU.sparse.realsize" || key == "GNU.sparse.size") {
    facts.sparse = true;
    return take_size(key, value, facts.real_size);
  }
  if (key == "GNU.sparse.major") {
    if (value != "0" && value != "1") {
      return PaxProblem{.what = "its pax header gives a format of sparse files that is neither 0 nor 1"};
    }
    facts.map_in_content = value == "1";
  }
  if (key.starts_with("GNU.sparse.")) facts.sparse = true;
  if (key.starts_with("SCHILY.acl.")) facts.has_acl = true;
  return {};
}

}  // namespace

std::optional<PaxProblem> read_pax(std::string_view records, PaxFacts& facts) {
  while (!records.empty()) {
    std::size_t size = 0;
    const auto read = std::from_chars(records.data(), records.data() + records.size(), size);
    const auto digits = static_cast<std::size_t>(read.ptr - records.data());
    // "<size> <key>=<value>\n", where the size is that of the whole record.
    if (read.ec != std::errc{} || size > records.size() || size < digits + 4 || records[digits] != ' ' ||
        records[size - 1] != '\n') {
      return PaxProblem{.what = "its pax header has a record of another length than it says"};
    }
    const auto record = records.substr(digits + 1, size - digits - 2);
    const auto equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return PaxProblem{.what = "its pax header has a record without a key"};
    }
    if (auto problem = take_record(record.substr(0, equals), record.substr(equals + 1), facts))
      return problem;
    records.remove_prefix(size);
  }
  return {};
}

}  // namespace pawl::images
