// SPDX-License-Identifier: Apache-2.0
#include "tests/images/pipeline_world.hpp"

#include <fmt/format.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

namespace pawl::images::test {
namespace {

/// Much more than anything here takes; a test that waits so long has failed.
constexpr std::chrono::seconds kPatience{60};
constexpr std::uint64_t kPoolBytes = 512 * pools::kMiB;

}  // namespace

void ConcurrencyGate::enter() {
  std::unique_lock lock(mutex_);
  most_ = std::max(most_, ++inside_);
  changed_.notify_all();
  changed_.wait_for(lock, kPatience, [this] { return !closed_; });
}

void ConcurrencyGate::leave() {
  const std::lock_guard lock(mutex_);
  --inside_;
}

void ConcurrencyGate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void ConcurrencyGate::open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

bool ConcurrencyGate::holds(int wanted) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return inside_ >= wanted; });
}

int ConcurrencyGate::most() const {
  const std::lock_guard lock(mutex_);
  return most_;
}

SnapshotTree::SnapshotTree(std::string device_path) : root_(std::move(device_path)) {
  if (!std::filesystem::is_block_file(root_)) return;
  auto point = (std::filesystem::temp_directory_path() / "pawl_snapshot_XXXXXX").string();
  EXPECT_NE(mkdtemp(point.data()), nullptr);
  mounted_ = ::mount(root_.c_str(), point.c_str(), "ext4", 0, nullptr) == 0;
  EXPECT_TRUE(mounted_) << root_ << ": " << std::generic_category().message(errno);
  root_ = point;
}

SnapshotTree::~SnapshotTree() {
  if (!mounted_) return;
  EXPECT_EQ(::umount2(root_.c_str(), 0), 0) << root_ << ": " << std::generic_category().message(errno);
  std::error_code ignored;
  std::filesystem::remove(root_, ignored);
}

ImageWorld::ImageWorld(ImagesOptions options, std::uint64_t crash_at) : options_(std::move(options)) {
  options_.directory = path("images");
  options_.bucket = "bucket";
  options_.volume_bytes = 64 * pools::kMiB;
  options_.log = Logger(std::make_shared<CallbackSink>([this](const LogRecord& record) {
                          logged.push_back(std::string(record.message));
                        }),
                        [] { return Time{}; });
  if (options_.backend.kind != BackendKind::dir) {
    // One that has to be small cannot have the devices that the environment gives.
    const bool small = options_.backend.pool_bytes < kPoolBytes;
    pool_.emplace(options_.backend.kind, std::min(options_.backend.pool_bytes, kPoolBytes), small);
    options_.backend = pool_->options();
  } else {
    options_.backend.root = options_.directory + "/pool";
  }
  FlowKitOptions kit;
  kit.simulation.crash_at = crash_at;
  kit.engine.migrations = {{"images", image_migrations()}};
  kit.engine.pools = {{std::string(kDownloads), options_.downloads},
                      {std::string(kUnpacking), options_.unpacking}};
  kit_.emplace([this](Flows& flows) { set_up(flows); }, kit);
}

void ImageWorld::set_up(Flows& flows) {
  auto files = open_files({place_.top().string()});
  services_.emplace(options_, std::make_unique<CountingSource>(*std::move(files), counts, trouble),
                    std::make_unique<CountingBackend>(*open_backend(options_.backend), counts));
  EXPECT_TRUE(services_->open());
  add_image_flows(flows, *services_);
  flows.add(flow<Statement, ActionReport>("by-hand")
                .start("do",
                       [](pawl::Step& step, const Statement& statement, ActionReport&) {
                         step.sql({.text = statement.text});
                         return Outcome::done();
                       })
                .end());
}

}  // namespace pawl::images::test
