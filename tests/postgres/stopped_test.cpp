// SPDX-License-Identifier: Apache-2.0
// An owner in a process of its own that is stopped, taken over and let go on; and one that is killed.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <set>

#include "tests/postgres/postgres_place.hpp"
#include "tests/postgres/session.hpp"

namespace pawl::test {
namespace {

/// Not a test: what the child process runs. Writes entries until it is fenced and says what was acknowledged.
TEST(OwnerProcess, DISABLED_Worker) {
  const char* url = std::getenv("PAWL_TEST_URL");  // NOLINT(concurrency-mt-unsafe): no other thread runs yet
  ASSERT_NE(url, nullptr);
  auto store = open_postgres({.url = url}).value();
  ASSERT_TRUE(store->execute(std::vector{plain("CREATE TABLE IF NOT EXISTS t(x INTEGER)")}));
  fmt::print("owner\n");
  for (int i = 0;; ++i) {
    const auto key = fmt::format("w{}-{}", getpid(), i);
    // Every other batch holds a transaction open while it is decided.
    std::vector<Sql> sql;
    if (i % 2 == 0) sql.push_back(plain("INSERT INTO t VALUES(1)"));
    const auto joined = join(*store, {created(key)}, sql);
    const auto done = joined ? store->commit() : Result<void>(fail(joined.error()));
    if (done) {
      fmt::print("ack {}\n", key);
      std::fflush(stdout);
      continue;
    }
    fmt::print("end {} {}\n", name(done.error().code()),
               name(code(store->still_owner()).value_or(Code::internal)));
    std::fflush(stdout);
    if (done.error().code() != Code::rolled_back) return;
  }
}

/// The worker in a process of its own.
class Worker {
 public:
  explicit Worker(const std::string& url) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    const std::string variable = "PAWL_TEST_URL=" + url;
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      std::array<const char*, 5> arguments{"/proc/self/exe", "--gtest_filter=OwnerProcess.DISABLED_Worker",
                                           "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr};
      std::array<const char*, 2> environment{variable.c_str(), nullptr};
      execve(arguments[0], const_cast<char* const*>(arguments.data()),
             const_cast<char* const*>(environment.data()));
      _exit(127);
    }
    close(ends[1]);
    output_ = ends[0];
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    kill(process_, SIGKILL);
    int status = 0;
    waitpid(process_, &status, 0);
    close(output_);
  }

  void signal(int number) const { kill(process_, number); }

  /// Reads until a line begins so; returns it, and notes what was acknowledged on the way.
  std::string read_until(const std::string& begins) {
    while (true) {
      const auto end = text_.find('\n');
      if (end != std::string::npos) {
        auto line = text_.substr(0, end);
        text_.erase(0, end + 1);
        if (line.starts_with("ack ")) acknowledged_.insert(line.substr(4));
        if (line.starts_with(begins)) return line;
        continue;
      }
      std::array<char, 4096> part{};
      const auto got = read(output_, part.data(), part.size());
      if (got <= 0) return "";
      text_.append(part.data(), static_cast<std::size_t>(got));
    }
  }
  const std::set<std::string>& acknowledged() const { return acknowledged_; }

 private:
  pid_t process_ = -1;
  int output_ = -1;
  std::string text_;
  std::set<std::string> acknowledged_;
};

class StoppedOwner : public testing::Test {
 protected:
  void SetUp() override {
    PAWL_NEEDS_POSTGRES();
    place_.emplace();
  }
  std::string url() { return place_->server().url(place_->database(), "&pawl_lease=500ms"); }
  Result<std::unique_ptr<Store>> take_over() { return open_postgres({.url = url(), .take_over = true}); }

  /// Everything acknowledged is there once, and nothing of an old owner lies behind its successor.
  void audit(const std::set<std::string>& acknowledged) {
    std::multiset<std::string> there;
    const auto reader = place_->open_read_only().value();
    const auto entries = reader->feed(0, 1'000'000).value();
    for (const auto& entry : entries) there.insert(entry.key);
    for (const auto& key : acknowledged) EXPECT_EQ(there.count(key), 1U) << key;
    EXPECT_EQ(
        place_->sql(
            "SELECT count(*) FROM (SELECT epoch < lag(epoch) OVER (ORDER BY seq) AS back FROM pawl.log) x "
            "WHERE back"),
        "0");
    EXPECT_EQ(problems(*reader), "");
  }

  std::optional<PostgresPlace> place_;
};

TEST_F(StoppedOwner, WritesNothingAfterItsSuccessorHasBegunHoweverOftenThatHappens) {
  std::set<std::string> acknowledged;
  for (int round = 0; round < 4; ++round) {
    Worker worker(url());
    ASSERT_EQ(worker.read_until("owner"), "owner");
    for (int i = 0; i < 5 + round; ++i) ASSERT_NE(worker.read_until("ack"), "");
    worker.signal(SIGSTOP);
    auto successor = take_over();
    ASSERT_TRUE(successor) << successor.error().to_string();
    const auto key = fmt::format("s{}", round);
    write(**successor, created(key));
    acknowledged.insert(key);
    worker.signal(SIGCONT);
    // It learns of it with its next write, and serves no reads either.
    EXPECT_EQ(worker.read_until("end"), "end store_fenced store_fenced");
    acknowledged.insert(worker.acknowledged().begin(), worker.acknowledged().end());
    write(**successor, created(key + "-after"));
    acknowledged.insert(key + "-after");
  }
  audit(acknowledged);
}

TEST_F(StoppedOwner, ThatWasKilledIsFollowedWhenItsLeaseHasEnded) {
  std::set<std::string> acknowledged;
  for (int round = 0; round < 2; ++round) {
    Worker worker(url());
    ASSERT_EQ(worker.read_until("owner"), "owner");
    for (int i = 0; i < 10; ++i) ASSERT_NE(worker.read_until("ack"), "");
    worker.signal(SIGKILL);
    worker.read_until("nothing more");
    acknowledged.insert(worker.acknowledged().begin(), worker.acknowledged().end());
    auto successor = open_postgres({.url = url()});
    // The server may not have noticed yet that the other one's connection is gone.
    while (code(successor) == Code::store_locked) successor = open_postgres({.url = url()});
    ASSERT_TRUE(successor) << successor.error().to_string();
  }
  audit(acknowledged);
}

}  // namespace
}  // namespace pawl::test
