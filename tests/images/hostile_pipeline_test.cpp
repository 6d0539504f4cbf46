// SPDX-License-Identifier: Apache-2.0
// Every kind of hostile archive on its way through the whole pipeline: it is aborted for its own reason,
// the violation is logged, and nothing is left of it.
#include <fmt/format.h>

#include <filesystem>
#include <functional>

#include "tests/images/scripted_world.hpp"

namespace pawl::images::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Hostile {
  std::string name;
  std::string reason;
  std::function<std::string()> bytes;
};

std::string tree(const TarBuilder& tar) { return tar.bytes(); }

std::vector<Hostile> hostile_archives() {
  const auto file_of = [](std::string size_field) {
    return TarBuilder().header({.name = "rootfs/a", .size_field = std::move(size_field)}).end().bytes();
  };
  return {
      {"ParentName", "parent_path", [] { return tree(TarBuilder().file("rootfs/../../x").end()); }},
      {"AbsoluteName", "absolute_path", [] { return tree(TarBuilder().file("/etc/x").end()); }},
      {"EscapingSymlink", "symlink_escape",
       [] { return tree(TarBuilder().symlink("rootfs/a", "../../x").end()); }},
      {"AbsoluteSymlink", "symlink_absolute",
       [] { return tree(TarBuilder().symlink("rootfs/a", "/etc/shadow").end()); }},
      {"HardLinkOutside", "hardlink_escape",
       [] { return tree(TarBuilder().hardlink("rootfs/a", "../x").end()); }},
      {"Setuid", "set_id", [] { return tree(TarBuilder().file("rootfs/su", "x", 04755).end()); }},
      {"Setgid", "set_id", [] { return tree(TarBuilder().file("rootfs/wall", "x", 02755).end()); }},
      {"DeviceNode", "device_node",
       [] { return tree(TarBuilder().header({.name = "rootfs/dev/sda", .type = '4', .major = 8}).end()); }},
      {"TooManyEntries", "too_many_entries",
       [] {
         TarBuilder many;
         for (int i = 0; i < 2000; ++i) many.symlink(fmt::format("rootfs/{}", i), "x");
         return many.end().bytes();
       }},
      {"OversizeFile", "file_too_large",
       [] { return TarBuilder().header({.name = "rootfs/big", .size = (1ULL << 30) + 1}).bytes(); }},
      {"OversizeTotal", "total_too_large",
       [] {
         return TarBuilder()
             .file("rootfs/a", std::string(600'000, 'x'))
             .file("rootfs/b", std::string(600'000, 'x'))
             .end()
             .bytes();
       }},
      {"Truncated", "truncated",
       [] { return TarBuilder().file("rootfs/a", std::string(5000, 'x')).bytes().substr(0, 2048); }},
      {"TruncatedHeader", "truncated", [] { return TarBuilder().file("rootfs/a").bytes().substr(0, 100); }},
      {"Empty", "truncated", [] { return std::string(); }},
      {"Compressed", "compressed", [] { return "BZh91AY" + std::string(2000, '\x55'); }},
      {"CompressedRubbish", "malformed", [] { return "\x1f\x8b\x08" + std::string(2000, '\x55'); }},
      {"WrongHeader", "malformed",
       [] { return TarBuilder().header({.name = "rootfs/a", .wrong_by = 1}).end().bytes(); }},
      {"NegativeSize", "bad_size", [=] { return file_of(std::string(12, '\xff')); }},
      {"OverflowingSize", "bad_size", [=] { return file_of("\x80" + std::string(11, '\xff')); }},
      {"DuplicateName", "duplicate_name",
       [] { return tree(TarBuilder().file("rootfs/a", "1").file("rootfs/a", "2").end()); }},
      {"CaseCollision", "case_collision",
       [] { return tree(TarBuilder().file("rootfs/a", "1").file("rootfs/A", "2").end()); }},
      {"DirectoryReplacedBySymlink", "duplicate_name",
       [] {
         return tree(
             TarBuilder().directory("rootfs/d").symlink("rootfs/d", "etc").file("rootfs/d/x", "1").end());
       }},
      {"BelowASymlink", "through_symlink",
       [] { return tree(TarBuilder().symlink("rootfs/d", "etc").file("rootfs/d/x", "1").end()); }},
  };
}

struct HostilePipeline : testing::TestWithParam<Hostile> {};

TEST_P(HostilePipeline, IsAbortedReportedAndLeavesNothing) {
  ScriptedWorld world({.limits = {.entries = 1000, .total_bytes = 1'000'000}});
  write_file(world.path("bad.tar"), GetParam().bytes());
  const auto run = world.process(world.path("bad.tar").substr(1), "bad");
  EXPECT_EQ(run.state, RunState::aborted) << run.error;
  EXPECT_THAT(run.error, HasSubstr(GetParam().reason));
  EXPECT_THAT(run.error, HasSubstr("`pawl images rm bad`"));
  EXPECT_THAT(world.log, HasSubstr("\"message\":\"security violation\",\"image_id\":\"bad\""));
  EXPECT_THAT(world.log, HasSubstr("\"violation\":\"" + GetParam().reason + "\""));
  EXPECT_THAT(world.log, HasSubstr("\"s3_key\":\"" + world.path("bad.tar").substr(1) + "\""));
  EXPECT_TRUE(std::filesystem::is_empty(world.services().archives()));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(list_volumes(world.query()).value(), IsEmpty());
  EXPECT_THAT(world.garbage(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Each, HostilePipeline, testing::ValuesIn(hostile_archives()),
                         [](const auto& info) { return info.param.name; });

/// An archive that was exchanged for a hostile one behind the back of its validation.
TEST_P(HostilePipeline, IsAlsoRefusedWhereItWasPutInPlaceOfTheArchiveThatWasValidated) {
  ScriptedWorld world({.limits = {.entries = 1000, .total_bytes = 1'000'000}});
  const auto key = world.put("a.tar", plain_image());
  world.script.before = [&](std::string_view call) {
    if (call == "create") write_file(world.services().archive_of("a"), GetParam().bytes());
  };
  const auto run = world.process(key, "a");
  EXPECT_EQ(run.state, RunState::aborted) << run.error;
  EXPECT_THAT(run.error, HasSubstr("unpack-image aborted at extract-layers"));
  EXPECT_THAT(world.log, HasSubstr("\"s3_key\":\"" + key + "\",\"violation\":\"" + GetParam().reason + "\""));
  EXPECT_THAT(world.backend().list().value(), IsEmpty());
  EXPECT_THAT(list_volumes(world.query()).value(), IsEmpty());
}

TEST(ImageLayoutReport, AWorldWritableEtcIsReportedWithTheObjectItCameFrom) {
  ScriptedWorld world;
  TarBuilder open;
  open.directory("rootfs").directory("rootfs/etc", 0777).end();
  const auto key = world.put("open.tar", open);
  const auto run = world.process(key, "open");
  EXPECT_EQ(run.state, RunState::aborted);
  EXPECT_THAT(world.log, HasSubstr("\"s3_key\":\"" + key +
                                   "\",\"violation\":\"layout_invalid\",\"path\":\"rootfs/etc\""));
}

TEST(ImageLayoutReport, AMissingRootfsNamesTheSettingThatAllowsIt) {
  ScriptedWorld world;
  TarBuilder flat;
  flat.file("etc/hostname", "x").end();
  EXPECT_THAT(world.process(world.put("flat.tar", flat), "flat").error, HasSubstr("images.direct_layout"));
}

}  // namespace
}  // namespace pawl::images::test
