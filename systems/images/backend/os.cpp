// SPDX-License-Identifier: Apache-2.0
#include "images/backend/os.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

namespace pawl::images::pools {
namespace {

constexpr std::size_t kOutputLimit = std::size_t{16} << 20U;
constexpr auto kLongestPause = std::chrono::milliseconds(100);

Code code_of_errno(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return Code::pool_full;
    case EBUSY:
    case ETXTBSY:
      return Code::volume_busy;
    case EPERM:
    case EACCES:
    case EROFS:
    case ENODEV:
    case ENOSYS:
      return Code::backend_unavailable;
    default:
      return Code::volume_failed;
  }
}

Result<void> write_all(int file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const auto count = ::write(file, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(system_error("write", path));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

/// Everything up to the end; what is beyond the limit is read and dropped.
std::string read_output(int file) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto count = ::read(file, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    if (text.size() < kOutputLimit) text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

/// The descriptors and the environment of a program.
class SpawnPlan {
 public:
  explicit SpawnPlan(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() { posix_spawn_file_actions_destroy(&actions_); }

  int spawn(const std::string& program, std::vector<std::string> arguments, pid_t& child) {
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    std::array<std::string, 2> settings{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"};
    std::array<char*, 3> environment{settings[0].data(), settings[1].data(), nullptr};
    return posix_spawn(&child, program.c_str(), &actions_, nullptr, argv.data(), environment.data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::optional<std::string> find_program(const std::string& name) {
  for (const char* directory : {"/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
    if (auto path = directory + name; ::access(path.c_str(), X_OK) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace

Error system_error(std::string_view doing, std::string_view what, int number) {
  return {code_of_errno(number),
          fmt::format("cannot {} {}: {}", doing, what, std::generic_category().message(number)),
          {{"errno", std::to_string(number)}}};
}

Result<Descriptor> open_file(const std::string& path, int flags, unsigned mode) {
  Descriptor file(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!file) return fail(system_error("open", path));
  return file;
}

Result<Descriptor> open_directory(int parent, const std::string& name) {
  open_how how{};
  how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  Descriptor directory(static_cast<int>(::syscall(SYS_openat2, parent, name.c_str(), &how, sizeof how)));
  if (directory) return directory;
  if (errno == EXDEV) {
    return fail(Code::volume_busy,
                fmt::format("another file system is mounted at \"{}\" inside the volume; unmount it", name));
  }
  return fail(system_error("open the directory", name));
}

Result<void> make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(system_error("make the directory", path, error.value()));
  return {};
}

bool exists(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

Result<std::vector<std::string>> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return fail(system_error("list", directory, error.value()));
  std::ranges::sort(names);
  return names;
}

Result<std::optional<std::string>> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return fail(system_error("open", path));
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const auto count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(system_error("read", path));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

Result<void> write_file(const std::string& path, std::string_view text) {
  const auto temporary = path + ".new";
  {
    PAWL_TRY(const auto file, open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    PAWL_CHECK(write_all(file.get(), text, temporary));
    if (::fsync(file.get()) != 0) return fail(system_error("write", temporary));
  }
  return rename_file(temporary, path);
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return fail(system_error("rename", fmt::format("{} to {}", from, to)));
  }
  return sync_directory(std::filesystem::path(to).parent_path().string());
}

Result<void> sync_directory(const std::string& path) {
  PAWL_TRY(const auto directory, open_file(path, O_RDONLY | O_DIRECTORY));
  if (::fsync(directory.get()) != 0) return fail(system_error("make durable", path));
  return {};
}

Result<void> sync_file_system(const std::string& path) {
  PAWL_TRY(const auto file, open_file(path, O_RDONLY));
  if (::syncfs(file.get()) != 0) return fail(system_error("make durable what is in", path));
  return {};
}

Result<std::string> run_program(const std::vector<std::string>& arguments) {
  const auto program = find_program(arguments.front());
  if (!program) {
    return fail(Code::backend_unavailable,
                fmt::format("the program {} is not installed, which this pool needs", arguments.front()));
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(system_error("make a pipe for", arguments.front()));
  const Descriptor output(ends[0]);
  Descriptor input(ends[1]);
  pid_t child = 0;
  const int spawned = SpawnPlan(input.get()).spawn(*program, arguments, child);
  input = Descriptor();
  if (spawned != 0) return fail(system_error("run", *program, spawned));
  auto text = read_output(output.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fail(system_error("wait for", *program));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
  return fail(Code::volume_failed,
              fmt::format("{} failed with status {}: {}", fmt::join(arguments, " "),
                          WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                          std::string_view(text).substr(0, 1000)));
}

int while_busy(Duration busy_timeout, const std::function<int()>& attempt) {
  const auto until = std::chrono::steady_clock::now() + busy_timeout;
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    const int result = attempt();
    if (result != EBUSY || std::chrono::steady_clock::now() >= until) return result;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, kLongestPause);
  }
}

}  // namespace pawl::images::pools
