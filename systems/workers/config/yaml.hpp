// SPDX-License-Identifier: Apache-2.0
#pragma once

/// YAML as JSON, with the line of each value.
///
///     const auto read = pawl::workers::read_yaml("rpm: 100\nnames: [a, b]\n").value();
///     read.json;                         // {"rpm":100,"names":["a","b"]}
///     read.lines.at("$.names[1]");       // 2
///
/// Plain scalars are what the core schema of YAML 1.2 says: `no` and `1:30` are texts, `0o17` is an integer.
/// What a configuration does not need is refused, because it hides mistakes or costs memory: anchors and
/// aliases, tags other than `!!str`, several documents, keys that are not texts or are given twice. Functions
/// without state; safe concurrently.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "pawl/error.hpp"
#include "pawl/supervisor.hpp"

namespace pawl::workers {

struct YamlLimits {
  static constexpr std::size_t kBytes = std::size_t{1} << 20;  ///< of the text
  static constexpr std::size_t kDepth = 32;                    ///< mappings and lists inside each other
  static constexpr std::size_t kKeyBytes = 160;                ///< of one key
};

/// The line of a member is that of its key. Error: `config_invalid`, with the fields `line` and `column`
/// (from 1) and `key` (the path of the value, empty if there is none), and in the message what would be
/// right.
Result<ConfigDocument> read_yaml(std::string_view text);

/// A document, and of each text block (`|`) the line of the file on which its first line stands.
struct YamlDocument {
  ConfigDocument document{};
  std::map<std::string, int, std::less<>> block_lines{};
};

/// As `read_yaml`; the message of an error leaves the place to its fields.
Result<YamlDocument> read_yaml_document(std::string_view text);

/// "$.children" and "name": "$.children.name". A long key is cut, as in the errors of `pawl/codec.hpp`.
std::string member_path(std::string_view path, std::string_view key);
/// "$.children" and 0: "$.children[0]".
std::string element_path(std::string_view path, std::size_t index);

}  // namespace pawl::workers
