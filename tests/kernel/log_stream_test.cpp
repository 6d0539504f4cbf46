// SPDX-License-Identifier: Apache-2.0
// Log lines on real file descriptors: whole, valid and none lost, from many threads and on bad days.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <rapidcheck/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <boost/json.hpp>

#include <cstdio>
#include <latch>
#include <sstream>
#include <thread>

#include "pawl/log.hpp"

namespace {

using pawl::LogFormat;
using pawl::Logger;
using pawl::LogLevel;
using pawl::LogRecord;
using pawl::StreamSink;
using pawl::Time;

Time no_time() { return Time(); }

/// Closes its descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) { EXPECT_GE(number, 0); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(); }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }
  int get() const { return number_; }

 private:
  int number_;
};

std::string read_all(int descriptor) {
  std::string content;
  std::array<char, 65536> chunk;
  ssize_t n = 0;
  while ((n = ::read(descriptor, chunk.data(), chunk.size())) > 0) {
    content.append(chunk.data(), static_cast<std::size_t>(n));
  }
  return content;
}

std::vector<std::string> lines_of(const std::string& content) {
  std::vector<std::string> lines;
  std::istringstream in(content);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(LogStream, ThreadsLoseNothingAndDoNotInterleave) {
  constexpr int kThreads = 8;
  constexpr int kLines = 300;
  const Descriptor file(memfd_create("log", 0));
  auto sink = std::make_shared<StreamSink>(file.get(), StreamSink::Options{.format = LogFormat::json});
  const Logger logger(sink, no_time);
  {
    std::latch start(kThreads);
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const Logger mine = logger.with({{"thread", t}});
        start.arrive_and_wait();
        for (int i = 0; i < kLines; ++i) {
          const auto length = static_cast<std::size_t>(i * 7 % 400);
          mine.info("line", {{"i", i}, {"fill", std::string(length, static_cast<char>('a' + t))}});
        }
      });
    }
  }
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  std::map<std::int64_t, std::int64_t> next;
  for (const auto& line : lines_of(read_all(file.get()))) {
    const auto object = boost::json::parse(line).as_object();
    EXPECT_EQ(object.at("i").as_int64(), next[object.at("thread").as_int64()]++);
  }
  ASSERT_EQ(next.size(), std::size_t{kThreads});
  for (const auto& [thread, count] : next) EXPECT_EQ(count, kLines);
  EXPECT_EQ(sink->lost(), 0u);
}

TEST(LogStream, OneLineIsOneWriteCall) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);  // keeps the bounds of each write
  const Descriptor reader(ends[0]);
  const Descriptor writer(ends[1]);
  const Logger logger(std::make_shared<StreamSink>(writer.get()), no_time);
  logger.info("first", {{"a", 1}, {"b", "two\nlines"}});
  logger.info("second");
  std::array<char, 4096> packet;
  for (const auto* message : {"first", "second"}) {
    const ssize_t n = ::read(reader.get(), packet.data(), packet.size());
    ASSERT_GT(n, 0);
    const std::string_view line(packet.data(), static_cast<std::size_t>(n));
    EXPECT_THAT(line, testing::HasSubstr(message));
    EXPECT_EQ(line.find('\n'), line.size() - 1);
  }
}

TEST(LogStream, AFullNonBlockingPipeIsWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reader(ends[0]);
  Descriptor writer(ends[1]);
  ASSERT_EQ(::fcntl(writer.get(), F_SETFL, O_NONBLOCK), 0);
  ASSERT_GT(::fcntl(writer.get(), F_SETPIPE_SZ, 4096), 0);
  constexpr int kLines = 200;
  auto sink = std::make_shared<StreamSink>(writer.get(), StreamSink::Options{.format = LogFormat::json});
  std::jthread thread([&] {
    const Logger logger(sink, no_time);
    for (int i = 0; i < kLines; ++i) logger.info("line", {{"i", i}, {"fill", std::string(3000, 'x')}});
    writer.close();
  });
  const auto lines = lines_of(read_all(reader.get()));
  thread.join();
  ASSERT_EQ(lines.size(), std::size_t{kLines});
  for (int i = 0; i < kLines; ++i) {
    EXPECT_EQ(boost::json::parse(lines[static_cast<std::size_t>(i)]).at("i").as_int64(), i);
  }
  EXPECT_EQ(sink->lost(), 0u);
}

TEST(LogStream, LinesTheSystemRefusesAreCounted) {
  const Descriptor file(::open("/dev/null", O_RDONLY));
  auto sink = std::make_shared<StreamSink>(file.get());
  const Logger logger(sink, no_time);
  logger.info("one");
  logger.info("two");
  EXPECT_EQ(sink->lost(), 2u);
}

TEST(LogStream, ALineAfterATornOneStartsOnANewLine) {
  // A file that may not grow takes the first page of a long line and refuses the rest.
  const Descriptor file(memfd_create("log", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), 4096), 0);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  auto sink = std::make_shared<StreamSink>(file.get());
  const Logger logger(sink, no_time);
  logger.info(std::string(4090, 'x'));
  EXPECT_EQ(sink->lost(), 1u);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  logger.info("whole");
  logger.info("next");
  EXPECT_EQ(sink->lost(), 1u);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  EXPECT_THAT(
      read_all(file.get()),
      testing::StartsWith("\n1970-01-01T00:00:00.000000Z INFO  whole\n1970-01-01T00:00:00.000000Z INFO  "
                          "next\n"));
}

TEST(LogStream, TheFormatAndColourAreThoseAskedFor) {
  const auto written = [](StreamSink::Options options) {
    const Descriptor file(memfd_create("log", 0));
    Logger(std::make_shared<StreamSink>(file.get(), options), no_time).warn("m");
    EXPECT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
    return read_all(file.get());
  };
  EXPECT_EQ(written({}), "1970-01-01T00:00:00.000000Z WARN  m\n");
  EXPECT_THAT(written({.colour = true}), testing::HasSubstr("\x1b[33mWARN"));
  EXPECT_THAT(written({.format = LogFormat::json, .colour = true}), testing::StartsWith("{\"time\""));
}

/// Bytes of every kind, with a liking for those that make trouble.
std::string any_bytes() {
  const auto part =
      rc::gen::oneOf(rc::gen::arbitrary<std::string>(),
                     rc::gen::container<std::string>(
                         rc::gen::map(rc::gen::inRange(0, 256), [](int c) { return static_cast<char>(c); })),
                     rc::gen::element<std::string>(
                         "\n", "\"", "\\", "\xE2\x80\xA8", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3\xA9",
                         std::string(pawl::kLogTextLimit - 1, '"'), "\xF0\x9F\x90\xBE"));
  std::string bytes;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) bytes += *part;
  return bytes;
}

RC_GTEST_PROP(LogProperty, AnyRecordIsOneLineOfValidJsonAndOneOfText, ()) {
  std::string json;
  std::string text;
  const Logger logger(std::make_shared<pawl::CallbackSink>([&](const LogRecord& record) {
                        pawl::append_json(json, record);
                        pawl::append_text(text, record);
                      }),
                      no_time);
  const std::string key = any_bytes();
  const std::string value = any_bytes();
  logger.with({{"bound", any_bytes()}})
      .info(any_bytes(), {{key, value}, {"real", *rc::gen::arbitrary<double>()}});
  RC_ASSERT(json.find('\n') == json.size() - 1);
  RC_ASSERT(text.find('\n') == text.size() - 1);
  boost::json::error_code error;
  const auto parsed = boost::json::parse(std::string_view(json), error);  // refuses invalid UTF-8, too
  RC_ASSERT(!error);
  RC_ASSERT(parsed.as_object().contains("real"));
}

RC_GTEST_PROP(LogProperty, ADurationInTextReadsBackExactly, ()) {
  const pawl::Duration duration(*rc::gen::arbitrary<std::int64_t>() >> *rc::gen::inRange(1, 63));
  const pawl::LogField fields[]{{"took", duration}};
  std::string line;
  pawl::append_text(line, {Time(), LogLevel::info, "m", fields});
  const auto begin = line.find("took=") + 5;
  RC_ASSERT(pawl::parse_duration(line.substr(begin, line.size() - begin - 1)).value() == duration);
}

}  // namespace
