// SPDX-License-Identifier: Apache-2.0
#pragma once

/// pawl.yaml: one flat list of keys, each with its type, default and one line of description. The page
/// docs/configuration.md is written from the same list.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/engine.hpp"
#include "pawl/error.hpp"
#include "pawl/log.hpp"
#include "pawl/server.hpp"
#include "pawl/system.hpp"

namespace pawl::server {

/// The configuration of `pawl serve`.
struct Config {
  std::string store{};  ///< empty: SQLite in the data directory
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
  std::map<std::string, std::string, std::less<>> given{};  ///< what the keys were given as, by name
};

/// One key as the documentation shows it.
struct ConfigKey {
  std::string name;  // "limits.header_bytes"
  std::string type;
  std::string default_value;  // its default, as YAML
  std::string description;
  bool reloadable = false;
};

/// The systems that add keys to the server's own.
using Systems = std::vector<std::unique_ptr<System>>;

std::vector<ConfigKey> config_keys(const Systems& systems = {});

/// Passes the keys of a system on to it. Error: `config_invalid` with the line, the key and what was
/// expected. `file` is for messages.
Result<Config> parse_config(std::string_view yaml, std::string_view file, const Systems& systems = {});
Result<Config> load_config(const std::string& path, const Systems& systems = {});

/// Changed keys that need a restart.
std::vector<std::string> keys_that_need_restart(const Config& running, const Config& fresh,
                                                const Systems& systems = {});

/// A file with every key, its default and its description.
std::string default_config(const Systems& systems = {});

}  // namespace pawl::server
