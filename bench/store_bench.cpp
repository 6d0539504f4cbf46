// SPDX-License-Identifier: Apache-2.0
// Durable appends through the SQLite store against a plain journal, which writes the same bytes with one
// fdatasync per batch. CPU per entry is the thread's own; rates depend on what else the disk does.
//
//     store_bench [directory]
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/report.hpp"
#include "pawl/assert.hpp"
#include "store/store.hpp"

namespace {

using pawl::EntryKind;
using pawl::EntryView;
using pawl::Seq;

const std::string kData = R"({"text":")" + std::string(188, 'd') + R"("})";
const std::string kPayload = R"({"text":")" + std::string(108, 'p') + R"("})";

struct Instance {
  pawl::InstanceId id;
  Seq seq = 0;
  std::int64_t version = 0;
};

struct Figures {
  double cpu_us = 0;
  double per_second = 0;
};

/// Runs `batch` until `entries` entries are durable.
template <class Batch>
Figures measure(std::int64_t entries, std::int64_t batch_size, Batch batch) {
  const auto begun = std::chrono::steady_clock::now();
  const double cpu = bench::thread_cpu_seconds();
  for (std::int64_t done = 0; done < entries; done += batch_size) batch();
  const double used = bench::thread_cpu_seconds() - cpu;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  const auto count = static_cast<double>((entries + batch_size - 1) / batch_size * batch_size);
  return {used / count * 1e6, count / taken.count()};
}

Figures journal(const std::string& path, std::int64_t entries, std::int64_t batch_size) {
  const int file = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
  PAWL_ASSERT(file >= 0, "the journal can be created");
  std::string bytes;
  const auto figures = measure(entries, batch_size, [&] {
    bytes.clear();
    for (std::int64_t i = 0; i < batch_size; ++i) bytes.append(72, 'h').append(kData).append(kPayload);
    PAWL_ASSERT(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                "it is written");
    PAWL_ASSERT(fdatasync(file) == 0, "it is synced");
  });
  close(file);
  unlink(path.c_str());
  return figures;
}

class StoreRun {
 public:
  StoreRun(const std::string& path, std::int64_t instances) : store_(*pawl::open_sqlite({.path = path})) {
    instances_.resize(static_cast<std::size_t>(instances));
    for (std::size_t i = 0; i < instances_.size(); ++i) {
      const auto key = fmt::format("instance-{:015}", i);
      auto& instance = instances_[i];
      instance.id = pawl::instance_id("bench", key);
      append(instance, EntryKind::created, key);
      if (i % 4096 == 4095) commit();
    }
    commit();
  }

  void batch(std::int64_t size) {
    std::uniform_int_distribution<std::size_t> pick(0, instances_.size() - 1);
    for (std::int64_t i = 0; i < size; ++i) append(instances_[pick(random_)], EntryKind::fired, {});
    commit();
  }

 private:
  void append(Instance& instance, EntryKind kind, std::string_view key) {
    now_ += pawl::Duration(1);
    const EntryView entry{.id = instance.id,
                          .kind = kind,
                          .machine = "bench",
                          .key = key,
                          .version = ++instance.version,
                          .prev = instance.seq,
                          .state = instance.version % 2 == 0 ? "open" : "closed",
                          .at = now_,
                          .event = "Push",
                          .payload = kPayload,
                          .data = kData};
    const auto seq = store_->apply({.entries = {&entry, 1}, .sql = {}, .request = {}});
    PAWL_ASSERT(seq.has_value(), "an entry is applied");
    instance.seq = *seq;
  }
  void commit() { PAWL_ASSERT(store_->commit(), "a batch is committed"); }

  std::unique_ptr<pawl::Store> store_;
  std::jthread checkpoints_{[this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      PAWL_ASSERT(store_->checkpoint(), "a checkpoint works");
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }};
  std::vector<Instance> instances_;
  std::mt19937_64 random_{1};
  pawl::Time now_{std::chrono::seconds(1'700'000'000)};
};

void run(const std::string& directory, std::int64_t instances) {
  const auto path = directory + "/store_bench.db";
  for (const char* suffix : {"", "-wal", "-shm", ".owner"}) std::filesystem::remove(path + suffix);
  {
    StoreRun store(path, instances);
    for (const std::int64_t size : {1, 16, 256, 4096}) {
      const auto entries = std::min<std::int64_t>(size * 1000, 200'000);
      const auto limit = journal(directory + "/store_bench.journal", entries, size);
      const auto figures = measure(entries, size, [&] { store.batch(size); });
      const auto name = fmt::format("store.append.{}k.batch{}", instances / 1000, size);
      bench::report(name + ".cpu", figures.cpu_us, "us", limit.cpu_us);
      bench::report(name + ".rate", figures.per_second, "1/s", limit.per_second);
    }
  }
  for (const char* suffix : {"", "-wal", "-shm", ".owner"}) std::filesystem::remove(path + suffix);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string directory = count > 1 ? arguments[1] : ".";
  run(directory, 10'000);
  run(directory, 1'000'000);
}
