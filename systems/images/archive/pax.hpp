// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The records of a pax header that say where an entry goes and how large it is.
///
///     PaxFacts facts;
///     if (const auto problem = read_pax("19 path=some/where\n", facts)) …   // a sentence

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "images/archive/archive.hpp"

namespace pawl::images {

struct PaxFacts {
  std::optional<std::string> path{};
  std::optional<std::string> link{};
  std::optional<std::string> sparse_name{};
  std::optional<std::uint64_t> size{};       ///< of what is stored
  std::optional<std::uint64_t> real_size{};  ///< of a sparse file
  bool sparse = false;
  bool map_in_content = false;  ///< the map of a sparse file precedes its content
  bool has_acl = false;
};

struct PaxProblem {
  std::optional<Violation> violation{};  ///< without: the format is broken
  std::string what{};
};

/// Records that name anything else are passed over. Nothing when all is well.
std::optional<PaxProblem> read_pax(std::string_view records, PaxFacts& facts);

}  // namespace pawl::images
