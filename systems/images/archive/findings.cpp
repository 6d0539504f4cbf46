// SPDX-License-Identifier: Apache-2.0
#include "images/archive/findings.hpp"

#include <fmt/format.h>

#include "kernel/utf8.hpp"
#include "pawl/names.hpp"

namespace pawl::images {

std::string_view name(Violation violation) noexcept {
  switch (violation) {
    case Violation::parent_path:
      return "parent_path";
    case Violation::absolute_path:
      return "absolute_path";
    case Violation::symlink_absolute:
      return "symlink_absolute";
    case Violation::symlink_escape:
      return "symlink_escape";
    case Violation::hardlink_escape:
      return "hardlink_escape";
    case Violation::set_id:
      return "set_id";
    case Violation::device_node:
      return "device_node";
    case Violation::too_many_entries:
      return "too_many_entries";
    case Violation::file_too_large:
      return "file_too_large";
    case Violation::total_too_large:
      return "total_too_large";
    case Violation::bad_size:
      return "bad_size";
    case Violation::through_symlink:
      return "through_symlink";
    case Violation::duplicate_name:
      return "duplicate_name";
    case Violation::case_collision:
      return "case_collision";
    case Violation::bad_name:
      return "bad_name";
    case Violation::unsupported_entry:
      return "unsupported_entry";
  }
  return "unknown";
}

std::string entry_name(std::string_view path) {
  constexpr std::size_t kMostBytes = 256;
  const bool cut = path.size() > kMostBytes;
  const bool readable = is_utf8(path);
  std::string text;
  if (cut) {
    auto end = kMostBytes;
    // Not inside a character.
    while (readable && end > 0 && (static_cast<unsigned char>(path[end]) & 0xc0U) == 0x80U) --end;
    path = path.substr(0, end);
  }
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !readable)) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += c;
    }
  }
  return cut ? text + "…" : text;
}

std::unexpected<Error> hostile(Violation violation, std::string_view path, std::string_view what) {
  auto entry = entry_name(path);
  auto message = fmt::format("entry \"{}\" {}", entry, what);
  return fail(Code::archive_hostile, std::move(message),
              {{"violation", std::string(name(violation))}, {"path", std::move(entry)}});
}

std::unexpected<Error> corrupt(std::uint64_t entry, std::uint64_t position, std::string_view what,
                               Damage damage) {
  return fail(Code::archive_corrupt,
              fmt::format("entry {} of the archive, at byte {}: {}", entry, position, what),
              {{"violation", std::string(enum_name(damage))},
               {"entry", std::to_string(entry)},
               {"position", std::to_string(position)}});
}

}  // namespace pawl::images
