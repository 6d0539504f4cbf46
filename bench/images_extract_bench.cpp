// SPDX-License-Identifier: Apache-2.0
// Unpacking an archive under all the rules against GNU tar, which has none, with the same archive on the same
// file system; both end with syncfs. Many small files, and a few large ones.
//
//     PAWL_BENCH_DIR     where archives and trees are made; the temporary directory by default
//     PAWL_BENCH_ONLY    only points whose name contains this
//     PAWL_BENCH_ROUNDS  how often each is measured
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "images/archive/archive.hpp"
#include "images/archive/descriptor.hpp"

namespace {

namespace fs = std::filesystem;
using namespace bench;
using pawl::images::Descriptor;

[[noreturn]] void give_up(std::string_view why) {
  fmt::print(stderr, "images_extract_bench: {}\n", why);
  std::exit(1);
}

std::string setting(const char* name, const char* default_value) {
  const auto* text = std::getenv(name);
  return text != nullptr ? text : default_value;
}

void run(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (auto& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (::posix_spawnp(&child, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0) {
    give_up(fmt::format("{} fails", arguments[0]));
  }
}

/// `count` files of random bytes, of sizes between the two, a hundred to a directory.
double make_archive(const fs::path& top, int count, std::size_t least, std::size_t most) {
  std::mt19937_64 random(1);
  const auto tree = top / "tree";
  double bytes = 0;
  std::string content;
  for (int i = 0; i < count; ++i) {
    const auto directory = tree / fmt::format("rootfs/usr/d{:03}", i / 100);
    if (i % 100 == 0) fs::create_directories(directory);
    content.resize(std::uniform_int_distribution<std::size_t>(least, most)(random));
    for (std::size_t at = 0; at < content.size(); at += 64) content[at] = static_cast<char>(random());
    std::ofstream(directory / fmt::format("file{:06}", i), std::ios::binary) << content;
    bytes += static_cast<double>(content.size());
  }
  run({"tar", "--format=pax", "-C", tree, "-cf", top / "archive.tar", "."});
  fs::remove_all(tree);
  return bytes;
}

/// Seconds of `unpack` into an empty directory, which is removed afterwards.
template <class Unpack>
double timed(const fs::path& root, Unpack unpack) {
  fs::create_directory(root);
  const Descriptor opened(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ::syncfs(opened.get());
  const auto begin = std::chrono::steady_clock::now();
  unpack(opened.get());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fs::remove_all(root);
  ::syncfs(opened.get());
  return took.count();
}

void measure(const std::string& name, int count, std::size_t least, std::size_t most) {
  if (name.find(setting("PAWL_BENCH_ONLY", "")) == std::string::npos) return;
  const auto top =
      fs::path(setting("PAWL_BENCH_DIR", fs::temp_directory_path().c_str())) / "pawl-images-extract-bench";
  fs::remove_all(top);
  fs::create_directories(top);
  const auto bytes = make_archive(top, count, least, most);
  const auto archive = (top / "archive.tar").string();
  const auto root = top / "root";
  std::vector<double> ours;
  std::vector<double> tars;
  const auto rounds = std::stoi(setting("PAWL_BENCH_ROUNDS", "7"));
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(timed(root, [&](int opened) {
      const auto done = pawl::images::extract(archive, opened, {});
      if (!done) give_up(done.error().to_string());
      if (done->files != static_cast<std::uint64_t>(count)) give_up("files are missing");
    }));
    tars.push_back(timed(root, [&](int opened) {
      run({"tar", "-C", root, "-xpf", archive});
      ::syncfs(opened);
    }));
  }
  report(name, bytes / median(ours) / 1e6, "MB/s", bytes / median(tars) / 1e6);
  fs::remove_all(top);
}

}  // namespace

int main() {
  measure("images.extract.small", 20'000, 1024, 8192);
  measure("images.extract.large", 16, std::size_t{32} << 20, std::size_t{32} << 20);
  return 0;
}
