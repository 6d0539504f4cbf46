// SPDX-License-Identifier: Apache-2.0
// A process that works on a pool is killed between any two of its operations; the next one repeats the call
// that was interrupted and goes on. Afterwards everything is right and nothing is left over.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/images/backend_place.hpp"

namespace pawl::images::pools {
namespace {

using Call = std::function<Result<void>(Backend&)>;

const Volume kOrigin = test_volume(1);
const Volume kCopy = test_volume(2);

Result<void> write_into(Backend& backend, const Volume& volume) {
  PAWL_TRY(const auto path, backend.mount(volume));
  write_text(path + "/file", "hello");
  return {};
}

Result<void> drop(const auto& result) {
  if (!result) return std::unexpected(result.error());
  return {};
}

/// Everything that is done with a pool, each of which may be interrupted.
std::vector<Call> life() {
  return {
      [](Backend& backend) { return backend.attach(); },
      [](Backend& backend) { return backend.create(kOrigin); },
      [](Backend& backend) { return write_into(backend, kOrigin); },
      [](Backend& backend) { return backend.unmount(kOrigin); },
      [](Backend& backend) { return drop(backend.activate(kOrigin)); },
      [](Backend& backend) { return backend.snapshot(kOrigin, kCopy); },
      [](Backend& backend) { return backend.deactivate(kOrigin); },
      [](Backend& backend) { return drop(backend.activate(kCopy)); },
      [](Backend& backend) { return drop(backend.list()); },
      [](Backend& backend) { return drop(backend.usage()); },
      [](Backend& backend) { return backend.deactivate(kCopy); },
      [](Backend& backend) { return backend.remove(kCopy.id); },
      [](Backend& backend) { return drop(backend.mount(kOrigin)); },
      [](Backend& backend) { return backend.unmount(kOrigin); },
      [](Backend& backend) { return backend.detach(); },
  };
}

/// What both processes see.
struct Progress {
  std::size_t call = 0;
  char step[64] = {};  // NOLINT(*-avoid-c-arrays): it lies in shared memory
};

class SharedProgress {
 public:
  SharedProgress()
      : memory_(static_cast<Progress*>(
            ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  ~SharedProgress() { ::munmap(memory_, sizeof(Progress)); }
  Progress* operator->() const { return memory_; }

 private:
  Progress* memory_;
};

/// Runs the calls in a process that ends itself at the given step. True: it was ended before it was through.
bool run_until(const Place& place, const std::vector<Call>& calls, int steps, SharedProgress& progress) {
  const pid_t child = ::fork();
  if (child == 0) {
    int left = steps;
    const auto backend = place.open([&](std::string_view name) {
      if (--left > 0) return;
      const auto end = std::ranges::copy(name.substr(0, 63), static_cast<char*>(progress->step)).out;
      *end = '\0';
      ::kill(::getpid(), SIGKILL);
    });
    for (progress->call = 0; progress->call < calls.size(); ++progress->call) {
      if (const auto done = calls[progress->call](*backend); !done) {
        fmt::print(stderr, "call {}: {}\n", progress->call, done.error().to_string());
        ::_exit(1);
      }
    }
    ::_exit(0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) return true;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return false;
}

class BackendCrashes : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (const auto why = obstacle(GetParam()); !why.empty()) {
      GTEST_SKIP() << kind_name(GetParam()) << " cannot run here: " << why;
    }
  }

  /// What must hold after the whole life of a pool: the origin is there with its file, and nothing else.
  static void check(const Place& place) {
    EXPECT_EQ(place.in_use(), std::vector<std::string>());
    EXPECT_EQ(place.leftovers(), std::vector<std::string>());
    const auto backend = place.open();
    ASSERT_TRUE(backend->attach());
    const auto all = backend->list();
    ASSERT_TRUE(all) << all.error().to_string();
    ASSERT_EQ(all->size(), 1U);
    EXPECT_TRUE(all->front().complete);
    EXPECT_FALSE(all->front().active);
    EXPECT_EQ(all->front().marker, kOrigin.marker);
    const auto path = backend->mount(kOrigin);
    ASSERT_TRUE(path) << path.error().to_string();
    EXPECT_EQ(read_text(*path + "/file"), "hello");
    ASSERT_TRUE(backend->remove(kOrigin.id));
    EXPECT_EQ(place.leftovers(), std::vector<std::string>());
    ASSERT_TRUE(backend->detach());
  }

  static void go_on(const Place& place, const std::vector<Call>& calls, std::size_t from) {
    const auto backend = place.open();
    for (; from < calls.size(); ++from) {
      const auto done = calls[from](*backend);
      ASSERT_TRUE(done) << "call " << from << ": " << done.error().to_string();
    }
  }
};

TEST_P(BackendCrashes, AnInterruptedCallIsRepeatedWhereverItWasInterrupted) {
  const auto calls = life();
  const Place place(GetParam());
  SharedProgress progress;
  int steps = 1;
  for (; run_until(place, calls, steps, progress); ++steps) {
    SCOPED_TRACE(fmt::format("killed after step {} (\"{}\") in call {}", steps,
                             static_cast<const char*>(progress->step), progress->call));
    go_on(place, calls, progress->call);
    check(place);
    if (HasFailure()) return;
  }
  check(place);
  EXPECT_GT(steps, 10) << "the hook is not called";
}

TEST_P(BackendCrashes, WhatAnInterruptedMakingHasLeftIsReportedAndCanBeRemoved) {
  const auto calls = std::vector<Call>{[](Backend& backend) { return backend.create(kOrigin); }};
  const Place place(GetParam());
  ASSERT_TRUE(place.open()->attach());
  SharedProgress progress;
  int incomplete = 0;
  for (int steps = 1; run_until(place, calls, steps, progress); ++steps) {
    SCOPED_TRACE(
        fmt::format("killed after step {} (\"{}\")", steps, static_cast<const char*>(progress->step)));
    const auto backend = place.open();
    const auto all = backend->list();
    ASSERT_TRUE(all) << all.error().to_string();
    ASSERT_LE(all->size(), 1U);
    if (!all->empty() && !all->front().complete) {
      ++incomplete;
      EXPECT_EQ(all->front().id, kOrigin.id);
      const auto mounted = backend->mount(kOrigin);
      ASSERT_FALSE(mounted);
      EXPECT_EQ(mounted.error().code(), Code::volume_missing);
    }
    ASSERT_TRUE(backend->remove(kOrigin.id));
    EXPECT_EQ(backend->list()->size(), 0U);
    EXPECT_EQ(place.leftovers(), std::vector<std::string>());
  }
  EXPECT_GT(incomplete, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, BackendCrashes,
                         ::testing::Values(BackendKind::dir, BackendKind::reflink, BackendKind::btrfs,
                                           BackendKind::dmthin),
                         [](const auto& info) { return kind_name(info.param); });

}  // namespace
}  // namespace pawl::images::pools
