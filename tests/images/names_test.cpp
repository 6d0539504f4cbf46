// SPDX-License-Identifier: Apache-2.0
#include "images/names.hpp"

#include <gtest/gtest.h>

namespace pawl::images {
namespace {

TEST(ImageNames, LettersDigitsDashesAndUnderscoresMakeAnId) {
  EXPECT_TRUE(check_image_id("alpine-3_20"));
  EXPECT_TRUE(check_image_id(std::string(247, 'a')));
}

TEST(ImageNames, AnythingElseIsRefused) {
  for (const auto* id : {"", "a/b", "..", "a b", "a.b", "\xc3\xa4"}) {
    const auto checked = check_image_id(id);
    ASSERT_FALSE(checked) << id;
    EXPECT_EQ(checked.error().code(), Code::invalid_argument);
  }
  EXPECT_FALSE(check_image_id(std::string(248, 'a')));
  EXPECT_FALSE(check_image_id(std::string("a\0b", 3)));
}

TEST(ImageNames, TheSameObjectAlwaysHasTheSameId) {
  EXPECT_EQ(image_id_of("bucket", "a.tar"), image_id_of("bucket", "a.tar"));
  EXPECT_NE(image_id_of("bucket", "a.tar"), image_id_of("other", "a.tar"));
  EXPECT_TRUE(check_image_id(image_id_of("bucket", "a.tar")));
}

TEST(ImageNames, ALongNameIsShortenedToWhatTheDeviceMapperAllowsAndStaysUnique) {
  EXPECT_EQ(volume_name("snap", "alpine"), "snap-alpine");
  const std::string stem(240, 'x');
  const auto one = volume_name("snap", stem + "1");
  const auto other = volume_name("snap", stem + "2");
  EXPECT_EQ(one.size(), 127U);
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace pawl::images
