// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "workers/secrets.hpp"
#include "workers/views.hpp"

namespace pawl::workers {
namespace {

TEST(Secrets, AreTheValuesOfEnvironmentsAndHeadersWhoseNamesAreShown) {
  EXPECT_EQ(hide_secrets(R"j({"command":["a"],"environment":{"TOKEN":"x","N":5},"open_files":null})j"),
            R"j({"command":["a"],"environment":{"TOKEN":"(hidden)","N":"(hidden)"},"open_files":null})j");
  EXPECT_EQ(hide_secrets(R"j({"url":"u","headers":{"authorization":"Bearer x"}})j"),
            R"j({"url":"u","headers":{"authorization":"(hidden)"}})j");
}

TEST(Secrets, AreInWhatAParentGivesToItsChildrenToo) {
  EXPECT_EQ(hide_secrets(R"j({"child_config":"environment: {TOKEN: x}","children_count":2})j"),
            R"j({"child_config":"(hidden)","children_count":2})j");
}

TEST(Secrets, MayBeInWhatCannotBeRead) { EXPECT_EQ(hide_secrets("{"), "\"(hidden)\""); }

TEST(Secrets, OfAWorkerAreAlsoInItsConfigurationAndItsVariables) {
  NodeDetail detail;
  detail.desired.text = R"j({"environment":{"A":"x"}})j";
  detail.config = "environment: {A: '{{ .A }}'}";
  detail.user_variables["A"].text = "\"x\"";
  detail.global_variables["B"].text = "[1]";
  hide_secrets(detail);
  EXPECT_EQ(detail.desired.text, R"j({"environment":{"A":"(hidden)"}})j");
  EXPECT_EQ(detail.config, "(hidden)");
  EXPECT_EQ(detail.user_variables["A"].text, "\"(hidden)\"");
  EXPECT_EQ(detail.global_variables["B"].text, "\"(hidden)\"");
}

}  // namespace
}  // namespace pawl::workers
