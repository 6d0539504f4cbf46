// SPDX-License-Identifier: Apache-2.0
// Disks that fail and machines that lose their power. These run in a guest kernel: tests/images/uml/faults.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "images/backend/backend.hpp"
#include "images/backend/dm.hpp"
#include "images/backend/os.hpp"
#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return value == nullptr ? "" : value;
}

/// A device that passes everything on to another one until it is told to refuse writes.
class FaultyDisk {
 public:
  FaultyDisk(std::string name, const std::string& below) : name_(std::move(name)) {
    struct stat status{};
    EXPECT_EQ(::stat(below.c_str(), &status), 0) << below;
    number_ = fmt::format("{}:{}", major(status.st_rdev), minor(status.st_rdev));
    const auto file = open_file(below, 0);
    std::uint64_t bytes = 0;
    EXPECT_EQ(::ioctl(file->get(), BLKGETSIZE64, &bytes), 0);
    sectors_ = bytes / kSectorBytes;
    EXPECT_TRUE(mapper_->create(name_, ""));
    load("linear", fmt::format("{} 0", number_));
  }
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;
  ~FaultyDisk() { EXPECT_TRUE(mapper_->remove(name_, std::chrono::seconds(10))); }

  std::string path() const { return device_node(**mapper_->info(name_)).value(); }
  void refuse_writes() { load("flakey", fmt::format("{} 0 0 3600 1 error_writes", number_)); }
  void heal() { load("linear", fmt::format("{} 0", number_)); }

 private:
  void load(const std::string& type, const std::string& parameters) {
    const auto loaded = mapper_->load(name_, {.sectors = sectors_, .type = type, .parameters = parameters});
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    ASSERT_TRUE(mapper_->resume(name_));
  }

  const Result<DeviceMapper> mapper_ = DeviceMapper::open();
  const std::string name_;
  std::string number_;
  std::uint64_t sectors_ = 0;
};

class DmthinFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(BackendKind::dmthin); !why.empty()) GTEST_SKIP() << why;
    if (!DeviceMapper::open()->check_target("flakey")) GTEST_SKIP() << "the kernel has no dm-flakey";
    if (setting("PAWL_TEST_DM_DATA").empty()) GTEST_SKIP() << "PAWL_TEST_DM_DATA names no device to spoil";
  }
};

TEST_F(DmthinFaults, AMetadataDiskThatRefusesWritesMakesThePoolReadOnlyAndItSaysSo) {
  Place place(BackendKind::dmthin);
  {
    FaultyDisk disk("pawlfaulty", place.options().metadata_device);
    place.options().metadata_device = disk.path();
    const auto backend = place.open();
    const auto attached = backend->attach();
    ASSERT_TRUE(attached) << attached.error().to_string();
    ASSERT_TRUE(backend->create(test_volume(1)));
    disk.refuse_writes();
    EXPECT_FALSE(backend->create(test_volume(2)));
    const auto usage = backend->pool();
    ASSERT_TRUE(usage) << usage.error().to_string();
    EXPECT_FALSE(usage->writable);
    ASSERT_FALSE(usage->problems.empty());
    const auto refused = backend->create(test_volume(3));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::backend_unavailable) << refused.error().to_string();
    const auto no_copy = backend->snapshot(test_volume(1), test_volume(4));
    ASSERT_FALSE(no_copy);
    EXPECT_EQ(no_copy.error().code(), Code::backend_unavailable) << no_copy.error().to_string();
    // The volume that was there before is still readable.
    const auto path = backend->activate(test_volume(1));
    EXPECT_TRUE(path) << path.error().to_string();
    disk.heal();
    const auto detached = backend->detach();
    ASSERT_TRUE(detached) << detached.error().to_string();
  }
  place.options().metadata_device = setting("PAWL_TEST_DM_METADATA");
  const auto backend = place.open();
  const auto attached = backend->attach();
  ASSERT_TRUE(attached) << attached.error().to_string();
  if (!backend->pool()->writable) {  // the flag has reached the disk
    EXPECT_NE(backend->pool()->problems.front().find("thin_check"), std::string::npos);
    ASSERT_TRUE(backend->detach());
    ASSERT_TRUE(
        run_program({"thin_check", "-q", "--clear-needs-check-flag", place.options().metadata_device}));
    const auto again = backend->attach();
    ASSERT_TRUE(again) << again.error().to_string();
  }
  EXPECT_TRUE((*backend->find(test_volume(1)))->complete);
  const auto created = backend->create(test_volume(2));
  EXPECT_TRUE(created) << created.error().to_string();
}

TEST_F(DmthinFaults, ADataDiskThatRefusesWritesSpoilsTheVolumeAndNotTheOthers) {
  Place place(BackendKind::dmthin);
  FaultyDisk disk("pawlfaulty", place.options().data_device);
  place.options().data_device = disk.path();
  const auto backend = place.open();
  ASSERT_TRUE(backend->attach());
  ASSERT_TRUE(backend->create(test_volume(1)));
  ASSERT_TRUE(backend->create(test_volume(2)));
  const auto path = backend->mount(test_volume(2));
  ASSERT_TRUE(path);
  std::ofstream(*path + "/file") << std::string(8 * kMiB, 'x');
  disk.refuse_writes();
  const auto unmounted = backend->unmount(test_volume(2));
  ASSERT_FALSE(unmounted) << "what could not be written was called durable";
  EXPECT_EQ(unmounted.error().code(), Code::volume_failed) << unmounted.error().to_string();
  disk.heal();
  EXPECT_FALSE((*backend->find(test_volume(2)))->complete);
  EXPECT_TRUE((*backend->find(test_volume(1)))->complete);
  const auto detached = backend->detach();
  ASSERT_TRUE(detached) << detached.error().to_string();
}

/// The pool of the power cuts: it stays from boot to boot, so it is not a Place.
class DmthinPowerCut : public ::testing::Test {
 protected:
  void SetUp() override {
    if (setting("PAWL_TEST_POWER_ROOT").empty()) GTEST_SKIP() << "run by tests/images/uml/faults";
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
  }

  static BackendOptions options() {
    return {.kind = BackendKind::dmthin,
            .root = setting("PAWL_TEST_POWER_ROOT"),
            .pool = "pawlpower",
            .data_device = setting("PAWL_TEST_DM_DATA"),
            .metadata_device = setting("PAWL_TEST_DM_METADATA")};
  }

  static Volume volume(std::uint32_t id) {
    auto made = test_volume(id);
    made.name = fmt::format("power-{}", id);
    return made;
  }
  static Volume copy(std::uint32_t id) { return volume(1000 + id); }

  /// One image: made, written, copied, activated.
  static Result<void> process(Backend& backend, std::uint32_t id) {
    PAWL_CHECK(backend.create(volume(id)));
    PAWL_TRY(const auto path, backend.mount(volume(id)));
    write_text(path + "/file", fmt::format("content {}", id));
    PAWL_CHECK(backend.unmount(volume(id)));
    PAWL_CHECK(backend.snapshot(volume(id), copy(id)));
    PAWL_CHECK(backend.activate(copy(id)));
    PAWL_CHECK(backend.deactivate(copy(id)));
    return {};
  }

  static void expect_content(Backend& backend, const Volume& volume, std::uint32_t id) {
    const auto path = backend.mount(volume);
    ASSERT_TRUE(path) << path.error().to_string();
    EXPECT_EQ(read_text(*path + "/file"), fmt::format("content {}", id));
    const auto unmounted = backend.unmount(volume);
    ASSERT_TRUE(unmounted) << unmounted.error().to_string();
  }
};

TEST_F(DmthinPowerCut, Work) {
  const auto backend = open_backend(options(), [](std::string_view name) { fmt::print("step {}\n", name); });
  ASSERT_TRUE(backend);
  const auto attached = (*backend)->attach();
  ASSERT_TRUE(attached) << attached.error().to_string();
  fmt::print("working\n");
  for (std::uint32_t id = 1; id < 100; ++id) {
    const auto done = process(**backend, id);
    ASSERT_TRUE(done) << done.error().to_string();
    fmt::print("done {}\n", id);
  }
}

TEST_F(DmthinPowerCut, Check) {
  const auto done = static_cast<std::uint32_t>(std::stoul(setting("PAWL_TEST_POWER_DONE")));
  const auto opened = open_backend(options());
  ASSERT_TRUE(opened);
  auto& backend = **opened;
  const auto attached = backend.attach();
  ASSERT_TRUE(attached) << attached.error().to_string();
  const auto all = backend.list();
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_GE(all->size(), std::size_t{2} * done);
  for (std::uint32_t id = 1; id <= done; ++id) {
    expect_content(backend, volume(id), id);
    expect_content(backend, copy(id), id);
  }
  // What was interrupted is repeated.
  const auto repeated = process(backend, done + 1);
  ASSERT_TRUE(repeated) << repeated.error().to_string();
  expect_content(backend, copy(done + 1), done + 1);
  const auto after = backend.list();
  ASSERT_TRUE(after);
  for (const auto& found : *after) {
    EXPECT_TRUE(found.complete || found.id % 1000 > done + 1) << found.id;
    EXPECT_TRUE(backend.remove(found.id)) << found.id;
  }
  EXPECT_EQ(backend.list()->size(), 0U);
  const auto detached = backend.detach();
  EXPECT_TRUE(detached) << detached.error().to_string();
}

}  // namespace
}  // namespace pawl::images::pools
