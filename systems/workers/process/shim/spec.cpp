// SPDX-License-Identifier: Apache-2.0
#include "workers/process/shim/spec.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "workers/process/protocol.hpp"

namespace pawl::workers::shim {
namespace {

template <class Number>
bool parse(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  const auto [parsed, error] = std::from_chars(text, end, number);
  return error == std::errc() && parsed == end;
}

/// Takes one text. False where it cannot be understood.
bool take_entry(char* text, Spec& spec, std::size_t& arguments, std::size_t& settings) {
  char* const rest = text + 1;
  switch (static_cast<Tag>(text[0])) {
    case Tag::program:
      spec.program = rest;
      return true;
    case Tag::directory:
      spec.directory = rest;
      return true;
    case Tag::argument:
      spec.arguments[arguments++] = rest;
      return true;
    case Tag::setting:
      spec.environment[settings++] = rest;
      return true;
    case Tag::log_bytes:
      return parse(rest, spec.log_bytes);
    case Tag::line_bytes:
      return parse(rest, spec.line_bytes);
    case Tag::open_files:
      return parse(rest, spec.open_files);
    case Tag::memory:
      return parse(rest, spec.memory);
  }
  return false;
}

}  // namespace

int read_spec(int file, Spec& spec) {
  struct stat about{};
  if (::fstat(file, &about) != 0) return errno;
  const auto size = static_cast<std::size_t>(about.st_size);
  if (size == 0) return EINVAL;

  auto* const copy = static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0));
  if (copy == MAP_FAILED) return errno;
  std::size_t entries = 0;
  for (std::size_t i = 0; i < size; ++i) entries += copy[i] == '\0' ? 1 : 0;
  if (copy[size - 1] != '\0') return EINVAL;
  // Two rows of pointers into the text, each with an end.
  const std::size_t rows = (2 * entries + 4) * sizeof(char*);
  void* const pointers = ::mmap(nullptr, rows, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pointers == MAP_FAILED) return errno;
  spec.mapping = copy;
  spec.mapped = size;
  spec.arguments = static_cast<char**>(pointers);
  spec.environment = spec.arguments + entries + 2;

  std::size_t arguments = 0;
  std::size_t settings = 1;
  for (char* text = copy; text != copy + size; text += std::strlen(text) + 1) {
    if (!take_entry(text, spec, arguments, settings)) return EINVAL;
  }
  const bool whole = spec.program != nullptr && arguments > 0 && spec.log_bytes > 0 && spec.line_bytes > 0;
  return whole ? 0 : EINVAL;
}

void drop_spec(Spec& spec) {
  if (spec.mapping != nullptr) ::munmap(spec.mapping, spec.mapped);
  spec.mapping = nullptr;
}

}  // namespace pawl::workers::shim
