// SPDX-License-Identifier: Apache-2.0
// pawl top: the terminal, the keys, and the thread that updates the model.
#include "cli/top.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/output.hpp"
#include "cli/verbs.hpp"

namespace pawl::cli {
namespace {

using TopClock = std::chrono::steady_clock;
constexpr auto kTick = std::chrono::seconds(1);
constexpr Duration kFeedGlance = std::chrono::milliseconds(200);

void write_all(std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// A signal's handler reaches nothing but what is static.
termios terminal_before;
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";

void enter_screen() {
  auto raw = terminal_before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
  write_all(kEnter);
}

void leave_screen() {
  write_all(kLeave);
  ::tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
}

/// Restores the terminal, then raises the signal again with its default action, so that the shell sees it.
void on_end(int signal) {
  leave_screen();
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

void on_continue(int) {
  handle(SIGTSTP, on_end);
  enter_screen();
}

/// The alternate screen without echo; restored on destruction and by signals.
class Screen {
 public:
  Screen() {
    ::tcgetattr(STDIN_FILENO, &terminal_before);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGTSTP})
      handle(signal, on_end);
    handle(SIGCONT, on_continue);
    handle(SIGWINCH, [](int) {});  // only to wake up
    enter_screen();
  }
  ~Screen() {
    leave_screen();
    for (const int signal :
         {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGTSTP, SIGCONT, SIGWINCH}) {
      std::signal(signal, SIG_DFL);
    }
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::vector<std::string>& lines) {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\r\n") + lines[i] + "\x1b[K";
    write_all(text + "\x1b[J");
  }
};

/// Reads the feed on a thread of its own.
class Watcher {
 public:
  Watcher(std::unique_ptr<Source> source, std::string name)
      : source_(std::move(source)), model_(std::move(name)) {}

  Result<void> start() {
    PAWL_TRY(feed_, source_->follow({}, [this](const std::string& text) { problem(text); }));
    PAWL_TRY(const auto machines, source_->machines());
    model_.note_machines(machines.root());
    PAWL_CHECK(tick());
    thread_ = std::jthread([this](const std::stop_token& stop) { follow(stop); });
    return {};
  }

  /// Requests the counters. Error: the server's; the next tick tries again.
  Result<void> tick() {
    const auto stats = source_->stats();
    const std::lock_guard lock(mutex_);
    if (!stats) {
      model_.note_problem(stats.error().message());
      return fail(stats.error());
    }
    const auto now = TopClock::now();
    model_.note_stats(stats->root(), last_ ? std::chrono::duration<double>(now - *last_).count() : 0);
    model_.note_problem("");
    last_ = now;
    return {};
  }

  std::vector<std::string> frame(std::size_t& scroll) {
    const std::lock_guard lock(mutex_);
    return model_.frame(terminal_size(), scroll, clock());
  }
  std::vector<std::string> whole() {
    const std::lock_guard lock(mutex_);
    return model_.whole(output_is_terminal() ? terminal_size() : Size{.rows = 0, .columns = 200}, clock());
  }

 private:
  static std::string clock() {
    return to_seconds(to_string(std::chrono::floor<Duration>(std::chrono::system_clock::now())));
  }

  void problem(const std::string& text) {
    const std::lock_guard lock(mutex_);
    model_.note_problem(text);
  }

  void follow(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto entries = feed_->next(kFeedGlance);
      if (!entries) return problem(entries.error().message());
      for (const auto& entry : *entries) {
        const auto document = parse_answer(entry);
        const std::lock_guard lock(mutex_);
        if (document) model_.note_entry(document->root());
      }
    }
  }

  std::unique_ptr<Source> source_;
  std::unique_ptr<Feed> feed_;
  std::mutex mutex_;
  TopModel model_;
  std::optional<TopClock::time_point> last_;
  std::jthread thread_;  // last: it uses the rest
};

enum class Key { none, quit, up, down, page_up, page_down };

/// The key pressed within the timeout; a signal ends the wait early.
Key read_key(std::chrono::milliseconds most) {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, static_cast<int>(most.count())) != 1) return Key::none;
  std::array<char, 16> bytes{};
  const auto count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (count <= 0) return Key::quit;  // standard input has ended
  const std::string_view pressed(bytes.data(), static_cast<std::size_t>(count));
  if (pressed == "q" || pressed == "Q") return Key::quit;
  if (pressed == "\x1b[A" || pressed == "\x1bOA" || pressed == "k") return Key::up;
  if (pressed == "\x1b[B" || pressed == "\x1bOB" || pressed == "j") return Key::down;
  if (pressed == "\x1b[5~") return Key::page_up;
  if (pressed == "\x1b[6~" || pressed == " ") return Key::page_down;
  return Key::none;
}

void watch(Watcher& watcher) {
  Screen screen;
  std::size_t scroll = 0;
  auto next = TopClock::now() + kTick;
  while (true) {
    screen.draw(watcher.frame(scroll));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - TopClock::now());
    switch (read_key(std::max(left, std::chrono::milliseconds(0)))) {
      case Key::quit:
        return;
      case Key::up:
        scroll -= scroll > 0 ? 1 : 0;
        break;
      case Key::down:
        ++scroll;
        break;
      case Key::page_up:
        scroll -= std::min<std::size_t>(scroll, 10);
        break;
      case Key::page_down:
        scroll += 10;
        break;
      case Key::none:
        break;
    }
    if (TopClock::now() < next) continue;
    // Shows that the server does not answer, and tries again.
    (void)watcher.tick();
    next = TopClock::now() + kTick;
  }
}

}  // namespace

int run_top(const Common& common, const TopArguments& arguments) {
  auto source = open_source(common.source);
  if (!source) return report(source.error());
  auto name = (*source)->name();
  Watcher watcher(*std::move(source), std::move(name));
  if (const auto started = watcher.start(); !started) return report(started.error());
  if (!arguments.once && output_is_terminal() && ::isatty(STDIN_FILENO) == 1) {
    watch(watcher);
    return kOk;
  }
  std::this_thread::sleep_for(kTick);  // a rate is between two points in time
  if (const auto ticked = watcher.tick(); !ticked) return report(ticked.error());
  for (const auto& line : watcher.whole()) fmt::print("{}\n", line);
  return kOk;
}

}  // namespace pawl::cli
