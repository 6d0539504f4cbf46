// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "tests/workers/process_world.hpp"
#include "workers/process/proc.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers::test {
namespace {

using ::testing::HasSubstr;

constexpr auto kLongGrace = Duration::max();
constexpr int kExitHeld = 75;
constexpr int kExitUsed = 76;

/// A shim that waits for a word before it does anything, as one on a machine that is busy.
class SlowShim {
 public:
  explicit SlowShim(const World& world) : path_(world.root() + "/slow-shim"), fifo_(world.root() + "/word") {
    EXPECT_EQ(::mkfifo(fifo_.c_str(), 0600), 0);
    write_all(path_, fmt::format("#!/bin/sh\nread word < {}\nexec {} \"$@\"\n", fifo_, PAWL_SHIM), 0700);
  }
  const std::string& path() const { return path_; }

  /// Returns when it waits for the word; the word is given by `release`.
  void await() { end_ = systems::Descriptor(::open(fifo_.c_str(), O_WRONLY | O_CLOEXEC)); }
  void release() {
    ASSERT_EQ(::write(end_.get(), "go\n", 3), 3);
    end_ = {};
  }

 private:
  std::string path_;
  std::string fifo_;
  systems::Descriptor end_;
};

/// While it lives, processes whose parents have died become children of the test.
class Orphanage {
 public:
  Orphanage() { EXPECT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  Orphanage(const Orphanage&) = delete;
  Orphanage& operator=(const Orphanage&) = delete;
  ~Orphanage() {
    ::prctl(PR_SET_CHILD_SUBREAPER, 0);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {}
  }

  /// Reaps until one has ended with the code.
  static bool ended_with(int code) {
    int status = 0;
    while (::waitpid(-1, &status, 0) > 0) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == code) return true;
    }
    return false;
  }
};

/// Starts in a process of its own that is killed as soon as its shim waits for the word.
void start_and_die(const World& world, SlowShim& slow, std::uint64_t generation) {
  const pid_t server = ::fork();
  ASSERT_GE(server, 0);
  if (server == 0) {
    const auto started = world.manager(slow.path()).start("pump", generation, counted(world));
    ::_exit(started ? 0 : 1);
  }
  slow.await();
  ASSERT_EQ(::kill(server, SIGKILL), 0);
  ASSERT_EQ(::waitpid(server, nullptr, 0), server);
}

TEST(ProcessCrash, WhenTheShimIsKilledTheCommandDiesAndIsLost) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  const auto [shim, command] = pids(world, "pump");
  const Handle shim_handle(shim);
  const Handle command_handle(command);
  ASSERT_EQ(::kill(shim, SIGKILL), 0);
  EXPECT_TRUE(command_handle.ended());
  ASSERT_TRUE(shim_handle.ended());
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::lost);
  EXPECT_EQ(status.generation, 1U);
  EXPECT_FALSE(status.exit);
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));  // was started: not again
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::lost);
  ASSERT_TRUE(manager.start("pump", 2, counted(world)));
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::running);
}

/// What has forked away from a command whose shim is killed, and what ends it.
void expect_no_orphan_after(const std::function<Result<void>(const ProcessManager&, const World&)>& act) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start(
      "pump", 1, shell("(setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 1000' &) ; exec sleep 1000")));
  const Handle grandchild(std::stoi(world.lines("pump", 1).front()));
  const auto shim = pids(world, "pump").shim;
  const Handle shim_handle(shim);
  ASSERT_EQ(::kill(shim, SIGKILL), 0);
  ASSERT_TRUE(shim_handle.ended());
  EXPECT_TRUE(grandchild.lives());
  ASSERT_TRUE(act(manager, world));
  EXPECT_FALSE(grandchild.lives());
}

TEST(ProcessCrash, WhatOutlivesAKilledShimEndsBeforeTheNextGenerationBegins) {
  expect_no_orphan_after(
      [](const auto& manager, const auto& world) { return manager.start("pump", 2, counted(world)); });
}

TEST(ProcessCrash, WhatOutlivesAKilledShimEndsWithStop) {
  expect_no_orphan_after([](const auto& manager, const auto&) { return manager.stop("pump", kLongGrace); });
}

TEST(ProcessCrash, WhatOutlivesAKilledShimEndsWithForget) {
  expect_no_orphan_after([](const auto& manager, const auto&) { return manager.forget("pump"); });
}

TEST(ProcessCrash, AfterTheServerIsKilledTheNextOneAdopts) {
  const World world;
  in_killed_process([&] { EXPECT_TRUE(world.manager().start("pump", 1, counted(world))); });
  const auto manager = world.manager();
  const auto status = manager.status("pump").value();
  EXPECT_EQ(status.state, ProcessState::running);
  EXPECT_EQ(status.generation, 1U);
  EXPECT_EQ(status.pid, pids(world, "pump").command);
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  world.lines("pump", 1);
  EXPECT_EQ(world.runs(), 1U);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().exit->signal, SIGTERM);
}

TEST(ProcessCrash, AnEndThatHappensWhileNoServerLivesIsKnown) {
  const World world;
  const auto fifo = world.root() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  in_killed_process([&] {
    EXPECT_TRUE(world.manager().start("pump", 1, shell(fmt::format("read x < {}; echo bye; exit 5", fifo))));
  });
  write_all(fifo, "go\n");
  world.until_ended("pump");
  const auto status = world.manager().status("pump").value();
  EXPECT_EQ(status.state, ProcessState::exited);
  EXPECT_EQ(status.exit->code, 5);
  EXPECT_EQ(world.lines("pump", 1).back(), "bye");
}

TEST(ProcessCrash, AServerThatInheritsOrphansReapsItsShims) {
  const Orphanage orphanage;
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, counted(world)));
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::exited);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ProcessCrash, AShimThatComesUpAfterItsServerWasKilledRunsOnce) {
  const Orphanage orphanage;
  const World world;
  SlowShim slow(world);
  start_and_die(world, slow, 1);
  EXPECT_EQ(world.manager().status("pump").value().state, ProcessState::absent);
  slow.release();
  world.lines("pump", 1);
  ASSERT_TRUE(world.manager().start("pump", 1, counted(world)));
  EXPECT_EQ(world.runs(), 1U);
}

TEST(ProcessCrash, AShimThatComesUpTooLateFindsTheLockHeldAndRunsNothing) {
  const Orphanage orphanage;
  const World world;
  SlowShim slow(world);
  start_and_die(world, slow, 1);
  ASSERT_TRUE(world.manager().start("pump", 1, counted(world)));
  world.lines("pump", 1);
  slow.release();
  EXPECT_TRUE(Orphanage::ended_with(kExitHeld));
  EXPECT_EQ(world.runs(), 1U);
}

TEST(ProcessCrash, AShimThatComesUpAfterItsGenerationEndedRunsNothing) {
  const Orphanage orphanage;
  const World world;
  SlowShim slow(world);
  start_and_die(world, slow, 1);
  ASSERT_TRUE(world.manager().start("pump", 2, shell("true")));
  ASSERT_TRUE(world.manager().stop("pump", kLongGrace));
  slow.release();
  EXPECT_TRUE(Orphanage::ended_with(kExitUsed));
  EXPECT_EQ(world.runs(), 0U);
}

TEST(ProcessCrash, AShimOfAForgottenWorkerRunsNothingNorInTheOneOfTheSameName) {
  const Orphanage orphanage;
  const World world;
  SlowShim slow(world);
  start_and_die(world, slow, 9);
  ASSERT_TRUE(world.manager().forget("pump"));
  ASSERT_TRUE(world.manager().start("pump", 1, shell("true")));
  ASSERT_TRUE(world.manager().stop("pump", kLongGrace));
  slow.release();
  EXPECT_TRUE(Orphanage::ended_with(kExitHeld));
  EXPECT_EQ(world.runs(), 0U);
  EXPECT_EQ(world.manager().status("pump").value().generation, 1U);
}

TEST(ProcessCrash, AShimThatNeverComesUpIsGivenUpAndDoesNotComeLater) {
  const World world;
  SlowShim slow(world);
  const auto manager = world.manager(slow.path(), {.start = std::chrono::milliseconds(50)});
  const auto started = manager.start("pump", 1, counted(world));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Code::process_failed);
  EXPECT_THAT(started.error().message(), HasSubstr("did not come up in time"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::absent);
}

TEST(ProcessCrash, StartingCanBeCancelled) {
  const World world;
  SlowShim slow(world);
  std::stop_source stop;
  stop.request_stop();
  const auto started = world.manager(slow.path()).start("pump", 1, counted(world), stop.get_token());
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), Code::cancelled);
}

/// A status as a shim would have written it that ran under the numbers of these processes.
void write_status(const World& world, const ProcessKey& shim, const ProcessKey& command) {
  Record record;
  record.id = "pump";
  record.generation = 1;
  record.shim = shim;
  record.command = command;
  record.mark = "0123456789abcdef";
  std::string text(kLongestRecord, '\0');
  text.resize(write_record(record, text));
  std::filesystem::create_directories(world.place("pump"));
  write_all(world.place("pump") + "/status", text);
  write_all(world.place("pump") + "/lock", "");
}

TEST(ProcessCrash, ANumberThatWasGivenToAnotherProcessIsNotTakenForTheOldOne) {
  const World world;
  const auto manager = world.manager();
  ProcStat self;
  ASSERT_TRUE(read_stat(::getpid(), self));
  // Nothing here may be signalled: it is this test.
  write_status(world, {self.pid, self.start + 1}, {self.pid, self.start + 1});
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::lost);
  ASSERT_TRUE(manager.stop("pump", kLongGrace));
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::lost);

  const systems::Descriptor lock(::open((world.place("pump") + "/lock").c_str(), O_RDWR | O_CLOEXEC));
  struct flock whole{};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(lock.get(), F_OFD_SETLK, &whole), 0);
  EXPECT_EQ(manager.status("pump").value().state, ProcessState::starting);
  const auto impatient = world.manager(PAWL_SHIM, {.start = std::chrono::milliseconds(50)});
  const auto stopped = impatient.stop("pump", Duration::zero());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::process_failed);
  EXPECT_FALSE(impatient.start("pump", 2, counted(world)));
  whole.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(lock.get(), F_OFD_SETLK, &whole), 0);
  ASSERT_TRUE(manager.start("pump", 2, counted(world)));
}

TEST(ProcessCrash, ADamagedStatusIsReportedAndNothingIsStartedOnIt) {
  const World world;
  const auto manager = world.manager();
  ASSERT_TRUE(manager.start("pump", 1, shell("true")));
  world.until_ended("pump");
  write_all(world.place("pump") + "/status", "pawl-process 1\ngeneration 1\n");
  EXPECT_EQ(manager.status("pump").error().code(), Code::process_failed);
  EXPECT_EQ(manager.start("pump", 2, counted(world)).error().code(), Code::process_failed);
  EXPECT_EQ(world.runs(), 0U);
  write_all(world.place("pump") + "/status", "");
  EXPECT_EQ(manager.start("pump", 2, counted(world)).error().code(), Code::process_failed);
  std::filesystem::remove(world.place("pump") + "/status");
}

TEST(ProcessCrash, ServersThatAreKilledWhileTheyStartRunEachGenerationOnce) {
  const World world;
  constexpr int kWorkers = 6;
  constexpr std::uint64_t kGenerations = 6;
  const auto id = [](int worker) { return fmt::format("worker/{}", worker); };
  const auto spec = [&](int worker, std::uint64_t generation) {
    return shell(fmt::format("echo {}/{} >> {}; exec sleep 1000", worker, generation, world.runs_file()));
  };
  for (std::uint64_t generation = 1; generation <= kGenerations; ++generation) {
    int heard[2];
    ASSERT_EQ(::pipe(heard), 0);
    const pid_t server = ::fork();
    ASSERT_GE(server, 0);
    if (server == 0) {
      const auto manager = world.manager();
      for (int worker = 0; worker < kWorkers; ++worker) {
        if (!manager.start(id(worker), generation, spec(worker, generation))) ::_exit(1);
        if (::write(heard[1], "x", 1) != 1) ::_exit(1);
      }
      ::pause();
    }
    // Killed somewhere in the middle, another place in each round.
    char word = 0;
    for (std::uint64_t i = 0; i + 1 < generation; ++i) ASSERT_EQ(::read(heard[0], &word, 1), 1);
    ASSERT_EQ(::kill(server, SIGKILL), 0);
    ASSERT_EQ(::waitpid(server, nullptr, 0), server);
    ::close(heard[0]);
    ::close(heard[1]);
    const auto manager = world.manager();
    for (int worker = 0; worker < kWorkers; ++worker) {
      ASSERT_TRUE(manager.start(id(worker), generation, spec(worker, generation)));
      EXPECT_EQ(manager.status(id(worker)).value().state, ProcessState::running);
    }
    for (int worker = 0; worker < kWorkers; ++worker) ASSERT_TRUE(manager.stop(id(worker), kLongGrace));
  }
  // A shell may have been ended before it wrote its line, but none wrote it twice.
  std::istringstream text(read_all(world.runs_file()));
  std::map<std::string, int> runs;
  for (std::string line; std::getline(text, line);) EXPECT_EQ(++runs[line], 1) << line;
}

}  // namespace
}  // namespace pawl::workers::test
