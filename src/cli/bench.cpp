// SPDX-License-Identifier: Apache-2.0
// pawl bench: durable transitions compared with the speed of the disk.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <vector>

#include "cli/output.hpp"
#include "cli/verbs.hpp"
#include "pawl/engine.hpp"

namespace pawl::cli {
namespace bench {

enum class Lamp { off, on };
struct Press {};
struct Presses {
  std::int64_t count = 0;
};
inline constexpr auto lamp = machine<Lamp, Presses>("lamp")
                                 .initial(Lamp::off)
                                 .on<Press>(Lamp::off, Lamp::on, [](Presses& presses) { ++presses.count; })
                                 .on<Press>(Lamp::on, Lamp::off, [](Presses& presses) { ++presses.count; })
                                 .endless();

}  // namespace bench

namespace {

using Clock = std::chrono::steady_clock;

struct Measure {
  std::string what;
  std::vector<double> micros;  // of each operation
  double seconds = 0;

  double rate() const { return seconds > 0 ? static_cast<double>(micros.size()) / seconds : 0; }
  /// `micros` is sorted.
  double quantile(double share) const {
    return micros.empty() ? 0
                          : micros[static_cast<std::size_t>(share * static_cast<double>(micros.size() - 1))];
  }
};

double micros_since(Clock::time_point started) {
  return std::chrono::duration<double, std::micro>(Clock::now() - started).count();
}

/// A temporary directory inside the working directory, whose disk is measured.
class Place {
 public:
  static Result<Place> make() {
    std::string name = "pawl-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      return fail(Code::store_io,
                  fmt::format("cannot create a directory here: {}", std::generic_category().message(errno)));
    }
    return Place(std::move(name));
  }
  Place(Place&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~Place() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  explicit Place(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// Appends pages and syncs each: the upper bound for single durable steps.
Result<Measure> measure_syncs(const Place& place, std::size_t count) {
  const int file = ::open(place.file("syncs").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(Code::store_io,
                fmt::format("cannot create a file here: {}", std::generic_category().message(errno)));
  Measure measure{.what = "fdatasync of 4 KiB"};
  const std::string page(4096, 'x');
  const auto started = Clock::now();
  bool failed = false;
  for (std::size_t i = 0; i < count && !failed; ++i) {
    const auto one = Clock::now();
    failed = ::write(file, page.data(), page.size()) != static_cast<ssize_t>(page.size()) ||
             ::fdatasync(file) != 0;
    measure.micros.push_back(micros_since(one));
  }
  measure.seconds = micros_since(started) / 1e6;
  ::close(file);
  if (failed)
    return fail(Code::store_io,
                fmt::format("cannot write to the disk: {}", std::generic_category().message(errno)));
  return measure;
}

/// One caller that waits for each step.
Result<Measure> measure_one(Engine& engine, std::size_t count) {
  Measure measure{.what = "transitions, one caller"};
  const auto started = Clock::now();
  for (std::size_t i = 0; i < count; ++i) {
    const auto one = Clock::now();
    PAWL_CHECK(engine.send<bench::lamp>("0", bench::Press{}));
    measure.micros.push_back(micros_since(one));
  }
  measure.seconds = micros_since(started) / 1e6;
  return measure;
}

/// One caller per lamp, each with one open request.
Result<Measure> measure_many(Runtime& runtime, Engine& engine, std::size_t count, std::size_t callers) {
  struct Shared {
    std::mutex mutex;
    std::size_t started = 0;
    std::size_t finished = 0;
    std::vector<double> micros;
    std::optional<Error> problem;
    Gate all;
  };
  const auto shared = std::make_shared<Shared>();
  std::function<void(std::size_t)> press = [&](std::size_t caller) {
    {
      const std::lock_guard lock(shared->mutex);
      if (shared->started == count) return;
      ++shared->started;
    }
    const auto one = Clock::now();
    engine.submit(Transaction{}.send<bench::lamp>(std::to_string(caller), bench::Press{}),
                  [&press, shared, caller, one, count](const auto& outcome) {
                    bool last = false;
                    {
                      const std::lock_guard lock(shared->mutex);
                      shared->micros.push_back(micros_since(one));
                      if (!outcome) shared->problem = outcome.error();
                      last = ++shared->finished == count;
                    }
                    if (last) return shared->all.open();
                    press(caller);
                  });
  };
  const auto started = Clock::now();
  for (std::size_t i = 0; i < callers; ++i) press(i);
  runtime.wait(shared->all);
  if (shared->problem) return fail(*shared->problem);
  return Measure{.what = fmt::format("transitions, {} callers", callers),
                 .micros = std::move(shared->micros),
                 .seconds = micros_since(started) / 1e6};
}

Result<std::vector<Measure>> measure_all(const BenchArguments& arguments) {
  constexpr std::size_t kCallers = 256;
  PAWL_TRY(const auto place, Place::make());
  ThreadRuntime runtime;
  PAWL_TRY(const auto engine, Engine::open(runtime, Machines().add<bench::lamp>(),
                                           {.store = "sqlite:" + place.file("bench.db")}));
  for (std::size_t i = 0; i < kCallers; ++i) PAWL_CHECK(engine->create<bench::lamp>(std::to_string(i)));
  std::vector<Measure> all;
  PAWL_TRY(auto syncs, measure_syncs(place, arguments.syncs));
  all.push_back(std::move(syncs));
  PAWL_TRY(auto one, measure_one(*engine, std::min(arguments.transitions, arguments.syncs)));
  all.push_back(std::move(one));
  PAWL_TRY(auto many, measure_many(runtime, *engine, arguments.transitions, kCallers));
  all.push_back(std::move(many));
  for (auto& measure : all) std::ranges::sort(measure.micros);
  return all;
}

}  // namespace

int run_bench(bool json, const BenchArguments& arguments) {
  const auto all = measure_all(arguments);
  if (!all) return report(all.error());
  if (json) {
    JsonWriter out;
    out.begin_object().key("measures").begin_array();
    for (const auto& measure : *all) {
      out.begin_object()
          .key("what")
          .string(measure.what)
          .key("count")
          .integer(std::uint64_t{measure.micros.size()});
      out.key("seconds").number(measure.seconds).key("per_second").number(measure.rate());
      out.key("p50_us")
          .number(measure.quantile(0.5))
          .key("p99_us")
          .number(measure.quantile(0.99))
          .end_object();
    }
    return print_json(out.end_array().end_object().take());
  }
  Table table({"WHAT", ">COUNT", ">PER SECOND", ">P50", ">P99"});
  const auto millis = [](double micros) { return fmt::format("{:.2f} ms", micros / 1000); };
  for (const auto& measure : *all) {
    table.add({measure.what, grouped(static_cast<std::int64_t>(measure.micros.size())),
               grouped(static_cast<std::int64_t>(measure.rate())), millis(measure.quantile(0.5)),
               millis(measure.quantile(0.99))});
  }
  table.print();
  return kOk;
}

}  // namespace pawl::cli
