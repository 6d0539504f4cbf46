// SPDX-License-Identifier: Apache-2.0
// pawl migrate: moves a stopped store from one kind of database to another.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "store/transfer.hpp"

namespace pawl::cli {
namespace {

struct MigrateArguments {
  std::string from;
  std::string to;
  bool without_application_tables = false;
  bool json = false;
};

/// A progress line that redraws itself; no-op without a terminal.
class ProgressBar {
 public:
  void show(double part) {
    if (!terminal_) return;
    constexpr int kWidth = 40;
    const int percent = static_cast<int>(part * 100);
    if (percent == shown_) return;
    shown_ = percent;
    const auto full = static_cast<std::size_t>(percent * kWidth / 100);
    fmt::print(stderr, "\r[{}{}] {:3}%", std::string(full, '#'), std::string(kWidth - full, ' '), percent);
    std::fflush(stderr);
  }
  ~ProgressBar() {
    if (shown_ >= 0) fmt::print(stderr, "\n");
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  int shown_ = -1;
};

int migrate(const MigrateArguments& arguments) {
  const auto done = [&] {
    ProgressBar bar;
    return transfer_store(arguments.from, arguments.to,
                          {.without_application_tables = arguments.without_application_tables,
                           .progress = [&](double part) { bar.show(part); }});
  }();
  if (!done) return report(done.error());
  if (arguments.json) {
    return print_json(fmt::format(R"({{"entries":{},"instances":{},"was_there":{}}})", done->entries,
                                  done->instances, done->was_there));
  }
  fmt::print("{}: {} entries, counts and checksums agree\n", done->was_there ? "copied already" : "copied",
             done->entries);
  return kOk;
}

}  // namespace

void add_migrate(CLI::App& app, int& status) {
  auto* verb = app.add_subcommand("migrate", "Copy a stopped store from SQLite to PostgreSQL or back");
  const auto arguments = std::make_shared<MigrateArguments>();
  verb->add_option("--from", arguments->from,
                   "sqlite:PATH or postgresql://…; no other process may have it open")
      ->required();
  verb->add_option("--to", arguments->to, "sqlite:PATH or postgresql://…; must not hold a store yet")
      ->required();
  verb->add_flag("--without-application-tables", arguments->without_application_tables,
                 "copy only the store, even if tables of the application have rows");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments, &status] { status = migrate(*arguments); });
}

}  // namespace pawl::cli
