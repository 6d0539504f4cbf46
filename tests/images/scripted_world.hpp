// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Images in a simulation whose source and back end do what a test tells them before each call: let virtual
/// time pass, do something in between, say that the pool is full.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "images/flows.hpp"
#include "images/garbage.hpp"
#include "pawl/flow_kit.hpp"
#include "tests/images/s3_world.hpp"
#include "tests/images/tar_builder.hpp"

namespace pawl::images::test {

/// What a test wants of the source and the back end. Everything that is empty goes through.
struct Script {
  std::function<void(std::string_view call)> before{};
  std::function<Result<void>(const Volume& volume)> removing{};
  std::optional<PoolUsage> usage{};
  std::optional<Error> finding{};    ///< why volumes cannot be looked for
  std::optional<Error> attaching{};  ///< why the pool cannot be attached
  int attached = 0;
  int listed = 0;

  void call(std::string_view name) const {
    if (before) before(name);
  }
};

class ScriptedSource final : public Source {
 public:
  ScriptedSource(std::unique_ptr<Source> inner, Script& script) : inner_(std::move(inner)), script_(script) {}
  Result<ObjectInfo> look(const ObjectName& name, std::stop_token stop) override {
    return inner_->look({"", "/" + name.key}, std::move(stop));
  }
  /// Objects are files here, by their path without the first slash.
  Result<Fetched> fetch(const ObjectName& name, const std::string& path,
                        const FetchOptions& options) override {
    script_.call("fetch");
    return inner_->fetch({"", "/" + name.key}, path, options);
  }

 private:
  std::unique_ptr<Source> inner_;
  Script& script_;
};

class ScriptedBackend final : public Backend {
 public:
  ScriptedBackend(std::unique_ptr<Backend> inner, Script& script)
      : inner_(std::move(inner)), script_(script) {}
  std::string_view name() const override { return inner_->name(); }
  Result<void> attach() override {
    ++script_.attached;
    if (script_.attaching) return fail(*script_.attaching);
    return inner_->attach();
  }
  Result<void> detach() override {
    script_.call("detach");
    return inner_->detach();
  }
  Result<PoolUsage> pool() override { return script_.usage ? *script_.usage : inner_->pool(); }
  Result<void> extend(std::uint64_t bytes) override { return inner_->extend(bytes); }
  Result<void> create(const Volume& volume) override {
    script_.call("create");
    return inner_->create(volume);
  }
  Result<std::string> mount(const Volume& volume) override {
    script_.call("mount");
    return inner_->mount(volume);
  }
  Result<void> unmount(const Volume& volume) override { return inner_->unmount(volume); }
  Result<void> snapshot(const Volume& origin, const Volume& copy) override {
    script_.call("snapshot");
    return inner_->snapshot(origin, copy);
  }
  Result<std::string> activate(const Volume& volume) override {
    script_.call("activate");
    return inner_->activate(volume);
  }
  Result<void> deactivate(const Volume& volume) override { return inner_->deactivate(volume); }
  Result<void> remove(std::uint32_t id) override {
    if (script_.removing) PAWL_CHECK(script_.removing({.id = id}));
    return inner_->remove(id);
  }
  Result<std::optional<FoundVolume>> find(const Volume& volume) override {
    script_.call("find");
    if (script_.finding) return fail(*script_.finding);
    return inner_->find(volume);
  }
  Result<std::vector<FoundVolume>> list() override {
    ++script_.listed;
    return inner_->list();
  }
  Result<std::vector<VolumeUsage>> usage() override { return inner_->usage(); }

 private:
  std::unique_ptr<Backend> inner_;
  Script& script_;
};

/// A small image that is as it should be.
inline TarBuilder plain_image(std::string_view text = "hello") {
  TarBuilder tar;
  tar.directory("rootfs").directory("rootfs/etc").directory("rootfs/usr").directory("rootfs/var");
  return tar.file("rootfs/etc/hostname", text).end();
}

class ScriptedWorld {
 public:
  explicit ScriptedWorld(ImagesOptions options = {}) : options_(std::move(options)) {
    options_.directory = path("images");
    options_.bucket = "bucket";
    options_.volume_bytes = std::uint64_t{64} << 20;
    for (auto& pool : options_.pools) pool.root = path(pool.root);
    options_.log =
        Logger(std::make_shared<CallbackSink>([this](const LogRecord& record) { append_json(log, record); }),
               [] { return Time{}; });
    FlowKitOptions kit;
    kit.engine.migrations = {{"images", image_migrations()}};
    kit.engine.pools = {{std::string(kDownloads), 5}, {std::string(kUnpacking), 2}};
    kit_.emplace([this](Flows& flows) { set_up(flows); }, kit);
  }

  FlowKit& kit() { return *kit_; }
  Flows& flows() { return kit_->flows(); }
  ImageServices& services() { return *services_; }
  Backend& backend() { return **services_->pool(); }
  Query query() {
    return [this](const Sql& statement) { return kit_->engine().query(statement); };
  }
  std::string path(const std::string& name) const { return (place_.top() / name).string(); }

  /// Puts an object into the bucket; its key.
  std::string put(const std::string& name, const TarBuilder& archive) {
    write_file(path(name), archive.bytes());
    return path(name).substr(1);
  }
  /// A call of the script that takes so long in virtual time.
  void pass(Duration time) {
    Gate never;
    kit_->process().wait(never, time);
  }

  template <class T>
  void start(std::string_view flow, const std::string& id, const T& request) {
    const auto run = flows().start(flow, encode(request).value(), {.id = id});
    EXPECT_TRUE(run) << run.error().to_string();
  }
  template <class T>
  pawl::Run run(std::string_view flow, const std::string& id, const T& request) {
    start(flow, id, request);
    return ended(flow, id);
  }
  pawl::Run ended(std::string_view flow, const std::string& id) { return flows().wait(flow, id).value(); }
  pawl::Run process(const std::string& key, const std::string& id) {
    return run(kProcess, id, ProcessRequest{.s3_key = key, .image_id = id});
  }
  pawl::Run part(std::string_view flow, const std::string& id = "a") { return flows().get(flow, id).value(); }

  std::vector<Garbage> garbage() { return garbage(query()); }
  std::vector<Garbage> garbage(const Query& with, const IsBusy& busy = {}) {
    for (const auto& name : services().pools()) (void)services().pool(name);
    const auto get = [this](std::string_view flow, std::string_view id) { return flows().get(flow, id); };
    return find_garbage(
               services(), attached_pools(services()).value(), with,
               busy ? busy : [&](std::string_view id) { return is_worked_on(id, get); })
        .value();
  }
  std::vector<GarbageKind> kinds() {
    std::vector<GarbageKind> kinds;
    for (const auto& found : garbage()) kinds.push_back(found.kind);
    return kinds;
  }
  pawl::Run collect() { return run(kCollect, "all", CollectRequest{}); }

  /// A statement from outside, as in a shell on the database.
  void by_hand(const std::string& statement) {
    EXPECT_EQ(run("by-hand", "x", Statement{statement}).state, RunState::done);
  }
  /// A run that takes a place in the queue for as long as the script's call "by-hand" takes.
  void occupy(std::string_view queue, const std::string& id) {
    const auto run =
        flows().start("by-hand", encode(Statement{}).value(), {.id = id, .queue = std::string(queue)});
    EXPECT_TRUE(run) << run.error().to_string();
  }
  std::string hostname(const std::string& snapshot = "snap-a") {
    const auto row = find_snapshot(query(), snapshot).value();
    return row ? content_of(row->device_path + "/rootfs/etc/hostname") : "no snapshot";
  }

  Script script;
  std::string log;  ///< a line of JSON for each record

 private:
  struct Statement {
    std::string text;
  };

  void set_up(Flows& flows) {
    auto files = open_files({place_.top().string()});
    auto pool = options_.backend;
    pool.root = options_.directory + "/pool";
    services_.emplace(options_, std::make_unique<ScriptedSource>(*std::move(files), script),
                      std::make_unique<ScriptedBackend>(*open_backend(pool), script));
    EXPECT_TRUE(services_->open());
    add_image_flows(flows, *services_);
    flows.add(flow<Statement, ActionReport>("by-hand")
                  .start("do",
                         [this](pawl::Step& step, const Statement& statement, ActionReport&) {
                           script.call("by-hand");
                           if (!statement.text.empty()) step.sql({.text = statement.text});
                           return Outcome::done();
                         })
                  .end());
  }

  ArchivePlace place_{ArchivePlace::Kind::memory};
  ImagesOptions options_;
  std::optional<ImageServices> services_;
  std::optional<FlowKit> kit_;
};

}  // namespace pawl::images::test
