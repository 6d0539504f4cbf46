// SPDX-License-Identifier: Apache-2.0
// How long it takes to make an image usable: snapshot and activation of a tree of 1,000 files, for each back
// end that works here, against `cp -a` of the same tree, which is what one does without a back end. Both end
// when what they made is durable. Medians of alternating repetitions.
//
//     images_activate_bench [directory [back end]]
//
// What cannot work here is named on the error stream; images_dmthin_bench runs this in a guest.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "images/backend/backend.hpp"
#include "pawl/assert.hpp"
#include "pawl/names.hpp"

namespace {

using pawl::images::Backend;
using pawl::images::BackendKind;
using pawl::images::Volume;

constexpr int kFiles = 1000;
constexpr int kRepetitions = 9;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;

Volume volume(std::uint32_t id) {
  return {.id = id,
          .name = fmt::format("bench-{}", id),
          .bytes = kGiB,
          .marker = fmt::format("00000000-0000-4000-8000-{:012x}", id)};
}

/// 1,000 files of 1 to 32 KiB in 50 directories.
void make_tree(const std::string& root) {
  for (int i = 0; i < kFiles; ++i) {
    const auto directory = fmt::format("{}/rootfs/{}", root, i % 50);
    std::filesystem::create_directories(directory);
    std::ofstream(fmt::format("{}/{}", directory, i))
        << std::string(static_cast<std::size_t>(1024 * (1 + i % 32)), static_cast<char>('a' + i % 26));
  }
}

double milliseconds(const std::function<void()>& work) {
  const auto begun = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
}

void sync_tree(const std::string& path) {
  const int directory = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  PAWL_ASSERT(directory >= 0 && syncfs(directory) == 0, "the copy is durable");
  close(directory);
}

void copy_with_cp(std::string from, std::string to) {
  std::string program = "cp";
  std::string option = "-a";
  std::vector<char*> arguments{program.data(), option.data(), from.data(), to.data(), nullptr};
  pid_t child = 0;
  PAWL_ASSERT(posix_spawnp(&child, "cp", nullptr, nullptr, arguments.data(), environ) == 0, "cp starts");
  int status = 0;
  PAWL_ASSERT(waitpid(child, &status, 0) == child && status == 0, "cp works");
  sync_tree(to);
}

void run(BackendKind kind, std::string_view name, const std::string& directory) {
  const auto root = directory + "/images_activate_bench";
  const auto plain = directory + "/images_activate_cp";
  for (const auto& path : {root, plain}) std::filesystem::remove_all(path);
  make_tree(plain + "/tree");
  const auto opened = pawl::images::open_backend({.kind = kind, .root = root, .pool_bytes = 2 * kGiB});
  PAWL_ASSERT(opened.has_value(), "the back end opens");
  auto& backend = **opened;
  PAWL_ASSERT(backend.attach(), "the pool is attached");
  PAWL_ASSERT(backend.create(volume(1)), "the origin is made");
  const auto path = backend.mount(volume(1));
  PAWL_ASSERT(path.has_value(), "the origin is mounted");
  make_tree(*path);
  PAWL_ASSERT(backend.unmount(volume(1)), "the origin is unmounted");
  std::vector<double> ours;
  std::vector<double> copies;
  for (std::uint32_t i = 0; i < kRepetitions; ++i) {
    const auto copy = volume(100 + i);
    const auto target = fmt::format("{}/{}", plain, i);
    copies.push_back(milliseconds([&] { copy_with_cp(plain + "/tree", target); }));
    ours.push_back(milliseconds([&] {
      PAWL_ASSERT(backend.snapshot(volume(1), copy), "a snapshot is taken");
      PAWL_ASSERT(backend.activate(copy), "it is activated");
    }));
  }
  bench::report(fmt::format("images.activate.{}", name), bench::median(ours), "ms", bench::median(copies));
  PAWL_ASSERT(backend.detach(), "the pool is given back");
  for (const auto& left : {root, plain}) std::filesystem::remove_all(left);
}

}  // namespace

int main(int count, char** arguments) {
  const std::string directory = count > 1 ? arguments[1] : ".";
  const std::string_view only = count > 2 ? arguments[2] : "";
  for (const auto& choice : pawl::images::available_backends()) {
    const auto name = pawl::enum_name(choice.kind);
    if (!only.empty() && name != only) continue;
    if (choice.available) {
      run(choice.kind, name, directory);
    } else {
      fmt::print(stderr, "images.activate.{} is not measured here: {}\n", name, choice.reason);
    }
  }
}
