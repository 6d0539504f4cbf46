// SPDX-License-Identifier: Apache-2.0
// What every back end promises, whatever its volumes are made of.
#include "images/backend/backend.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <thread>

#include "images/backend/os.hpp"
#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

#define ASSERT_OK(...)                                   \
  do {                                                   \
    const auto& checked = (__VA_ARGS__);                 \
    ASSERT_TRUE(checked) << checked.error().to_string(); \
  } while (false)

#define EXPECT_CODE(expected, ...)                                                    \
  do {                                                                                \
    const auto& refused = (__VA_ARGS__);                                              \
    ASSERT_FALSE(refused);                                                            \
    EXPECT_EQ(refused.error().code(), Code::expected) << refused.error().to_string(); \
  } while (false)

class Backends : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(GetParam()); !why.empty()) {
      GTEST_SKIP() << kind_name(GetParam()) << " cannot run here: " << why;
    }
    place_.emplace(GetParam());
    backend_ = place_->open();
    ASSERT_OK(backend_->attach());
  }

  void TearDown() override {
    backend_.reset();
    place_.reset();
  }

  bool has_devices() const { return GetParam() == BackendKind::reflink || GetParam() == BackendKind::dmthin; }

  /// A volume with one file.
  void make(const Volume& volume, std::string_view text) {
    ASSERT_OK(backend_->create(volume));
    write(volume, text);
  }

  void write(const Volume& volume, std::string_view text) {
    const auto path = backend_->mount(volume);
    ASSERT_OK(path);
    write_text(*path + "/file", text);
    ASSERT_OK(backend_->unmount(volume));
  }

  std::string content(const Volume& volume) {
    const auto path = backend_->mount(volume);
    if (!path) return path.error().to_string();
    auto text = read_text(*path + "/file");
    const auto unmounted = backend_->unmount(volume);
    return unmounted ? text : unmounted.error().to_string();
  }

  FoundVolume found(const Volume& volume) {
    const auto there = backend_->find(volume);
    EXPECT_TRUE(there) << there.error().to_string();
    EXPECT_TRUE(there && *there);
    return there && *there ? **there : FoundVolume{};
  }

  std::vector<std::uint32_t> ids() {
    const auto all = backend_->list();
    EXPECT_TRUE(all) << all.error().to_string();
    std::vector<std::uint32_t> numbers;
    for (const auto& volume : all.value_or(std::vector<FoundVolume>{})) numbers.push_back(volume.id);
    return numbers;
  }

  const Volume origin_ = test_volume(1);
  const Volume copy_ = test_volume(2);
  std::optional<Place> place_;
  std::unique_ptr<Backend> backend_;
};

using Ids = std::vector<std::uint32_t>;

TEST_P(Backends, ItHasTheNameOfItsKind) { EXPECT_EQ(backend_->name(), kind_name(GetParam())); }

TEST_P(Backends, ANewVolumeIsEmptyAndInactive) {
  ASSERT_OK(backend_->create(origin_));
  const auto volume = found(origin_);
  EXPECT_TRUE(volume.complete);
  EXPECT_FALSE(volume.active);
  EXPECT_FALSE(volume.mounted);
  const auto path = backend_->mount(origin_);
  ASSERT_OK(path);
  for (const auto& entry : std::filesystem::directory_iterator(*path)) {
    EXPECT_EQ(entry.path().filename(), "lost+found");
  }
}

TEST_P(Backends, WhatIsWrittenWhileMountedIsThereAtTheNextMount) {
  make(origin_, "hello");
  EXPECT_EQ(content(origin_), "hello");
}

TEST_P(Backends, AMountedVolumeIsActiveAndMountedAndAnUnmountedOneNeither) {
  ASSERT_OK(backend_->create(origin_));
  ASSERT_OK(backend_->mount(origin_));
  auto volume = found(origin_);
  EXPECT_TRUE(volume.active);
  EXPECT_TRUE(volume.mounted);
  ASSERT_OK(backend_->unmount(origin_));
  volume = found(origin_);
  EXPECT_FALSE(volume.active);
  EXPECT_FALSE(volume.mounted);
  EXPECT_EQ(place_->leftovers(), std::vector<std::string>());
}

TEST_P(Backends, NothingInAMountedVolumeIsADeviceOrGivesPrivileges) {
  if (!has_devices()) GTEST_SKIP() << "its volumes are directories of the pool";
  ASSERT_OK(backend_->create(origin_));
  const auto path = backend_->mount(origin_);
  ASSERT_OK(path);
  const auto table = read_text("/proc/self/mounts");
  const auto line = table.substr(table.find(*path));
  EXPECT_NE(line.substr(0, line.find('\n')).find("nosuid,nodev"), std::string::npos);
}

TEST_P(Backends, ASnapshotHoldsWhatItsOriginHolds) {
  make(origin_, "hello");
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  EXPECT_EQ(content(copy_), "hello");
  const auto volume = found(copy_);
  EXPECT_TRUE(volume.complete);
  EXPECT_EQ(volume.name, copy_.name);
  EXPECT_EQ(volume.marker, copy_.marker);
}

TEST_P(Backends, WritesToASnapshotAndToItsOriginDoNotMeet) {
  make(origin_, "hello");
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  write(copy_, "copy");
  EXPECT_EQ(content(origin_), "hello");
  write(origin_, "origin");
  EXPECT_EQ(content(copy_), "copy");
}

TEST_P(Backends, ASnapshotOfASnapshotIsIndependentOfBoth) {
  make(origin_, "hello");
  const auto second = test_volume(3);
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  ASSERT_OK(backend_->snapshot(copy_, second));
  ASSERT_OK(backend_->remove(origin_.id));
  ASSERT_OK(backend_->remove(copy_.id));
  EXPECT_EQ(content(second), "hello");
}

TEST_P(Backends, AMountedOriginGivesNoSnapshot) {
  ASSERT_OK(backend_->create(origin_));
  ASSERT_OK(backend_->mount(origin_));
  EXPECT_CODE(volume_busy, backend_->snapshot(origin_, copy_));
  EXPECT_EQ(ids(), Ids{1});
}

TEST_P(Backends, AnActiveOriginGivesACompleteSnapshotAndStaysActive) {
  make(origin_, "hello");
  ASSERT_OK(backend_->activate(origin_));
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  EXPECT_TRUE(found(origin_).active);
  EXPECT_EQ(content(copy_), "hello");
}

TEST_P(Backends, ActivationSaysWhereItIs) {
  make(origin_, "hello");
  const auto path = backend_->activate(origin_);
  ASSERT_OK(path);
  struct stat status{};
  ASSERT_EQ(::stat(path->c_str(), &status), 0) << *path;
  if (has_devices()) {
    EXPECT_TRUE(S_ISBLK(status.st_mode)) << *path;
  } else {
    EXPECT_EQ(read_text(*path + "/file"), "hello");
  }
  const auto volume = found(origin_);
  EXPECT_TRUE(volume.active);
  EXPECT_FALSE(volume.mounted);
  EXPECT_EQ(volume.path, *path);
}

TEST_P(Backends, DeactivationKeepsTheVolume) {
  make(origin_, "hello");
  ASSERT_OK(backend_->activate(origin_));
  ASSERT_OK(backend_->deactivate(origin_));
  EXPECT_FALSE(found(origin_).active);
  EXPECT_EQ(content(origin_), "hello");
}

TEST_P(Backends, AMountedVolumeIsNotDeactivated) {
  ASSERT_OK(backend_->create(origin_));
  ASSERT_OK(backend_->mount(origin_));
  EXPECT_CODE(volume_busy, backend_->deactivate(origin_));
  EXPECT_TRUE(found(origin_).mounted);
}

TEST_P(Backends, EveryCallMayBeRepeated) {
  ASSERT_OK(backend_->attach());
  make(origin_, "hello");
  ASSERT_OK(backend_->create(origin_));
  EXPECT_EQ(content(origin_), "hello");
  const auto mounted = backend_->mount(origin_);
  ASSERT_OK(mounted);
  EXPECT_EQ(backend_->mount(origin_), mounted);
  ASSERT_OK(backend_->unmount(origin_));
  ASSERT_OK(backend_->unmount(origin_));
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  write(copy_, "copy");
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  EXPECT_EQ(content(copy_), "copy");
  const auto active = backend_->activate(copy_);
  ASSERT_OK(active);
  EXPECT_EQ(backend_->activate(copy_), active);
  ASSERT_OK(backend_->deactivate(copy_));
  ASSERT_OK(backend_->deactivate(copy_));
  ASSERT_OK(backend_->remove(copy_.id));
  ASSERT_OK(backend_->remove(copy_.id));
  EXPECT_EQ(ids(), Ids{1});
  ASSERT_OK(backend_->detach());
  ASSERT_OK(backend_->detach());
}

TEST_P(Backends, AnIdOfAnotherMarkerIsTaken) {
  make(origin_, "hello");
  make(copy_, "copy");
  EXPECT_CODE(volume_exists, backend_->create(stranger(1)));
  EXPECT_CODE(volume_exists, backend_->snapshot(origin_, stranger(2)));
  EXPECT_EQ(content(origin_), "hello");
  EXPECT_EQ(content(copy_), "copy");
}

TEST_P(Backends, AVolumeOfAnotherMarkerIsNotTheOneThatIsMeant) {
  make(origin_, "hello");
  EXPECT_CODE(volume_missing, backend_->mount(stranger(1)));
  EXPECT_CODE(volume_missing, backend_->unmount(stranger(1)));
  EXPECT_CODE(volume_missing, backend_->activate(stranger(1)));
  EXPECT_CODE(volume_missing, backend_->snapshot(stranger(1), copy_));
  const auto there = backend_->find(stranger(1));
  ASSERT_OK(there);
  EXPECT_FALSE(*there);
  ASSERT_OK(backend_->activate(origin_));
  EXPECT_CODE(volume_missing, backend_->activate(stranger(1)));
  EXPECT_CODE(volume_exists, backend_->create(stranger(1)));
}

TEST_P(Backends, AVolumeThatIsNotThereIsMissing) {
  EXPECT_CODE(volume_missing, backend_->mount(origin_));
  EXPECT_CODE(volume_missing, backend_->unmount(origin_));
  EXPECT_CODE(volume_missing, backend_->activate(origin_));
  EXPECT_CODE(volume_missing, backend_->snapshot(origin_, copy_));
  ASSERT_OK(backend_->deactivate(origin_));
  ASSERT_OK(backend_->remove(origin_.id));
  const auto there = backend_->find(origin_);
  ASSERT_OK(there);
  EXPECT_FALSE(*there);
  EXPECT_EQ(ids(), Ids());
}

TEST_P(Backends, TheListHasEverythingAlsoWhatIsInactive) {
  make(origin_, "hello");
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  ASSERT_OK(backend_->create(test_volume(300)));
  const auto path = backend_->activate(copy_);
  ASSERT_OK(path);
  const auto all = backend_->list();
  ASSERT_OK(all);
  ASSERT_EQ(all->size(), 3U);
  const auto& [first, second, third] = std::tie(all->at(0), all->at(1), all->at(2));
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.name, origin_.name);
  EXPECT_EQ(first.marker, origin_.marker);
  EXPECT_FALSE(first.active);
  EXPECT_EQ(second.id, 2U);
  EXPECT_TRUE(second.active);
  EXPECT_EQ(second.path, *path);
  EXPECT_EQ(second.marker, copy_.marker);
  EXPECT_EQ(third.id, 300U);
  EXPECT_TRUE(third.complete);
}

TEST_P(Backends, TheLastIdWorksAndTheOneAfterItIsRefused) {
  const auto last = test_volume(kLastVolumeId);
  ASSERT_OK(backend_->create(last));
  EXPECT_EQ(ids(), Ids{kLastVolumeId});
  EXPECT_CODE(invalid_argument, backend_->create(test_volume(kLastVolumeId + 1)));
  EXPECT_CODE(invalid_argument, backend_->create(test_volume(0)));
}

TEST_P(Backends, NamesAndMarkersThatCouldLeadElsewhereAreRefused) {
  auto volume = origin_;
  for (const auto* name : {"", "a/b", "..", "a b"}) {
    volume.name = name;
    EXPECT_CODE(invalid_argument, backend_->create(volume));
  }
  volume = origin_;
  volume.marker = "not a UUID";
  EXPECT_CODE(invalid_argument, backend_->create(volume));
}

TEST_P(Backends, ASnapshotIsAtLeastAsLargeAsItsOrigin) {
  ASSERT_OK(backend_->create(origin_));
  EXPECT_CODE(invalid_argument, backend_->snapshot(origin_, test_volume(2, 32 * kMiB)));
  EXPECT_CODE(invalid_argument, backend_->snapshot(origin_, origin_));
  ASSERT_OK(backend_->snapshot(origin_, test_volume(2, 128 * kMiB)));
}

TEST_P(Backends, AVolumeInUseIsNeitherUnmountedNorRemoved) {
  if (!has_devices()) GTEST_SKIP() << "directories can be removed while files in them are open";
  place_->options().busy_timeout = Duration(0);
  backend_ = place_->open();
  ASSERT_OK(backend_->attach());
  ASSERT_OK(backend_->create(origin_));
  const auto path = backend_->mount(origin_);
  ASSERT_OK(path);
  {
    const auto user = open_file(*path + "/user", O_RDWR | O_CREAT);
    ASSERT_OK(user);
    EXPECT_CODE(volume_busy, backend_->unmount(origin_));
    EXPECT_CODE(volume_busy, backend_->remove(origin_.id));
    EXPECT_CODE(volume_busy, backend_->detach());
    EXPECT_TRUE(found(origin_).mounted);
  }
  ASSERT_OK(backend_->unmount(origin_));
  ASSERT_OK(backend_->remove(origin_.id));
}

TEST_P(Backends, ADeviceThatIsOpenIsNotDeactivated) {
  if (!has_devices()) GTEST_SKIP() << "its volumes are directories";
  place_->options().busy_timeout = Duration(0);
  backend_ = place_->open();
  make(origin_, "hello");
  const auto path = backend_->activate(origin_);
  ASSERT_OK(path);
  {
    const auto user = open_file(*path, O_RDONLY);
    ASSERT_OK(user);
    EXPECT_CODE(volume_busy, backend_->deactivate(origin_));
    EXPECT_CODE(volume_busy, backend_->remove(origin_.id));
    EXPECT_TRUE(found(origin_).active);
  }
  EXPECT_TRUE(found(origin_).active);
  ASSERT_OK(backend_->deactivate(origin_));
  EXPECT_EQ(content(origin_), "hello");
}

TEST_P(Backends, RemovingAMountedVolumeUnmountsIt) {
  ASSERT_OK(backend_->create(origin_));
  ASSERT_OK(backend_->mount(origin_));
  ASSERT_OK(backend_->remove(origin_.id));
  EXPECT_EQ(ids(), Ids());
  EXPECT_EQ(place_->leftovers(), std::vector<std::string>());
}

TEST_P(Backends, UsageTellsWhatAVolumeHoldsAloneAndWhatItShares) {
  ASSERT_OK(backend_->create(origin_));
  const auto path = backend_->mount(origin_);
  ASSERT_OK(path);
  write_text(*path + "/file", std::string(8 * kMiB, 'x'));
  ASSERT_OK(backend_->unmount(origin_));
  auto used = backend_->usage();
  ASSERT_OK(used);
  ASSERT_EQ(used->size(), 1U);
  EXPECT_EQ(used->front().id, 1U);
  EXPECT_GE(used->front().exclusive, 8 * kMiB);
  EXPECT_EQ(used->front().shared, 0U);
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  used = backend_->usage();
  ASSERT_OK(used);
  ASSERT_EQ(used->size(), 2U);
  EXPECT_GE(used->at(1).exclusive + used->at(1).shared, 8 * kMiB);
  if (GetParam() == BackendKind::dir) return;
  EXPECT_GE(used->at(0).shared, 8 * kMiB);
  EXPECT_LT(used->at(0).exclusive, kMiB);
  EXPECT_LT(used->at(1).exclusive, kMiB);
}

TEST_P(Backends, ThePoolTellsHowFullItIs) {
  const auto before = backend_->pool();
  ASSERT_OK(before);
  EXPECT_GT(before->bytes, 0U);
  EXPECT_LT(before->used, before->bytes);
  EXPECT_TRUE(before->writable);
  EXPECT_EQ(before->problems, std::vector<std::string>());
  EXPECT_EQ(before->metadata_bytes.has_value(), GetParam() == BackendKind::dmthin);
}

TEST_P(Backends, EverythingIsThereAfterDetachingAndAttaching) {
  make(origin_, "hello");
  ASSERT_OK(backend_->snapshot(origin_, copy_));
  ASSERT_OK(backend_->activate(copy_));
  ASSERT_OK(backend_->detach());
  EXPECT_EQ(place_->in_use(), std::vector<std::string>());
  backend_ = place_->open();
  ASSERT_OK(backend_->attach());
  EXPECT_EQ(ids(), (Ids{1, 2}));
  EXPECT_FALSE(found(copy_).active);
  EXPECT_EQ(content(origin_), "hello");
  EXPECT_EQ(content(copy_), "hello");
}

TEST_P(Backends, APoolWithAMountedVolumeIsNotDetached) {
  ASSERT_OK(backend_->create(origin_));
  ASSERT_OK(backend_->mount(origin_));
  EXPECT_CODE(volume_busy, backend_->detach());
  EXPECT_TRUE(found(origin_).mounted);
}

TEST_P(Backends, WithoutItsPoolNothingWorksAndTheErrorSaysWhatToDo) {
  ASSERT_OK(backend_->detach());
  if (GetParam() == BackendKind::dir) std::filesystem::remove_all(place_->root() + "/volumes");
  EXPECT_CODE(backend_unavailable, backend_->create(origin_));
  EXPECT_CODE(backend_unavailable, backend_->list());
  EXPECT_CODE(backend_unavailable, backend_->remove(1));
  const auto used = backend_->pool();
  EXPECT_CODE(backend_unavailable, used);
  EXPECT_NE(used.error().message().find("attach"), std::string::npos);
}

TEST_P(Backends, ManyThreadsMakeTheirOwnVolumes) {
  std::vector<std::jthread> threads;
  for (std::uint32_t id = 10; id < 14; ++id) {
    threads.emplace_back([this, id] {
      EXPECT_TRUE(backend_->create(test_volume(id)));
      EXPECT_TRUE(backend_->mount(test_volume(id)));
      EXPECT_TRUE(backend_->unmount(test_volume(id)));
    });
  }
  threads.clear();
  EXPECT_EQ(ids(), (Ids{10, 11, 12, 13}));
}

TEST_P(Backends, APoolThatIsLargeEnoughIsNotMadeSmaller) {
  EXPECT_CODE(invalid_argument, backend_->extend(kMiB));
}

INSTANTIATE_TEST_SUITE_P(Each, Backends,
                         ::testing::Values(BackendKind::dir, BackendKind::reflink, BackendKind::btrfs,
                                           BackendKind::dmthin),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace
}  // namespace pawl::images::pools
