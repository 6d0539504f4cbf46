// SPDX-License-Identifier: Apache-2.0
#include "workers/types/process_notes.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "pawl/codec.hpp"
#include "workers/process/names.hpp"
#include "workers/process/os.hpp"

namespace pawl::workers {

ProcessNotes::ProcessNotes(std::string directory, std::string_view id) : directory_(std::move(directory)) {
  // An id that has no name has no process either: its keeper refuses it.
  path_ = directory_ + "/" + directory_name(id).value_or("+") + ".json";
}

Result<ProcessNote> ProcessNotes::read() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return ProcessNote{};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  auto note = decode<ProcessNote>(text);
  // After the machine lost power the file may be empty; its processes are gone as well.
  return note ? *std::move(note) : ProcessNote{};
}

Result<void> ProcessNotes::write(const ProcessNote& note) const {
  PAWL_TRY(const auto text, encode(note));
  std::error_code failure;
  std::filesystem::create_directories(directory_, failure);
  const auto part = path_ + ".new";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) return fail(process_error("write", part));
  }
  if (std::rename(part.c_str(), path_.c_str()) != 0) return fail(process_error("write", path_));
  return {};
}

Result<void> ProcessNotes::begin(std::uint64_t generation, std::string specification) const {
  PAWL_TRY(auto note, read());
  if (note.started == generation && note.specification == specification) return {};
  note.started = generation;
  note.specification = std::move(specification);
  return write(note);
}

Result<void> ProcessNotes::end(std::uint64_t generation, bool brief) const {
  PAWL_TRY(auto note, read());
  if (note.ended >= generation) return {};
  note.ended = generation;
  ++note.restarts;
  note.brief = brief ? note.brief + 1 : 0;
  return write(note);
}

Result<void> ProcessNotes::forgive(std::uint64_t generation) const {
  PAWL_TRY(auto note, read());
  if (note.ended >= generation && note.brief == 0) return {};
  note.ended = std::max(note.ended, generation);
  note.brief = 0;
  return write(note);
}

void ProcessNotes::forget() const { std::remove(path_.c_str()); }

}  // namespace pawl::workers
