// SPDX-License-Identifier: Apache-2.0
// Fetching an object, hashed on the way and durable at the end, against the `curl` command fetching the same
// object from the same server, without a hash and made durable by the same syncs.
//
// PAWL_BENCH_DIR is where the files go while it runs.
#include <arpa/inet.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/report.hpp"
#include "images/source/source.hpp"

namespace bench {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;
constexpr int kRounds = 9;

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "images_download_bench: {}\n", what);
  std::exit(EXIT_FAILURE);
}

/// Sends one file to whoever asks, as fast as the kernel does it.
class FileServer {
 public:
  explicit FileServer(const std::string& path)
      : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (file_ < 0 || bind(listener_, raw, size) != 0 || listen(listener_, 8) != 0 ||
        getsockname(listener_, raw, &size) != 0)
      give_up("no server");
    endpoint_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    thread_ = std::jthread([this] { serve(); });
  }
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;
  ~FileServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    close(file_);
  }

  const std::string& endpoint() const { return endpoint_; }

 private:
  void serve() const {
    for (int client = 0; (client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(client)) {
      std::string head;
      std::array<char, 4096> part{};
      while (head.find("\r\n\r\n") == std::string::npos) {
        const auto got = recv(client, part.data(), part.size(), 0);
        if (got <= 0) break;
        head.append(part.data(), static_cast<std::size_t>(got));
      }
      const auto answer = fmt::format(
          "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", kBytes);
      if (send(client, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) continue;
      for (off_t offset = 0; static_cast<std::uint64_t>(offset) < kBytes;) {
        if (sendfile(client, file_, &offset, kBytes - static_cast<std::uint64_t>(offset)) <= 0) break;
      }
      shutdown(client, SHUT_WR);
    }
  }

  int file_;
  int listener_;
  std::string endpoint_;
  std::jthread thread_;
};

void sync(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC);
  if (file < 0 || fsync(file) != 0) give_up("no sync");
  close(file);
}

void run_curl(const std::string& url, const fs::path& target) {
  std::vector<std::string> words{"curl", "-s", "-f", "--noproxy", "*", "-o", target.string() + ".part", url};
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  int status = 0;
  if (posix_spawnp(&child, "curl", nullptr, nullptr, arguments.data(), environ) != 0 ||
      waitpid(child, &status, 0) != child || status != 0)
    give_up("the curl command is not there, or fails");
  sync(target.string() + ".part", O_RDONLY);
  fs::rename(target.string() + ".part", target);
  sync(target.parent_path().string(), O_RDONLY | O_DIRECTORY);
}

void run_fetch(const std::string& endpoint, const fs::path& target) {
  const auto source = pawl::images::open_s3({.endpoint = endpoint});
  if (!source) give_up(source.error().to_string());
  const auto fetched = (*source)->fetch({"bucket", "object"}, target.string(), {});
  if (!fetched) give_up(fetched.error().to_string());
  if (fetched->bytes != kBytes) give_up("not everything came");
}

/// MB/s.
template <class Run>
double measure(const fs::path& target, const Run& run) {
  fs::remove(target);
  ::sync();  // what others have left to write is not measured
  const auto begin = std::chrono::steady_clock::now();
  run();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(kBytes) / 1e6 / taken.count();
}

void run_all(const fs::path& directory) {
  const auto object = directory / "object";
  {
    std::ofstream file(object, std::ios::binary);
    std::string bytes(std::size_t{1} << 20, '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13U);
    for (std::uint64_t done = 0; done < kBytes; done += bytes.size()) file << bytes;
  }
  const FileServer server(object.string());
  const auto target = directory / "target";
  std::vector<double> ours;
  std::vector<double> theirs;
  for (int round = 0; round < kRounds; ++round) {
    theirs.push_back(measure(target, [&] { run_curl(server.endpoint() + "/bucket/object", target); }));
    ours.push_back(measure(target, [&] { run_fetch(server.endpoint(), target); }));
  }
  report("images.download", median(ours), "MB/s", median(theirs));
}

void run_somewhere() {
  const char* parent = std::getenv("PAWL_BENCH_DIR");
  auto name =
      ((parent != nullptr ? fs::path(parent) : fs::temp_directory_path()) / "pawl_bench_XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) give_up("no directory");
  run_all(name);
  fs::remove_all(name);
}

}  // namespace
}  // namespace bench

int main() { bench::run_somewhere(); }
