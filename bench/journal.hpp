// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The plain journal: what the disk allows a program that only appends. One writer thread takes what waits,
/// writes it with one call, syncs it with one fdatasync and tells the callers. It checks nothing, keeps
/// nothing in memory and cannot be read: an upper limit, not a rival.
///
///     bench::Journal journal(directory / "journal");
///     journal.append(std::string(record), [](bool durable) { … });   // runs on the writer's thread

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
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

  void append(std::string record, Done done) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(record), std::move(done)});
    if (queue_.size() == 1) wake_.notify_one();
  }

 private:
  struct Request {
    std::string record;
    Done done;
  };

  void run() {
    std::vector<Request> batch;
    std::string bytes;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      batch.swap(queue_);
      lock.unlock();
      for (const auto& request : batch) bytes += request.record;
      const bool durable = file_.append_durably(bytes);
      for (auto& request : batch) request.done(durable);
      batch.clear();
      bytes.clear();
      lock.lock();
    }
  }

  AppendFile file_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Request> queue_;
  bool stopping_ = false;
  std::thread writer_;
};

}  // namespace bench
