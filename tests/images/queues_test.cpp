// SPDX-License-Identifier: Apache-2.0
// How many images are worked on at once, on real threads.
#include <filesystem>
#include <thread>

#include "pawl/engine.hpp"
#include "pawl/runtime.hpp"
#include "tests/images/pipeline_world.hpp"

namespace pawl::images::test {
namespace {

constexpr int kImages = 12;

class ImageQueues : public testing::Test {
 protected:
  ImageQueues() {
    options.directory = place.path() + "/images";
    options.bucket = "bucket";
    options.volume_bytes = 64 * pools::kMiB;
    options.backend.root = options.directory + "/pool";
    services.emplace(options, std::make_unique<CountingSource>(*open_files({place.path()}), counts, trouble),
                     std::make_unique<CountingBackend>(*open_backend(options.backend), counts));
    EXPECT_TRUE(services->open());
    add_image_flows(flows, *services);
    Machines machines;
    flows.add_machines(machines);
    engine = Engine::open(runtime, std::move(machines),
                          {.store = "sqlite:" + place / "flows.db",
                           .work_threads = 2 * kImages,  // so that nothing but the queues holds them back
                           .pools = {{std::string(kDownloads), options.downloads},
                                     {std::string(kUnpacking), options.unpacking}},
                           .migrations = {{"images", image_migrations()}}})
                 .value();
    EXPECT_TRUE(flows.attach(*engine));
  }
  ~ImageQueues() override {
    counts.fetches.open();
    counts.unpackings.open();
    flows.detach();
    engine.reset();
  }

  static std::string name_of(int image) { return "img" + std::to_string(image); }

  void start_all() {
    for (int image = 0; image < kImages; ++image) {
      const auto id = name_of(image);
      const auto path = place / (id + ".tar");
      write_file(path, good_image(id).bytes());
      const ProcessRequest request{.s3_key = path.substr(1), .image_id = id};
      ASSERT_TRUE(flows.start(kProcess, encode(request).value(), {.id = id}));
    }
  }

  /// Looks until all images have asked for this queue: granted and waiting.
  std::pair<std::uint32_t, std::size_t> queue_with_all(std::string_view name) {
    while (true) {
      for (const auto& pool : engine->pools()) {
        if (pool.name == name && pool.granted + pool.waiting == kImages) return {pool.granted, pool.waiting};
      }
      std::this_thread::yield();
    }
  }

  TemporaryDirectory place;
  ImagesOptions options;
  Counts counts;
  std::optional<Error> trouble;
  std::optional<ImageServices> services;
  ThreadRuntime runtime;
  Flows flows{runtime};
  std::unique_ptr<Engine> engine;
};

TEST_F(ImageQueues, FiveAreDownloadedAndTwoAreUnpackedAtATime) {
  counts.fetches.close();
  counts.unpackings.close();
  start_all();
  EXPECT_EQ(queue_with_all(kDownloads), std::pair(5U, std::size_t{7}));
  EXPECT_TRUE(counts.fetches.holds(5));
  counts.fetches.open();
  EXPECT_EQ(queue_with_all(kUnpacking), std::pair(2U, std::size_t{10}));
  EXPECT_TRUE(counts.unpackings.holds(2));
  counts.unpackings.open();
  for (int image = 0; image < kImages; ++image) {
    EXPECT_EQ(flows.wait(kProcess, name_of(image)).value().state, RunState::done);
  }
  EXPECT_EQ(counts.fetches.most(), 5);
  EXPECT_EQ(counts.unpackings.most(), 2);
}

/// A store of the first version has its tables under other names.
TEST(ImageTables, OfTheFirstVersionAreMigratedWithTheirRows) {
  const TemporaryDirectory place;
  ThreadRuntime runtime;
  const auto open = [&](std::vector<Migration> images) {
    return Engine::open(
        runtime, Machines{},
        {.store = "sqlite:" + place / "images.db",
         .migrations = {
             {"images", std::move(images)},
             {"later",
              {{{.text =
                     "INSERT INTO images_unpacked VALUES('a', 1, 'img1-a', 4096, 'm', 'sum', 10, 2, 'then')"},
                {.text = "INSERT INTO images_snapshots VALUES('s', 'a', 2, 4096, 'm', 1, '/s', 1, 'then', "
                         "'')"}}}}}});
  };
  ASSERT_TRUE(open({image_migrations().front()}));
  const auto engine = open(image_migrations());
  ASSERT_TRUE(engine) << engine.error().to_string();
  const Query query = [&](const Sql& statement) { return (*engine)->query(statement); };
  const auto unpacked = find_unpacked(query, "a").value();
  ASSERT_TRUE(unpacked);
  EXPECT_EQ(unpacked->volume.name, "img1-a");
  EXPECT_EQ(unpacked->device_path, "");
  EXPECT_TRUE(unpacked->layout_verified) << "rows were only written behind that step";
  EXPECT_EQ(unpacked->file_count, 2);
  EXPECT_EQ(unpacked->unpacked_at, "then");
  EXPECT_EQ(unpacked->volume.pool, "") << "what there was lies in the default pool";
  EXPECT_TRUE(find_snapshot_of(query, "a", "s").value()->active);
  EXPECT_FALSE(find_snapshot_of(query, "b", "s").value());
}

}  // namespace
}  // namespace pawl::images::test
