// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The plain journal: what the disk allows a program that appends. One writer thread takes what waits, looks
/// up each instance in a table in memory, appends a record with the next version, syncs the batch with one
/// fdatasync, then changes the table and tells the callers. It knows no states, guards or types, and nothing
/// can be read back: a limit, not a rival.
///
///     bench::Journal journal(directory / "journal");
///     journal.append(key, data, event, [](bool durable) { … });   // runs on the writer's thread

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bench {

/// A file that is created for appending and removed at the end. Not preallocated.
class AppendFile {
 public:
  explicit AppendFile(std::filesystem::path path)
      : path_(std::move(path)),
        file_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)) {}
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile() {
    if (file_ >= 0) ::close(file_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  bool append_durably(std::string_view bytes) {
    return file_ >= 0 && ::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()) &&
           ::fdatasync(file_) == 0;
  }

 private:
  std::filesystem::path path_;
  int file_;
};

/// Thread-safe. Whatever was appended is answered before the destructor returns.
class Journal {
 public:
  using Done = std::move_only_function<void(bool durable)>;

  explicit Journal(std::filesystem::path path) : file_(std::move(path)), writer_([this] { run(); }) {}
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    writer_.join();
  }

  void append(std::string key, std::string data, std::string event, Done done) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(key), std::move(data), std::move(event), std::move(done)});
    if (queue_.size() == 1) wake_.notify_one();
  }

 private:
  struct Request {
    std::string key;
    std::string data;
    std::string event;
    Done done;
  };
  struct Instance {
    std::int64_t version = 0;
    std::string data;
  };
  /// What a record has besides data and event.
  struct Head {
    std::array<char, 16> id{};
    std::int64_t version = 0;
    std::int64_t time = 0;
    std::int64_t previous = 0;
    std::uint32_t data_bytes = 0;
    std::uint32_t event_bytes = 0;
    std::uint64_t checksum = 0;
  };

  void add_record(std::string& bytes, const Request& request, const Instance& instance) {
    Head head{.version = instance.version + 1,
              .time = std::chrono::system_clock::now().time_since_epoch().count(),
              .data_bytes = static_cast<std::uint32_t>(request.data.size()),
              .event_bytes = static_cast<std::uint32_t>(request.event.size())};
    std::memcpy(head.id.data(), request.key.data(), std::min(request.key.size(), head.id.size()));
    bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
    bytes += request.data;
    bytes += request.event;
  }

  void run() {
    std::vector<Request> batch;
    std::string bytes;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
      lock.unlock();
      for (const auto& request : batch) add_record(bytes, request, table_[request.key]);
      const bool durable = file_.append_durably(bytes);
      for (auto& request : batch) {
        auto& instance = table_[request.key];
        instance.version += 1;
        instance.data = std::move(request.data);
        request.done(durable);
      }
      batch.clear();
      bytes.clear();
      lock.lock();
    }
  }

  std::unordered_map<std::string, Instance> table_;
  AppendFile file_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Request> queue_;
  bool stopping_ = false;
  std::thread writer_;
};

}  // namespace bench
