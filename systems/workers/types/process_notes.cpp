// SPDX-License-Identifier: Apache-2.0
#include "workers/types/process_notes.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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
  if (!note) return ProcessNote{};  // damaged: what its keeper knows has to be enough
  return *std::move(note);
}

Result<void> ProcessNotes::write(const ProcessNote& note) const {
  PAWL_TRY(const auto text, encode(note));
  std::error_code failure;
  if (std::filesystem::create_directories(directory_, failure)) {
    const auto above = std::filesystem::path(directory_).parent_path().string();
    const Descriptor parent(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) return fail(process_error("make durable", directory_));
  }
  const Descriptor directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return fail(process_error("open the directory", directory_));
  const auto part = path_ + ".new";
  const Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return fail(process_error("write", part));
  errno = ENOSPC;  // where less was written than was to be
  // Durable before it takes the place of the last one: an empty note after a loss of power would have ended
  // processes started again.
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0) {
    return fail(process_error("write", part));
  }
  if (::rename(part.c_str(), path_.c_str()) != 0 || ::fsync(directory.get()) != 0)
    return fail(process_error("write", path_));
  return {};
}

Result<std::uint64_t> ProcessNotes::begin(std::uint64_t order, std::uint64_t before,
                                          std::string specification) const {
  PAWL_TRY(auto note, read());
  // Perhaps it was started already, with what is noted: then it is replaced if that is not what is wanted.
  if (note.order == order) return note.started;
  note.started = std::max({order, before + 1, note.started + 1, note.ended + 1});
  note.order = order;
  note.specification = std::move(specification);
  PAWL_CHECK(write(note));
  return note.started;
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
