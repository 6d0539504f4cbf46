// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Images in a simulation: flows in virtual time, on real files and a real pool of directories.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "images/flows.hpp"
#include "images/garbage.hpp"
#include "pawl/flow_kit.hpp"
#include "tests/images/s3_world.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images::test {

/// What the real ones were asked to do.
struct Counts {
  int fetched = 0;
  int created = 0;
  int mounted = 0;
  int snapshots = 0;
  int removed = 0;
  int at_a_time = 0;  ///< the most fetches at once
  int now = 0;
};

/// A source that counts, and can be told to fail.
class CountingSource final : public Source {
 public:
  CountingSource(std::unique_ptr<Source> inner, Counts& counts, std::optional<Error>& trouble)
      : inner_(std::move(inner)), counts_(counts), trouble_(trouble) {}
  Result<ObjectInfo> look(const ObjectName& name, std::stop_token stop) override {
    return inner_->look({"", "/" + name.key}, std::move(stop));
  }
  /// Objects are files here, by their path without the first slash.
  Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                        const FetchOptions& options) override {
    ++counts_.fetched;
    if (trouble_) return fail(*trouble_);
    return inner_->fetch({"", "/" + name.key}, path, options);
  }

 private:
  std::unique_ptr<Source> inner_;
  Counts& counts_;
  std::optional<Error>& trouble_;
};

/// A back end that counts.
class CountingBackend final : public Backend {
 public:
  CountingBackend(std::unique_ptr<Backend> inner, Counts& counts)
      : inner_(std::move(inner)), counts_(counts) {}
  std::string_view name() const override { return inner_->name(); }
  Result<void> attach() override { return inner_->attach(); }
  Result<void> detach() override { return inner_->detach(); }
  Result<PoolUsage> pool() override { return inner_->pool(); }
  Result<void> extend(std::uint64_t bytes) override { return inner_->extend(bytes); }
  Result<void> create(const Volume& volume) override {
    ++counts_.created;
    return inner_->create(volume);
  }
  Result<std::string> mount(const Volume& volume) override {
    ++counts_.mounted;
    return inner_->mount(volume);
  }
  Result<void> unmount(const Volume& volume) override { return inner_->unmount(volume); }
  Result<void> snapshot(const Volume& origin, const Volume& copy) override {
    ++counts_.snapshots;
    return inner_->snapshot(origin, copy);
  }
  Result<std::string> activate(const Volume& volume) override { return inner_->activate(volume); }
  Result<void> deactivate(const Volume& volume) override { return inner_->deactivate(volume); }
  Result<void> remove(std::uint32_t id) override {
    ++counts_.removed;
    return inner_->remove(id);
  }
  Result<std::optional<FoundVolume>> find(const Volume& volume) override { return inner_->find(volume); }
  Result<std::vector<FoundVolume>> list() override { return inner_->list(); }
  Result<std::vector<VolumeUsage>> usage() override { return inner_->usage(); }

 private:
  std::unique_ptr<Backend> inner_;
  Counts& counts_;
};

/// A small image that is as it should be.
inline TarBuilder good_image(std::string_view text = "hello") {
  TarBuilder tar;
  tar.directory("rootfs").directory("rootfs/etc").directory("rootfs/usr").directory("rootfs/var");
  tar.file("rootfs/etc/hostname", text).file("rootfs/usr/tool", std::string(70'000, 'x'), 0755);
  tar.symlink("rootfs/usr/link", "tool").hardlink("rootfs/usr/same", "rootfs/usr/tool").end();
  return tar;
}

/// The system's program in a simulation, with everything that it touches in one directory.
class ImageWorld {
 public:
  /// Crashes at that place, counted from 1; 0: nowhere.
  explicit ImageWorld(ImagesOptions options = {}, std::uint64_t crash_at = 0) : options_(std::move(options)) {
    options_.directory = path("images");
    options_.bucket = "bucket";
    options_.volume_bytes = std::uint64_t{64} << 20;
    options_.log = Logger(std::make_shared<CallbackSink>([this](const LogRecord& record) {
                            logged.push_back(std::string(record.message));
                          }),
                          [] { return Time{}; });
    FlowKitOptions kit;
    kit.simulation.crash_at = crash_at;
    kit.engine.schema = image_tables();
    kit.engine.pools = {{std::string(kDownloads), 5}, {std::string(kUnpacking), 2}};
    kit_.emplace([this](Flows& flows) { set_up(flows); }, kit);
  }

  FlowKit& kit() { return *kit_; }
  Flows& flows() { return kit_->flows(); }
  Workshop& shop() { return *shop_; }
  Backend& backend() { return **shop_->pool(); }
  Query query() {
    return [this](const Sql& statement) { return kit_->engine().query(statement); };
  }

  /// Puts an object into the bucket; its key.
  std::string put(const std::string& name, const TarBuilder& archive) {
    const auto path = this->path(name);
    write_file(path, archive.bytes());
    return path.substr(1);
  }
  std::string path(const std::string& name) const { return (place_.top() / name).string(); }

  Result<pawl::Run> start(const std::string& key, const std::string& id, std::string snapshot = {}) {
    PAWL_TRY(const auto request,
             encode(ProcessRequest{.s3_key = key, .image_id = id, .snapshot_name = std::move(snapshot)}));
    return flows().start(kProcess, request, {.id = id});
  }
  pawl::Run ended(std::string_view flow, std::string_view id) { return flows().wait(flow, id).value(); }
  pawl::Run process(const std::string& key, const std::string& id) {
    EXPECT_TRUE(start(key, id));
    return ended(kProcess, id);
  }
  template <class T>
  pawl::Run run(std::string_view flow, const std::string& id, const T& request) {
    EXPECT_TRUE(flows().start(flow, encode(request).value(), {.id = id}));
    return ended(flow, id);
  }

  std::vector<Garbage> garbage() {
    const auto get = [this](std::string_view flow, std::string_view id) { return flows().get(flow, id); };
    return look_for_garbage(shop(), query(), [&](std::string_view id) { return is_worked_on(id, get); })
        .value();
  }
  /// A statement of somebody who has a shell on the database.
  void by_hand(const std::string& statement) {
    EXPECT_EQ(run("by-hand", "x", Statement{statement}).state, RunState::done);
  }

  Counts counts;
  std::optional<Error> trouble;
  std::vector<std::string> logged;

 private:
  struct Statement {
    std::string text;
  };

  void set_up(Flows& flows) {
    auto files = open_files({place_.top().string()});
    auto backend_options = options_.backend;
    backend_options.root = options_.directory + "/pool";
    shop_.emplace(options_, std::make_unique<CountingSource>(*std::move(files), counts, trouble),
                  std::make_unique<CountingBackend>(*open_backend(backend_options), counts));
    EXPECT_TRUE(shop_->open());
    add_image_flows(flows, *shop_);
    flows.add(flow<Statement, Deeds>("by-hand")
                  .start("do",
                         [](pawl::Step& step, const Statement& statement, Deeds&) {
                           step.sql({.text = statement.text});
                           return Outcome::done();
                         })
                  .end());
  }

  ArchivePlace place_{ArchivePlace::Kind::memory};
  ImagesOptions options_;
  std::optional<Workshop> shop_;
  std::optional<FlowKit> kit_;
};

}  // namespace pawl::images::test
