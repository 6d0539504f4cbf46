// SPDX-License-Identifier: Apache-2.0
#include "workers/settings.hpp"

#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <string>

#include "pawl/names.hpp"

namespace pawl::workers {
namespace {

std::unexpected<Error> expected(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

Setting path_setting(std::string name, std::string description, std::string& place) {
  return {.name = std::move(name),
          .type = "text",
          .default_value = "\"\"",
          .description = std::move(description),
          .set = [&place](std::string_view text) -> Result<void> {
            place = text;
            return {};
          }};
}

Setting time_setting(std::string name, std::string default_value, std::string description, Duration& place,
                     Duration most) {
  return {.name = std::move(name),
          .type = "duration",
          .default_value = std::move(default_value),
          .description = std::move(description),
          .set = [&place, most](std::string_view text) -> Result<void> {
            const auto duration = parse_duration(text);
            if (!duration || duration->count() <= 0 || *duration > most) {
              return expected("a duration above zero and of at most " + to_string(most) + ", such as 100ms");
            }
            place = *duration;
            return {};
          }};
}

Setting number_setting(std::string name, std::string default_value, std::string description,
                       std::uint32_t& place, std::uint32_t most) {
  return {.name = std::move(name),
          .type = "number",
          .default_value = std::move(default_value),
          .description = std::move(description),
          .set = [&place, most](std::string_view text) -> Result<void> {
            std::uint32_t number = 0;
            const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
            if (failed != std::errc{} || end != text.data() + text.size() || number == 0 || number > most) {
              return expected("a number from 1 to " + std::to_string(most));
            }
            place = number;
            return {};
          }};
}

}  // namespace

std::vector<Setting> worker_settings(WorkersOptions& options) {
  using namespace std::chrono_literals;
  return {
      path_setting("file", "YAML file with the workers; if empty, the tree that was applied last",
                   options.file),
      time_setting("tick", "100ms", "interval at which deadlines of workers are checked", options.tick, 1s),
      {.name = "on_stop",
       .type = "leave, drain",
       .default_value = "leave",
       .description = "when the server stops: leave processes running, or stop every worker",
       .set = [&options](std::string_view text) -> Result<void> {
         const auto value = enum_value<OnStop>(text);
         if (!value) return expected("one of leave, drain");
         options.on_stop = *value;
         return {};
       }},
      time_setting("drain_base", "5s",
                   "time that each level of the tree gets to stop, in addition to stop_grace of processes",
                   options.drain_base, 10min),
      number_setting("actions", "64",
                     "maximum number of concurrent actions; stopping a process is one until it has exited",
                     options.actions, 1024),
      number_setting("collectors", "8", "maximum number of workers that are observed concurrently",
                     options.collectors, 256),
      path_setting("shim", "path of pawl-shim; if empty, next to the command or in ../libexec/pawl",
                   options.shim),
  };
}

std::string find_shim(const std::string& set) {
  if (!set.empty()) return set;
  std::error_code failure;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return {};
  for (const auto& path : {self.parent_path() / "pawl-shim",
                           self.parent_path().parent_path() / "libexec" / "pawl" / "pawl-shim"}) {
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  }
  return {};
}

}  // namespace pawl::workers
