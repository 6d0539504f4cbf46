// SPDX-License-Identifier: Apache-2.0
#include "pawl/metrics.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "pawl/system.hpp"
#include "server/routes.hpp"

namespace pawl {
namespace {

std::string escaped(std::string_view text) {
  std::string made;
  for (const char byte : text) {
    if (byte == '\\' || byte == '"') made += '\\';
    made += byte == '\n' ? std::string("\\n") : std::string(1, byte);
  }
  return made;
}

}  // namespace

MetricsText& MetricsText::begin(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  return *this;
}
MetricsText& MetricsText::counter(std::string_view name, std::string_view help) {
  return begin(name, "counter", help);
}
MetricsText& MetricsText::gauge(std::string_view name, std::string_view help) {
  return begin(name, "gauge", help);
}
MetricsText& MetricsText::histogram(std::string_view name, std::string_view help) {
  return begin(name, "histogram", help);
}

void MetricsText::line(std::string_view suffix, const Labels& labels, double value) {
  fmt::format_to(std::back_inserter(text_), "{}{}", family_, suffix);
  if (!labels.empty()) {
    text_ += '{';
    for (std::size_t i = 0; i < labels.size(); ++i) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", i == 0 ? "" : ",", labels[i].first,
                     escaped(labels[i].second));
    }
    text_ += '}';
  }
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

MetricsText& MetricsText::sample(const Labels& labels, double value) {
  line("", labels, value);
  return *this;
}

MetricsText& MetricsText::buckets(const Labels& labels, std::span<const double> bounds,
                                  std::span<const std::uint64_t> counts, double sum) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    total += counts[i];
    auto bounded = labels;
    bounded.emplace_back("le", i < bounds.size() ? fmt::format("{}", bounds[i]) : "+Inf");
    line("_bucket", bounded, static_cast<double>(total));
  }
  line("_sum", labels, sum);
  line("_count", labels, static_cast<double>(total));
  return *this;
}

namespace server {
namespace {

void write_engine(MetricsText& out, const Engine& engine, const EventFeed& feed) {
  const auto stats = engine.stats();
  const auto number = [](auto value) { return static_cast<double>(value); };
  out.counter("pawl_transitions_total", "Durable log entries.").sample(number(stats.transitions));
  out.counter("pawl_commits_total", "Durable commits; each contains a batch of transactions.")
      .sample(number(stats.commits));
  out.counter("pawl_refused_total", "Transactions refused.").sample(number(stats.refused));
  out.counter("pawl_conflicts_total", "Transactions refused because the version had changed.")
      .sample(number(stats.conflicts));
  out.gauge("pawl_queue_depth", "Transactions waiting for the engine.").sample(number(stats.queue));
  out.gauge("pawl_timers", "Timers set.").sample(number(stats.timers));
  out.gauge("pawl_timers_due", "Timers that are due and whose event is not durable yet.")
      .sample(number(stats.timers_due));
  out.histogram("pawl_commit_seconds", "Duration of durable commits.")
      .buckets({}, stats.commit_seconds.bounds, stats.commit_seconds.counts, stats.commit_seconds.sum);
  out.histogram("pawl_batch_size", "Entries per durable commit.")
      .buckets({}, stats.batch_sizes.bounds, stats.batch_sizes.counts, stats.batch_sizes.sum);
  out.gauge("pawl_running_work", "Attempts at work in progress.").sample(number(stats.running_work));
  out.gauge("pawl_cached_bytes", "Size of the cached instance data.").sample(number(stats.cached_bytes));
  out.gauge("pawl_last_seq", "Sequence number of the newest log entry.").sample(number(stats.last_seq));
  out.gauge("pawl_instances", "Instances by machine and state.");
  for (const auto& [machine, states] : engine.counts()) {
    for (const auto& [state, count] : states) {
      out.sample({{"machine", machine}, {"state", state}}, number(count));
    }
  }
  const auto pools = engine.pools();
  out.gauge("pawl_permits", "Permits of each pool.");
  for (const auto& pool : pools) out.sample({{"pool", pool.name}}, pool.size);
  out.gauge("pawl_permits_granted", "Permits in use.");
  for (const auto& pool : pools) out.sample({{"pool", pool.name}}, pool.granted);
  out.gauge("pawl_permits_waiting", "Work waiting for a permit.");
  for (const auto& pool : pools) out.sample({{"pool", pool.name}}, number(pool.waiting));
  const auto counters = feed.counters();
  const auto lag = counters.seq == 0 ? 0 : std::max<std::int64_t>(stats.last_seq - counters.seq, 0);
  out.gauge("pawl_feed_lag", "Durable entries not yet sent to event streams.").sample(number(lag));
  out.gauge("pawl_feed_streams", "Open event streams.").sample(number(counters.streams));
  out.counter("pawl_feed_entries_total", "Entries sent to event streams.").sample(number(counters.frames));
  out.counter("pawl_feed_lagged_total", "Streams ended because their reader was too slow.")
      .sample(number(counters.lagged));
}

void write_http(MetricsText& out, const Router& router, const WireCounters* wire) {
  const auto number = [](const auto& value) { return static_cast<double>(value.load()); };
  out.counter("pawl_http_requests_total", "Requests by route and status class.");
  const auto by_class = [&](const std::string& route, const RouteCounters& counters) {
    for (std::size_t i = 2; i < counters.by_class.size(); ++i) {
      out.sample({{"route", route}, {"status", fmt::format("{}xx", i)}}, number(counters.by_class[i]));
    }
  };
  for (const auto& entry : router.entries()) by_class(entry.route.id, *entry.counters);
  by_class("dashboard", router.fallen_back());
  by_class("none", router.unmatched());
  out.histogram("pawl_http_request_seconds", "Duration of requests by route.");
  for (const auto& entry : router.entries()) {
    std::vector<std::uint64_t> counts;
    for (const auto& bucket : entry.counters->seconds) counts.push_back(bucket.load());
    out.buckets({{"route", entry.route.id}}, RouteCounters::kBounds, counts,
                number(entry.counters->microseconds) / 1e6);
  }
  if (wire == nullptr) return;
  out.gauge("pawl_http_connections", "Open connections.").sample(number(wire->connections));
  out.counter("pawl_http_accepted_total", "Connections accepted.").sample(number(wire->accepted));
  out.counter("pawl_http_refused_total", "Connections refused because of a limit.")
      .sample(number(wire->refused));
  out.counter("pawl_http_broken_total", "Requests that were malformed, too large or too slow.")
      .sample(number(wire->broken));
}

void write_quotas(MetricsText& out, const std::vector<std::pair<std::string, const Quota*>>& quotas) {
  out.counter("pawl_limited_total", "Connections and event streams refused, by limit.");
  for (const auto& [what, counted] : quotas) {
    for (std::size_t i = 0; i < Quota::kLimitNames.size(); ++i) {
      const auto refused = counted->refused(static_cast<Quota::Limit>(i));
      out.sample({{"what", what}, {"limit", std::string(Quota::kLimitNames[i])}},
                 static_cast<double>(refused));
    }
  }
}

void write_flows(MetricsText& out, const Flows& flows) {
  out.counter("pawl_flow_steps_total", "Attempts at flow steps by outcome.");
  for (const auto& [flow, step, outcome, count] : flows.counts()) {
    if (!step.empty())
      out.sample({{"flow", flow}, {"step", step}, {"outcome", outcome}}, static_cast<double>(count));
  }
}

void write_process(MetricsText& out) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  out.counter("process_cpu_seconds_total", "CPU time used.")
      .sample(seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  out.gauge("process_resident_memory_bytes", "Resident memory.")
      .sample(static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)));
  std::error_code failure;
  const std::filesystem::directory_iterator descriptors("/proc/self/fd", failure);
  out.gauge("process_open_fds", "Open file descriptors.")
      .sample(failure ? 0 : static_cast<double>(std::distance(begin(descriptors), end(descriptors))));
  rlimit most{};
  getrlimit(RLIMIT_NOFILE, &most);
  out.gauge("process_max_fds", "Limit of open file descriptors.").sample(static_cast<double>(most.rlim_cur));
}

}  // namespace

std::string metrics(Engine& engine, const Router& router, const EventFeed& feed, const WireCounters* wire,
                    const std::vector<System*>& systems, const Flows* flows,
                    const std::vector<std::pair<std::string, const Quota*>>& quotas) {
  MetricsText out;
  out.gauge("pawl_build_info", "Version of the server.").sample({{"version", PAWL_VERSION}}, 1);
  write_engine(out, engine, feed);
  if (flows != nullptr) write_flows(out, *flows);
  write_http(out, router, wire);
  write_quotas(out, quotas);
  write_process(out);
  for (auto* system : systems) system->write_metrics(engine, out);
  return out.text();
}

}  // namespace server
}  // namespace pawl
