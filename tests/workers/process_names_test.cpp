// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
// After GoogleTest, which it extends.
#include <rapidcheck/gtest.h>

#include <string>

#include "workers/process/names.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers {
namespace {

TEST(ProcessNames, AnIdIsReadableInTheNameOfItsDirectory) {
  EXPECT_EQ(directory_name("plant/line-1/pump").value(), "plant%2Fline-1%2Fpump");
  EXPECT_EQ(directory_name("..").value(), "%2E.");
  EXPECT_EQ(directory_name(".hidden").value(), "%2Ehidden");
  EXPECT_EQ(directory_name("a+b").value(), "a%2Bb");
}

TEST(ProcessNames, AnEmptyOrEndlessIdIsRefused) {
  EXPECT_EQ(directory_name("").error().code(), Code::invalid_argument);
  EXPECT_TRUE(directory_name(std::string(1024, 'x')));
  EXPECT_EQ(directory_name(std::string(1025, 'x')).error().code(), Code::invalid_argument);
}

TEST(ProcessNames, OnlyWhatWasMadeFromAnIdIsReadBack) {
  for (const auto* text : {"", ".", "..", "a/b", "%2f", "%41", "%", "%2", "%zz", "a b", "+abc"}) {
    EXPECT_EQ(unescape_id(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(ProcessNames, NoIdLeavesTheDirectoryOrMeetsAnother,
              (const std::string& a, const std::string& b)) {
  RC_PRE(!a.empty() && !b.empty() && a != b);
  const auto name = directory_name(a).value();
  RC_ASSERT(name.size() <= 255U);
  RC_ASSERT(name.find('/') == std::string::npos && name.find('\0') == std::string::npos);
  RC_ASSERT(!name.starts_with('.'));
  RC_ASSERT(name != directory_name(b).value());
  RC_ASSERT(is_hashed(name) || unescape_id(name) == a);
}

TEST(ProcessRecord, WhatIsWrittenIsReadAndNoPartOfItIs) {
  Record record;
  record.id = "plant%2Fpump";
  record.generation = 7;
  record.shim = {11, 12};
  record.command = {13, 14};
  record.mark = "abc";
  record.started_at = -15;
  record.end = End::not_started;
  record.value = 2;
  record.step = "exec";
  record.ended_at = 16;
  record.cpu_us = 17;
  record.log_lost = 18;
  std::string text(kLongestRecord, '\0');
  text.resize(write_record(record, text));
  Record read;
  ASSERT_TRUE(read_record(text, read));
  EXPECT_EQ(read.id, record.id);
  EXPECT_EQ(read.generation, 7U);
  EXPECT_EQ(read.shim, record.shim);
  EXPECT_EQ(read.command, record.command);
  EXPECT_EQ(read.mark, "abc");
  EXPECT_EQ(read.started_at, -15);
  EXPECT_EQ(read.end, End::not_started);
  EXPECT_EQ(read.value, 2);
  EXPECT_EQ(read.step, "exec");
  EXPECT_EQ(read.ended_at, 16);
  EXPECT_EQ(read.cpu_us, 17U);
  EXPECT_EQ(read.log_lost, 18U);
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(read_record(std::string_view(text).substr(0, size), read)) << size;
  }
  EXPECT_EQ(write_record(record, std::span(text).first(text.size() - 1)), 0U);
}

}  // namespace
}  // namespace pawl::workers
