// SPDX-License-Identifier: Apache-2.0
#pragma once

/// pawl.yaml: one flat list of keys, each with its type, default and one line of description. The page
/// docs/configuration.md is written from the same list.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/log.hpp"
#include "pawl/server.hpp"

namespace pawl::server {

/// Everything that `pawl serve` can be told.
struct Config {
  std::string data = "pawl-data";
  bool demo = false;
  bool auth = true;
  bool login_link = false;
  std::vector<std::string> systems{};
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  Duration drain_timeout = std::chrono::seconds(10);
  ServerOptions server{};
  EngineOptions engine{};
};

/// One key as the documentation shows it.
struct ConfigKey {
  std::string name;  // "limits.header_bytes"
  std::string type;
  std::string otherwise;  // its default, as YAML
  std::string description;
  bool reloadable = false;
};

std::vector<ConfigKey> config_keys();

/// Error: `config_invalid` with the line, the key and what would be right. `file` is for messages.
Result<Config> parse_config(std::string_view yaml, std::string_view file);
Result<Config> load_config(const std::string& path);

/// A file that says nothing but the defaults, with every description.
std::string default_config();

}  // namespace pawl::server
