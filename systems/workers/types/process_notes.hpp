// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What has to be known of a process over restarts of the server, beside what its keeper knows.
///
///     ProcessNotes notes("/var/lib/pawl/workers/notes", "plant/pump");
///     notes.begin(7, 0, "4711");     // before order 7 is carried out: 7 is the generation to start
///     notes.end(7, brief);           // its end was taken note of
///
/// A small file for each process, replaced as a whole and durable. A crash between two of them loses nothing
/// that matters: an order that is carried out again has the same generation.

#include <cstdint>
#include <string>
#include <string_view>

#include "pawl/error.hpp"

namespace pawl::workers {

struct ProcessNote {
  std::uint64_t order = 0;      ///< the one that was carried out last
  std::uint64_t started = 0;    ///< the generation that it started
  std::string specification{};  ///< and what with
  std::uint64_t ended = 0;      ///< the generation whose end was taken note of
  std::uint64_t restarts = 0;
  std::uint32_t brief = 0;  ///< runs in a row that did not last
};

/// Reads the file at each call: the one truth is there. Externally synchronised.
class ProcessNotes {
 public:
  ProcessNotes(std::string directory, std::string_view id);

  /// Error: `process_failed`.
  Result<ProcessNote> read() const;
  /// The generation that the order is to start: its own number, or the next one after what was there before.
  /// Orders count from a lower number where the store is an older one, restored, or another one.
  Result<std::uint64_t> begin(std::uint64_t order, std::uint64_t before, std::string specification) const;
  /// Counts; once for each generation.
  Result<void> end(std::uint64_t generation, bool brief) const;
  /// It was stopped on purpose: nothing is counted, and nothing was brief so far.
  Result<void> forgive(std::uint64_t generation) const;

  /// Removes the file; fine where there is none.
  void forget() const;

 private:
  Result<void> write(const ProcessNote& note) const;

  std::string directory_;
  std::string path_;
};

}  // namespace pawl::workers
