// SPDX-License-Identifier: Apache-2.0
#include "images/workshop.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pawl::images {
namespace {

class WorkshopFile : public testing::Test {
 protected:
  WorkshopFile() { write("as it was"); }
  ~WorkshopFile() override { std::filesystem::remove(path_); }

  void write(std::string_view content) const { std::ofstream(path_, std::ios::binary) << content; }
  std::string checksum() { return shop_.checksum_of(path_, {}).value(); }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("pawl-workshop-" + std::to_string(::getpid()))).string();
  Workshop shop_{ImagesOptions{}};
};

TEST_F(WorkshopFile, IsKnownByItsChecksumOnceItWasRead) {
  EXPECT_FALSE(shop_.is_known(path_, sha256_of_file(path_, {}).value()));
  const auto found = checksum();
  EXPECT_EQ(found, sha256_of_file(path_, {}).value());
  EXPECT_TRUE(shop_.is_known(path_, found));
  EXPECT_FALSE(shop_.is_known(path_, std::string(64, '0')));
}

TEST_F(WorkshopFile, IsNotKnownAnyMoreOnceItIsWrittenEvenInTheSameMoment) {
  for (int round = 0; round < 100; ++round) {
    const auto found = checksum();
    ASSERT_TRUE(shop_.is_known(path_, found));
    write(round % 2 == 0 ? "otherwise" : "as it was");
    EXPECT_FALSE(shop_.is_known(path_, found));
  }
}

TEST_F(WorkshopFile, IsNotKnownWhereAnotherHasTakenItsPlaceOrNone) {
  const auto found = checksum();
  std::filesystem::copy_file(path_, path_ + ".new");
  std::filesystem::rename(path_ + ".new", path_);
  EXPECT_FALSE(shop_.is_known(path_, found));
  std::filesystem::remove(path_);
  EXPECT_FALSE(shop_.is_known(path_, found));
}

}  // namespace
}  // namespace pawl::images
