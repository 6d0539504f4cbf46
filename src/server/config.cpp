// SPDX-License-Identifier: Apache-2.0
#include "server/config.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "kernel/suggestion.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

/// Reads a value into the configuration; returns what was expected if it does not fit.
using Read = std::function<std::optional<std::string>(Config&, const YAML::Node&)>;

struct Key {
  ConfigKey shown;
  Read read;
};

std::string text_of(const YAML::Node& node) { return node.IsScalar() ? node.Scalar() : std::string(); }

std::optional<std::uint64_t> to_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  if (text.empty() || std::from_chars(text.data(), end, value).ptr != end) return std::nullopt;
  return value;
}

/// 65536, 64KiB, 1MiB, 2GiB.
std::optional<std::uint64_t> to_bytes(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
  for (const auto& [unit, shift] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const auto number = to_number(text.substr(0, text.size() - unit.size()));
    if (!number || *number > (std::uint64_t{1} << 20)) return std::nullopt;
    return *number << shift;
  }
  return to_number(text);
}

/// A value as text, for comparison.
std::string value_of(const YAML::Node& node) { return node.IsScalar() ? node.Scalar() : YAML::Dump(node); }

// One maker per type. `place` gives the field of the configuration that the key sets.

template <class F>
Key text_key(std::string name, std::string default_value, std::string description, F place) {
  return {{std::move(name), "text", default_value.empty() ? "\"\"" : default_value, std::move(description)},
          [place](Config& config, const YAML::Node& node) -> std::optional<std::string> {
            if (!node.IsScalar()) return "a text";
            place(config) = node.Scalar();
            return std::nullopt;
          }};
}

template <class F>
Key flag_key(std::string name, bool default_value, std::string description, F place) {
  return {{std::move(name), "true or false", default_value ? "true" : "false", std::move(description)},
          [place](Config& config, const YAML::Node& node) -> std::optional<std::string> {
            const auto text = text_of(node);
            if (text != "true" && text != "false") return "true or false";
            place(config) = text == "true";
            return std::nullopt;
          }};
}

template <class F>
Key number_key(std::string name, std::uint64_t default_value, std::uint64_t least, std::uint64_t most,
               std::string description, F place) {
  return {{std::move(name), fmt::format("number from {} to {}", least, most), std::to_string(default_value),
           std::move(description)},
          [=](Config& config, const YAML::Node& node) -> std::optional<std::string> {
            const auto number = to_number(text_of(node));
            if (!number || *number < least || *number > most) {
              return fmt::format("a number from {} to {}", least, most);
            }
            place(config) = *number;
            return std::nullopt;
          }};
}

template <class F>
Key bytes_key(std::string name, std::string default_value, std::string description, F place) {
  return {{std::move(name), "bytes", std::move(default_value), std::move(description)},
          [place](Config& config, const YAML::Node& node) -> std::optional<std::string> {
            const auto bytes = to_bytes(text_of(node));
            if (!bytes || *bytes < 1024 || *bytes > (std::uint64_t{1} << 40)) {
              return "a number of bytes from 1KiB on, such as 65536, 64KiB or 1MiB";
            }
            place(config) = *bytes;
            return std::nullopt;
          }};
}

/// `place` takes the duration; `optional`: "never" leaves the field empty.
template <class F>
Key time_key(std::string name, std::string default_value, std::string description, F place,
             bool optional = false) {
  return {{std::move(name), optional ? "duration or never" : "duration", std::move(default_value),
           std::move(description)},
          [place, optional](Config& config, const YAML::Node& node) -> std::optional<std::string> {
            if (optional && text_of(node) == "never") return std::nullopt;
            const auto duration = parse_duration(text_of(node));
            if (!duration || duration->count() <= 0) {
              return fmt::format("a duration such as 500ms, 30s or 2h{}", optional ? ", or never" : "");
            }
            place(config) = *duration;
            return std::nullopt;
          }};
}

std::optional<std::string> read_level(Config& config, const YAML::Node& node) {
  const auto level = parse_log_level(text_of(node));
  if (!level) return "trace, debug, info, warn or error";
  config.log_level = *level;
  return std::nullopt;
}

std::optional<std::string> read_format(Config& config, const YAML::Node& node) {
  if (text_of(node) != "text" && text_of(node) != "json") return "text or json";
  config.log_format = text_of(node) == "json" ? LogFormat::json : LogFormat::text;
  return std::nullopt;
}

std::optional<std::string> read_systems(Config& config, const YAML::Node& node) {
  if (!node.IsSequence()) return "a list of names, such as [feeds, fleet]";
  for (const auto& item : node) {
    if (!item.IsScalar()) return "a list of names, such as [feeds, fleet]";
    config.systems.push_back(item.Scalar());
  }
  return std::nullopt;
}

std::optional<std::string> read_pools(Config& config, const YAML::Node& node) {
  constexpr const char* kExpected = "pool names with their sizes from 1 to 1000000, such as {uplink: 4}";
  if (!node.IsMap()) return kExpected;
  for (const auto& item : node) {
    const auto size = to_number(text_of(item.second));
    if (!item.first.IsScalar() || !size || *size < 1 || *size > 1'000'000) return kExpected;
    config.engine.pools[item.first.Scalar()] = static_cast<std::uint32_t>(*size);
  }
  return std::nullopt;
}

std::vector<Key> limit_keys() {
  const auto limits = [](auto member) {
    return [member](Config& config) -> auto& { return config.server.limits.*member; };
  };
  using L = HttpLimits;
  return {
      bytes_key("limits.header_bytes", "16KiB", "size of the request line and all headers",
                limits(&L::header_bytes)),
      bytes_key("limits.body_bytes", "1MiB", "size of a request's body", limits(&L::body_bytes)),
      number_key("limits.connections", 4096, 1, 1'000'000, "open connections", limits(&L::connections)),
      number_key("limits.connections_per_address", 1024, 1, 1'000'000,
                 "open connections per address; behind a proxy, all share its address",
                 limits(&L::connections_per_address)),
      number_key("limits.connections_per_user", 512, 1, 1'000'000, "open connections per user or token",
                 limits(&L::connections_per_user)),
      number_key("limits.connections_reserved", 32, 0, 1'000'000,
                 "connections reserved for operators and administrators; at most a quarter of all",
                 limits(&L::connections_reserved)),
      time_key("limits.idle_timeout", "75s", "between two requests on a connection",
               limits(&L::idle_timeout)),
      time_key("limits.header_timeout", "10s", "from the first byte of a request to the end of its header",
               limits(&L::header_timeout)),
      time_key("limits.body_timeout", "30s", "for a request's body to arrive", limits(&L::body_timeout)),
      time_key("limits.reserved_timeout", "2s",
               "on a reserved connection: until a whole request has arrived, TLS included",
               limits(&L::reserved_timeout)),
      time_key("limits.write_timeout", "30s", "for an answer or a piece of a stream to be sent",
               limits(&L::write_timeout)),
      number_key("limits.streams", 2000, 1, 1'000'000, "open event streams", limits(&L::streams)),
      number_key("limits.streams_per_address", 500, 1, 1'000'000,
                 "open event streams per address; behind a proxy, all share its address",
                 limits(&L::streams_per_address)),
      number_key("limits.streams_per_user", 100, 1, 1'000'000, "open event streams per user or token",
                 limits(&L::streams_per_user)),
      number_key("limits.streams_reserved", 32, 0, 1'000'000,
                 "event streams reserved for operators and administrators; at most a quarter of all",
                 limits(&L::streams_reserved)),
      bytes_key("limits.stream_buffer", "1MiB", "buffer for one slow reader of events",
                limits(&L::stream_buffer)),
      time_key("limits.heartbeat", "15s", "interval of keep-alive messages on an idle event stream",
               limits(&L::heartbeat)),
  };
}

std::vector<Key> engine_keys() {
  const auto engine = [](auto member) {
    return [member](Config& config) -> auto& { return config.engine.*member; };
  };
  using E = EngineOptions;
  return {
      number_key("engine.work_threads", 8, 1, 1024, "threads that run work", engine(&E::work_threads)),
      number_key("engine.queue", 65536, 1, 10'000'000, "transactions that may wait; more are refused",
                 engine(&E::queue)),
      number_key("engine.batch", 4096, 1, 1'000'000, "most transactions that share a durable commit",
                 engine(&E::batch)),
      bytes_key("engine.cache", "256MiB", "size of the cache of instance data", engine(&E::cache_bytes)),
      time_key("engine.keep", "never", "how long log entries are kept", engine(&E::keep), true),
      time_key("engine.forget_finished", "never", "how long finished instances are kept",
               engine(&E::forget_finished), true),
      {{"engine.pools", "names with sizes", "{}", "permit pools, in addition to those of the systems"},
       read_pools},
  };
}

std::vector<Key> make_keys() {
  std::vector<Key> keys{
      text_key("listen", "127.0.0.1:7420", "address and port to listen on; [::1]:7420 for IPv6",
               [](Config& config) -> auto& { return config.server.listen; }),
      flag_key("allow_insecure", false,
               "listen beyond loopback without auth and TLS; without auth any web page can then change data",
               [](Config& config) -> auto& { return config.server.allow_insecure; }),
      flag_key("allow_programs_without_auth", false,
               "with auth.enabled: false, let everyone who reaches the server run programs on this machine",
               [](Config& config) -> auto& { return config.server.allow_programs_without_auth; }),
      text_key("data", "pawl-data", "directory of the store; created if absent",
               [](Config& config) -> auto& { return config.data; }),
      text_key("store", "", "sqlite:PATH or postgresql://…; default: SQLite in the data directory",
               [](Config& config) -> auto& { return config.store; }),
      flag_key("demo", false, "run the demo system, which simulates orders",
               [](Config& config) -> auto& { return config.demo; }),
      {{"systems", "list of names", "[]", "the systems to run; [all] for every one"}, read_systems},
      {{"log.level", "trace, debug, info, warn or error", "info", "lowest level that is logged", true},
       read_level},
      {{"log.format", "text or json", "text", "text for people, json for programs"}, read_format},
      time_key("drain_timeout", "10s", "how long open requests may take to finish after SIGTERM",
               [](Config& config) -> auto& { return config.drain_timeout; }),
      number_key("http.threads", 2, 1, 256, "threads for network I/O",
                 [](Config& config) -> auto& { return config.server.threads; }),
      number_key("http.handler_threads", 4, 1, 256,
                 "threads for requests that block, such as reads from the disk",
                 [](Config& config) -> auto& { return config.server.handler_threads; }),
      flag_key("auth.enabled", true,
               "require a login or a token; if false, everyone who reaches the server may do everything",
               [](Config& config) -> auto& { return config.auth; }),
      flag_key("auth.login_link", false,
               "print a one-time link at each start that logs in to the dashboard as admin; for local use",
               [](Config& config) -> auto& { return config.login_link; }),
      text_key("tls.certificate", "", "PEM file with the certificate and its chain; reloaded on SIGHUP",
               [](Config& config) -> auto& { return config.server.certificate; }),
      text_key("tls.key", "", "PEM file with the private key; reloaded on SIGHUP",
               [](Config& config) -> auto& { return config.server.key; }),
  };
  for (auto& more : {limit_keys(), engine_keys()}) keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

Key setting_key(const std::string& system, Setting setting) {
  return {{system + "." + setting.name, std::move(setting.type), std::move(setting.default_value),
           std::move(setting.description)},
          [set = std::move(setting.set)](Config&, const YAML::Node& node) -> std::optional<std::string> {
            if (!node.IsScalar()) return "one value";
            const auto taken = set(node.Scalar());
            return taken ? std::nullopt : std::optional(taken.error().message());
          }};
}

/// Those of the server, then those of the systems.
std::vector<Key> all_keys(const Systems& systems) {
  auto keys = make_keys();
  for (const auto& system : systems) {
    for (auto& setting : system->settings()) keys.push_back(setting_key(system->name(), std::move(setting)));
  }
  return keys;
}

struct Place {
  std::string_view file;
  int line = 0;
  std::string key;
};

Error refuse(const Place& place, std::string_view what) {
  return {Code::config_invalid,
          fmt::format("{}:{}: {}", place.file, place.line, what),
          {{"line", std::to_string(place.line)}, {"key", place.key}}};
}

Error unknown_key(const std::vector<Key>& keys, const Place& place) {
  std::vector<std::string> known;
  for (const auto& key : keys) known.push_back(key.shown.name);
  auto hint = suggestion(place.key, known);
  if (hint.empty()) hint = "; docs/configuration.md lists them";
  return refuse(place, fmt::format("there is no key \"{}\"{}", place.key, hint));
}

bool is_group(const std::vector<Key>& keys, const std::string& name) {
  return std::ranges::any_of(keys, [&](const Key& key) { return key.shown.name.starts_with(name + "."); });
}

Result<void> read_map(const std::vector<Key>& keys, Config& config, const YAML::Node& map,
                      const std::string& group, std::string_view file, std::vector<std::string>& seen) {
  for (const auto& item : map) {
    if (!item.first.IsScalar()) {
      return fail(refuse({file, item.first.Mark().line + 1, group}, "a key is a name"));
    }
    const auto name = group.empty() ? item.first.Scalar() : group + "." + item.first.Scalar();
    const Place place{file, item.first.Mark().line + 1, name.substr(0, 128)};
    if (std::ranges::find(seen, name) != seen.end()) {
      return fail(refuse(place, fmt::format("the key \"{}\" is given twice", place.key)));
    }
    seen.push_back(name);
    const auto key = std::ranges::find(keys, name, [](const Key& entry) { return entry.shown.name; });
    if (key == keys.end()) {
      if (!is_group(keys, name)) return fail(unknown_key(keys, place));
      if (!item.second.IsMap()) {
        return fail(refuse(place, fmt::format("\"{}\" holds keys of its own, not a value", name)));
      }
      PAWL_CHECK(read_map(keys, config, item.second, name, file, seen));
    } else if (const auto expected = key->read(config, item.second)) {
      return fail(refuse(place, fmt::format("\"{}\" is {}, not \"{}\"", name, *expected,
                                            text_of(item.second).substr(0, 64))));
    } else {
      config.given[name] = value_of(item.second);
    }
  }
  return {};
}

}  // namespace

std::vector<ConfigKey> config_keys(const Systems& systems) {
  std::vector<ConfigKey> shown;
  for (const auto& key : all_keys(systems)) shown.push_back(key.shown);
  return shown;
}

Result<Config> parse_config(std::string_view yaml, std::string_view file, const Systems& systems) {
  if (yaml.size() > kMostBytes) {
    return fail(Code::config_invalid, fmt::format("{}: larger than {} bytes", file, kMostBytes));
  }
  Config config;
  std::vector<std::string> seen;
  try {
    const auto root = YAML::Load(std::string(yaml));
    if (root.IsNull()) return config;
    if (!root.IsMap())
      return fail(refuse({file, 1, {}}, "the file holds keys with values, such as `demo: true`"));
    PAWL_CHECK(read_map(all_keys(systems), config, root, "", file, seen));
  } catch (const YAML::Exception& problem) {
    return fail(refuse({file, problem.mark.line + 1, {}}, fmt::format("this is not YAML: {}", problem.msg)));
  }
  if (config.server.certificate.empty() != config.server.key.empty()) {
    return fail(Code::config_invalid,
                fmt::format("{}: tls.certificate and tls.key are given together", file));
  }
  return config;
}

Result<Config> load_config(const std::string& path, const Systems& systems) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Code::config_invalid, fmt::format("{} cannot be read", path));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_config(text, path, systems);
}

std::vector<std::string> keys_that_need_restart(const Config& running, const Config& fresh,
                                                const Systems& systems) {
  std::vector<std::string> changed;
  for (const auto& key : config_keys(systems)) {
    const auto value = [&](const Config& config) {
      const auto found = config.given.find(key.name);
      return found == config.given.end() ? value_of(YAML::Load(key.default_value)) : found->second;
    };
    if (!key.reloadable && value(running) != value(fresh)) changed.push_back(key.name);
  }
  return changed;
}

std::string default_config(const Systems& systems) {
  std::string text;
  std::string group;
  for (const auto& key : config_keys(systems)) {
    const auto dot = key.name.find('.');
    const auto begins = dot == std::string::npos ? std::string() : key.name.substr(0, dot);
    if (begins != group && !begins.empty()) text += begins + ":\n";
    group = begins;
    const auto name = dot == std::string::npos ? key.name : key.name.substr(dot + 1);
    text +=
        fmt::format("{}{}: {}  # {}\n", group.empty() ? "" : "  ", name, key.default_value, key.description);
  }
  return text;
}

}  // namespace pawl::server
