// SPDX-License-Identifier: Apache-2.0
#include "images/settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "pawl/names.hpp"

namespace pawl::images {
namespace {

constexpr std::size_t kLongestSecret = 4096;

std::unexpected<Error> expected(std::string what) { return fail(Code::invalid_argument, std::move(what)); }

Setting text_setting(std::string name, std::string default_value, std::string description,
                     std::string& place) {
  return {.name = std::move(name),
          .type = "text",
          .default_value = default_value.empty() ? "\"\"" : default_value,
          .description = std::move(description),
          .set = [&place](std::string_view text) -> Result<void> {
            place = text;
            return {};
          }};
}

template <class E>
Setting choice_setting(std::string name, E default_value, std::string description,
                       std::function<void(E)> set) {
  std::vector<std::string_view> names;
  for (const auto value : enum_values<E>) names.push_back(enum_name(value));
  auto known = fmt::format("{}", fmt::join(names, ", "));
  return {.name = std::move(name),
          .type = known,
          .default_value = std::string(enum_name(default_value)),
          .description = std::move(description),
          .set = [known, set = std::move(set)](std::string_view text) -> Result<void> {
            const auto value = enum_value<E>(text);
            if (!value) return expected(fmt::format("one of {}", known));
            set(*value);
            return {};
          }};
}

Setting flag_setting(std::string name, std::string description, bool& place) {
  return {.name = std::move(name),
          .type = "true or false",
          .default_value = place ? "true" : "false",
          .description = std::move(description),
          .set = [&place](std::string_view text) -> Result<void> {
            if (text != "true" && text != "false") return expected("true or false");
            place = text == "true";
            return {};
          }};
}

unsigned shift_of(std::string_view unit) {
  if (unit == "KiB") return 10;
  if (unit == "MiB") return 20;
  return unit == "GiB" ? 30 : 0;
}

/// A number with an optional unit: 20, 64KiB, 10GiB.
Setting size_setting(std::string name, std::string default_value, std::string description, std::uint64_t most,
                     std::function<void(std::uint64_t)> set) {
  return {.name = std::move(name),
          .type = "number or bytes",
          .default_value = std::move(default_value),
          .description = std::move(description),
          .set = [most, set = std::move(set)](std::string_view text) -> Result<void> {
            std::uint64_t value = 0;
            const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
            const auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
            const unsigned shift = shift_of(unit);
            const bool good = failed == std::errc{} && (unit.empty() || shift != 0) && value > 0 &&
                              value <= (most >> shift);
            if (!good)
              return expected(fmt::format("a number from 1 to {}, such as 20, 64KiB or 10GiB", most));
            set(value << shift);
            return {};
          }};
}

Setting time_setting(std::string name, std::string default_value, std::string description, Duration& place) {
  return {.name = std::move(name),
          .type = "duration",
          .default_value = std::move(default_value),
          .description = std::move(description),
          .set = [&place](std::string_view text) -> Result<void> {
            const auto duration = parse_duration(text);
            if (!duration || duration->count() <= 0) return expected("a duration such as 30s, 5m or 2h");
            place = *duration;
            return {};
          }};
}

std::vector<Setting> source_settings(ImagesOptions& options, ImagesChoice& choice) {
  return {
      text_setting("bucket", "", "where an image is looked for when a request names no bucket",
                   options.bucket),
      text_setting("s3_endpoint", "",
                   "https://host[:port] of the object store; nothing: Amazon's for the region",
                   options.s3.endpoint),
      text_setting("s3_region", "us-east-1", "the region of the object store", options.s3.region),
      text_setting("s3_key_id", "",
                   "the access key; nothing: $AWS_ACCESS_KEY_ID, else requests are not signed",
                   options.s3.key_id),
      text_setting("s3_secret_file", "",
                   "a file with the secret of that key; nothing: $AWS_SECRET_ACCESS_KEY", choice.secret_file),
      flag_setting("s3_path_style", "the bucket stands in the path, not in the host name",
                   options.s3.path_style),
      {.name = "files",
       .type = "text",
       .default_value = "\"\"",
       .description = "a directory below which file:// images may be taken from",
       .set = [&options](std::string_view text) -> Result<void> {
         if (text.empty()) return {};
         if (!text.starts_with('/')) return expected("an absolute path");
         options.file_directories.emplace_back(text);
         return {};
       }},
  };
}

/// "fast=dir:/srv/fast, big=btrfs:/srv/big"; nothing where it is not that.
std::optional<std::vector<FurtherPool>> parse_pools(std::string_view text) {
  std::vector<FurtherPool> pools;
  for (bool more = !text.empty(); more;) {
    const auto end = text.find(',');
    auto item = text.substr(0, end);
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    const auto equals = item.find('=');
    const auto colon = item.find(':');
    if (equals == std::string_view::npos || colon == std::string_view::npos || colon < equals)
      return std::nullopt;
    const auto kind = enum_value<BackendKind>(item.substr(equals + 1, colon - equals - 1));
    const auto root = item.substr(colon + 1);
    if (!kind || equals == 0 || !root.starts_with('/')) return std::nullopt;
    pools.push_back({std::string(item.substr(0, equals)), *kind, std::string(root)});
  }
  return pools;
}

/// As the back ends see it: without links, and without a slash at its end.
std::filesystem::path plain_path(const std::string& path) {
  std::error_code failure;
  const auto absolute = std::filesystem::absolute(path, failure);
  auto plain = std::filesystem::weakly_canonical(absolute, failure);
  if (failure) plain = absolute.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_at_or_below(const std::filesystem::path& path, const std::filesystem::path& directory) {
  const auto [place, rest] = std::ranges::mismatch(directory, path);
  return place == directory.end();
}

std::vector<Setting> pool_settings(ImagesOptions& options, ImagesChoice& choice) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return {
      text_setting("directory", "", "archives and the pool; nothing: images/ in the data directory",
                   options.directory),
      choice_setting<BackendKind>("backend", BackendKind::dir,
                                  "how images are unpacked and snapshots are taken",
                                  [&choice](BackendKind kind) { choice.backend = kind; }),
      text_setting("pool", "pawl", "the name of the default pool", options.backend.pool),
      {.name = "pools",
       .type = "text",
       .default_value = "\"\"",
       .description = "further pools, such as fast=dir:/srv/fast, big=btrfs:/srv/big",
       .set = [&options](std::string_view text) -> Result<void> {
         auto pools = parse_pools(text);
         if (!pools) {
           return expected(
               "names with one of dir, reflink and btrfs and an absolute path, such as \"fast=dir:/srv/fast, "
               "big=btrfs:/srv/big\"");
         }
         options.pools = *std::move(pools);
         return {};
       }},
      text_setting("data_device", "", "of a device mapper pool; nothing: a file in the directory",
                   options.backend.data_device),
      text_setting("metadata_device", "", "likewise", options.backend.metadata_device),
      size_setting("pool_size", "20GiB", "of a pool that has to be made; it takes space as it fills", kMost,
                   [&options](std::uint64_t bytes) { options.backend.pool_bytes = bytes; }),
      size_setting("volume_size", "10GiB", "how much an image may hold when it is unpacked", kMostVolumeBytes,
                   [&options](std::uint64_t bytes) { options.volume_bytes = bytes; }),
  };
}

std::vector<Setting> rule_settings(ImagesOptions& options, ImagesChoice& choice) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  return {
      size_setting("image_size", "10GiB",
                   "the largest archive, as it is downloaded and without its compression", kMost,
                   [&options](std::uint64_t bytes) {
                     options.image_bytes = bytes;
                     options.limits.archive_bytes = bytes;
                   }),
      size_setting("entries", "100000", "the most entries of an archive", 100'000'000,
                   [&options](std::uint64_t count) { options.limits.entries = count; }),
      size_setting("file_size", "1GiB", "the largest file in an archive", kMost,
                   [&options](std::uint64_t bytes) { options.limits.file_bytes = bytes; }),
      size_setting("content_size", "10GiB", "the most content of an archive", kMost,
                   [&options](std::uint64_t bytes) { options.limits.total_bytes = bytes; }),
      choice_setting<PolicyPreset>("policy", PolicyPreset::strict,
                                   "strict, or what root file systems of distributions have; see below",
                                   [&choice](PolicyPreset preset) { choice.policy = preset; }),
      choice_setting<SetIdPolicy>("set_id", SetIdPolicy::reject, "what becomes of setuid and setgid files",
                                  [&choice](SetIdPolicy policy) { choice.set_id = policy; }),
      choice_setting<AbsoluteLinkPolicy>(
          "absolute_links", AbsoluteLinkPolicy::reject, "what becomes of symbolic links to absolute paths",
          [&choice](AbsoluteLinkPolicy policy) { choice.absolute_links = policy; }),
      choice_setting<DevicePolicy>("devices", DevicePolicy::reject, "what becomes of device nodes",
                                   [&choice](DevicePolicy policy) { choice.devices = policy; }),
      choice_setting<CasePolicy>("case_collisions", CasePolicy::reject,
                                 "what becomes of names that differ only in upper and lower case",
                                 [&choice](CasePolicy policy) { choice.case_collisions = policy; }),
      flag_setting("strict_layout", "rootfs/etc, rootfs/usr and rootfs/var must be there",
                   options.layout.strict),
      flag_setting("direct_layout", "the archive's root is the root file system, without rootfs/",
                   options.layout.direct),
  };
}

std::vector<Setting> running_settings(ImagesOptions& options) {
  return {
      size_setting(
          "downloads", "5", "downloads at a time", 1000,
          [&options](std::uint64_t count) { options.downloads = static_cast<std::uint32_t>(count); }),
      size_setting(
          "unpacking", "2", "images that are unpacked at a time", 1000,
          [&options](std::uint64_t count) { options.unpacking = static_cast<std::uint32_t>(count); }),
      time_setting("download_timeout", "5m", "for one attempt; the next one goes on where it ended",
                   options.download_timeout),
      size_setting("download_retries", "5", "how often a download is tried again", 1000,
                   [&options](std::uint64_t count) {
                     options.download_retry.retries = static_cast<std::uint32_t>(count);
                   }),
      time_setting("download_wait", "4s",
                   "before the first retry, plus or minus half of it; it doubles each time",
                   options.download_retry.first),
      time_setting("download_longest_wait", "64s", "before any retry", options.download_retry.cap),
      time_setting("object_connect_timeout", "10s", "for a connection to the object store",
                   options.s3.connect_timeout),
      time_setting("object_stall_timeout", "30s", "without a byte from the object store",
                   options.s3.stall_timeout),
      time_setting("unpack_timeout", "30m", "for unpacking one image; then it is given up",
                   options.unpack_timeout),
  };
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

std::vector<Setting> image_settings(ImagesOptions& options, ImagesChoice& choice) {
  auto all = source_settings(options, choice);
  for (auto& more :
       {pool_settings(options, choice), rule_settings(options, choice), running_settings(options)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

Result<void> check_pools(const ImagesOptions& options) {
  const auto refuse = [](std::string why) {
    return fail(Code::config_invalid, "images.pools: " + std::move(why));
  };
  const auto root = options.backend.root.empty() ? options.directory + "/pool" : options.backend.root;
  std::map<std::string, std::filesystem::path> places{
      {"the default pool", plain_path(root)}, {"the archives", plain_path(options.directory + "/archives")}};
  std::set<std::string> names{options.backend.pool};
  for (const auto& pool : options.pools) {
    if (!names.insert(pool.name).second) {
      return refuse(
          fmt::format("two pools have the name \"{}\"; the default one has it by images.pool, or it "
                      "is given twice",
                      pool.name));
    }
    if (pool.kind == BackendKind::dmthin) {
      return refuse(
          fmt::format("\"{}\" cannot be dmthin, which only the default pool can be; choose dir, "
                      "reflink or btrfs, or make it the default one with images.backend",
                      pool.name));
    }
    const auto place = plain_path(pool.root);
    for (const auto& [other, taken] : places) {
      if (!is_at_or_below(place, taken) && !is_at_or_below(taken, place)) continue;
      return refuse(
          fmt::format("\"{}\" in {} and {} in {} lie in each other; give each a directory of its own",
                      pool.name, place.string(), other, taken.string()));
    }
    places.emplace("\"" + pool.name + "\"", place);
  }
  return {};
}

void choose_policy(ImagesOptions& options, const ImagesChoice& choice) {
  auto& policy = options.policy;
  policy = policy_of(choice.policy);
  policy.set_id = choice.set_id.value_or(policy.set_id);
  policy.absolute_links = choice.absolute_links.value_or(policy.absolute_links);
  policy.devices = choice.devices.value_or(policy.devices);
  policy.case_collisions = choice.case_collisions.value_or(policy.case_collisions);
  options.layout.either = choice.policy == PolicyPreset::distribution;
}

Result<void> read_credentials(S3Options& s3, const ImagesChoice& choice) {
  if (s3.key_id.empty()) s3.key_id = from_environment("AWS_ACCESS_KEY_ID");
  if (choice.secret_file.empty()) {
    s3.secret = from_environment("AWS_SECRET_ACCESS_KEY");
    s3.session_token = from_environment("AWS_SESSION_TOKEN");
  } else {
    std::ifstream file(choice.secret_file, std::ios::binary);
    std::string secret(kLongestSecret + 1, '\0');
    file.read(secret.data(), static_cast<std::streamsize>(secret.size()));
    secret.resize(static_cast<std::size_t>(file.gcount()));
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
    if (secret.empty() || secret.size() > kLongestSecret) {
      return fail(
          Code::config_invalid,
          fmt::format("images.s3_secret_file: {} cannot be read, or does not hold one secret of at most {} "
                      "bytes",
                      choice.secret_file, kLongestSecret));
    }
    s3.secret = std::move(secret);
  }
  if (s3.key_id.empty() != s3.secret.empty()) {
    return fail(
        Code::config_invalid,
        "images.s3_key_id and its secret are given together, or neither for requests without a signature");
  }
  return {};
}

}  // namespace pawl::images
