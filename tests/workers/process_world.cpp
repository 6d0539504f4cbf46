// SPDX-License-Identifier: Apache-2.0
#include "tests/workers/process_world.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "workers/process/names.hpp"
#include "workers/process/record.hpp"

namespace pawl::workers::test {

World::World() {
  std::string name = std::filesystem::temp_directory_path().string() + "/pawl-process-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
  root_ = name;
}

World::~World() {
  const auto all = manager();
  const auto ids = all.list();
  if (ids) {
    for (const auto& id : *ids) EXPECT_TRUE(all.stop(id, Duration::zero())) << id;
  }
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string World::place(std::string_view id) const { return processes() + "/" + directory_name(id).value(); }

ProcessManager World::manager(const std::string& shim, ProcessTimeouts timeouts) const {
  return ProcessManager::open(processes(), shim, timeouts).value();
}

void World::until(std::string_view id, const std::function<bool()>& holds) const {
  const systems::Descriptor changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(
      ::inotify_add_watch(changes.get(), place(id).c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE),
      0);
  while (!holds()) {
    pollfd waiting{changes.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, kPatienceMs), 1) << "nothing more happens to " << id;
    std::array<char, 4096> events{};
    ASSERT_GT(::read(changes.get(), events.data(), events.size()), 0);
  }
}

void World::until_ended(std::string_view id) const {
  const auto now = manager();
  until(id, [&] {
    const auto state = now.status(id).value().state;
    return state != ProcessState::starting && state != ProcessState::running;
  });
}

std::vector<std::string> World::lines(std::string_view id, std::size_t count) const {
  std::vector<std::string> texts;
  const auto now = manager();
  until(id, [&] {
    const auto found = now.tail(id, 10'000).value();
    texts.clear();
    for (const auto& line : found) texts.push_back(line.text);
    return texts.size() >= count;
  });
  return texts;
}

std::size_t World::runs() const {
  const auto text = read_all(runs_file());
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

ProcessSpec shell(const std::string& script) { return {.command = {"/bin/sh", "-c", script}}; }

ProcessSpec counted(const World& world) {
  return shell(fmt::format("echo ran >> {}; echo ready; exec sleep 1000", world.runs_file()));
}

ShimAndCommand pids(const World& world, std::string_view id) {
  const auto text = read_all(world.place(id) + "/status");
  Record record;
  EXPECT_TRUE(read_record(text, record)) << text;
  return {record.shim.pid, record.command.pid};
}

Handle::Handle(pid_t pid) : number_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  EXPECT_GE(number_, 0) << "process " << pid << " is not there";
}

Handle::~Handle() { ::close(number_); }

bool Handle::ended() const {
  pollfd waiting{number_, POLLIN, 0};
  return ::poll(&waiting, 1, kPatienceMs) == 1;
}

bool Handle::lives() const {
  pollfd waiting{number_, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 0;
}

void in_killed_process(const std::function<void()>& work) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work();
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

std::string read_all(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_all(const std::string& path, std::string_view text, unsigned mode) {
  std::ofstream(path, std::ios::binary) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

}  // namespace pawl::workers::test
