// SPDX-License-Identifier: Apache-2.0
#include "server/tls.hpp"

#include <gmock/gmock.h>

namespace pawl::test {
namespace {

TEST(Tls, ACertificateIsRefusedWhereNoneOfTheCiphersCanBeUsed) {
  const auto refused = server::load_certificate("/absent.pem", "/absent.key", "NO-SUCH-CIPHER");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::invalid_argument);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("NO-SUCH-CIPHER"));
}

TEST(Tls, ACertificateThatIsAbsentIsNamed) {
  const auto refused = server::load_certificate("/absent.pem", "/absent.key");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("/absent.pem"));
}

}  // namespace
}  // namespace pawl::test
