// SPDX-License-Identifier: Apache-2.0
#include "images/system.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "images/demo_image.hpp"
#include "images/directories.hpp"
#include "images/flows.hpp"
#include "images/level.hpp"
#include "images/page.hpp"
#include "images/routes.hpp"
#include "images/settings.hpp"
#include "images/verbs.hpp"
#include "pawl/names.hpp"

namespace pawl::images {
namespace {

using namespace std::chrono_literals;

/// How often the pool is looked at.
constexpr Duration kPoolCheckInterval = 30s;

class Images final : public System {
 public:
  std::string name() const override { return "images"; }
  std::string summary() const override { return "container images from S3 to a mountable snapshot"; }

  std::vector<Setting> settings() override { return image_settings(options_, choice_); }

  Result<void> prepare(const SystemContext& place) override {
    if (options_.directory.empty())
      options_.directory = std::filesystem::absolute(place.data + "/images").string();
    options_.backend.kind = choice_.backend.value_or(BackendKind::dir);
    PAWL_CHECK(check_pools(options_));
    PAWL_CHECK(check_volume_size(static_cast<std::int64_t>(options_.volume_bytes)));
    options_.log = place.log.with({{"system", name()}});
    choose_policy(options_, choice_);
    PAWL_CHECK(read_credentials(options_.s3, choice_));
    if (place.demo) {
      PAWL_CHECK(make_safe_directory(options_.directory + "/demo"));
      PAWL_TRY(demo_image_, write_demo_image(options_.directory + "/demo"));
      options_.file_directories.push_back(options_.directory + "/demo");
    }
    services_.emplace(options_);
    return services_->open();
  }

  void add_flows(Flows& flows) override {
    flows_ = &flows;
    add_image_flows(flows, *services_);
  }
  std::vector<Migration> migrations() const override { return image_migrations(); }
  std::map<std::string, std::uint32_t> pools() const override {
    return {{std::string(kDownloads), options_.downloads}, {std::string(kUnpacking), options_.unpacking}};
  }

  Result<void> start(Runtime& runtime, Engine&) override {
    reactivate_snapshots();
    lane_ = runtime.open_lane("images");
    lane_->post([this, &lane = *lane_] { check_pool_levels(lane); });
    return {};
  }
  void stop() override { lane_.reset(); }

  std::vector<http::Route> routes(Engine& engine) override {
    return image_routes({.services = *services_, .flows = *flows_, .engine = engine});
  }
  std::vector<Verb> verbs() override { return image_verbs(); }
  std::optional<Page> page() override { return Page{.title = "Images", .script = kPageScript}; }

  void write_metrics(Engine& engine, MetricsText& out) override {
    std::map<std::string, double> counts;
    for (const auto status : enum_values<DownloadStatus>) counts[std::string(enum_name(status))] = 0;
    const auto query = [&engine](const Sql& statement) { return engine.query(statement); };
    if (const auto rows = list_images(query)) {
      for (const auto& row : *rows) counts[std::string(enum_name(row.download_status))] += 1;
    }
    out.gauge("images_total", "Images by the status of their download.");
    for (const auto& [status, count] : counts) out.sample({{"status", status}}, count);
    write_pool_metrics(out);
  }

 private:
  void write_pool_metrics(MetricsText& out) const {
    std::map<std::string, PoolUsage> pools;  // by title
    out.gauge("images_pool_up", "1 if the pool of volumes is attached and answers, else 0.");
    for (const auto& pool : services_->pools()) {
      const auto usage = usage_of(pool);
      const auto title = services_->pool_title(pool);
      out.sample({{"pool", title}}, usage ? 1 : 0);
      if (usage) pools.emplace(title, *usage);
    }
    const auto write = [&](std::string_view name, std::string_view help, auto value) {
      bool begun = false;
      for (const auto& [title, usage] : pools) {
        const std::optional<double> number = value(usage);
        if (!number) continue;
        if (!std::exchange(begun, true)) out.gauge(name, help);
        out.sample({{"pool", title}}, *number);
      }
    };
    const auto known = [](const std::optional<std::uint64_t>& bytes) {
      return bytes ? std::optional(static_cast<double>(*bytes)) : std::nullopt;
    };
    write("images_pool_bytes", "Size of the pool.",
          [&](const PoolUsage& usage) { return known(usage.bytes); });
    write("images_pool_used_bytes", "Used bytes of the pool.",
          [&](const PoolUsage& usage) { return known(usage.used); });
    write("images_pool_alarm", "How full the pool is: 0 normal, 1 filling (from 80 % on), 2 full.",
          [&](const PoolUsage& usage) {
            return std::optional(static_cast<double>(alarm(usage, options_.full)));
          });
    write("images_pool_metadata_bytes", "Size of the metadata of the pool.",
          [&](const PoolUsage& usage) { return known(usage.metadata_bytes); });
    write("images_pool_metadata_used_bytes", "Used bytes of the metadata of the pool.",
          [&](const PoolUsage& usage) { return known(usage.metadata_used); });
  }

  /// After a restart of the machine nothing is active any more: what should be is made so again. With the
  /// demo, there is something to look at.
  void reactivate_snapshots() {
    if (!demo_image_.empty()) {
      const auto request = encode(ProcessRequest{.s3_key = "file://" + demo_image_, .image_id = "hello"});
      begin(kProcess, "hello", request);
    }
    for (const auto& pool : services_->pools()) {
      begin(kReactivate, reactivation_id(pool), encode(ReactivateRequest{.pool_name = pool}));
    }
  }

  void begin(std::string_view flow, const std::string& id, const Result<std::string>& request) {
    const auto run = request ? flows_->start(flow, *request, {.id = id}) : Result<Run>(fail(request.error()));
    if (!run) {
      options_.log.error("run was not started",
                         {{"flow", flow}, {"id", id}, {"error", run.error().to_string()}});
    }
  }

  /// Says once that the pool fills, once that it is full, and once that it has room again.
  void log_level_change(const std::string& pool, const PoolUsage& usage) {
    const auto now = alarm(usage, options_.full);
    const auto before = std::exchange(alarms_[pool], now);
    if (now == before) return;
    const auto title = services_->pool_title(pool);
    if (now == Alarm::none) {
      options_.log.info("the pool has room again", {{"pool", title}, {"level", level_text(usage)}});
    } else {
      options_.log.warn(
          now == Alarm::full ? "the pool is full" : "the pool fills",
          {{"pool", title}, {"level", level_text(usage)}, {"used", usage.used}, {"bytes", usage.bytes}});
    }
  }

  Result<PoolUsage> usage_of(const std::string& name) const {
    PAWL_TRY(auto* pool, services_->attached_pool(name));
    return pool->pool();
  }

  void check_pool_levels(Lane& lane) {
    for (const auto& pool : services_->pools()) {
      if (const auto usage = usage_of(pool)) log_level_change(pool, *usage);
    }
    lane.after(kPoolCheckInterval, [this, &lane] { check_pool_levels(lane); });
  }

  ImagesOptions options_;
  ImagesChoice choice_;
  std::string demo_image_;
  std::optional<ImageServices> services_;
  Flows* flows_ = nullptr;
  std::map<std::string, Alarm> alarms_;  ///< by pool
  std::unique_ptr<Lane> lane_;
};

}  // namespace

std::unique_ptr<System> make_images() { return std::make_unique<Images>(); }

}  // namespace pawl::images
