// SPDX-License-Identifier: Apache-2.0
#include "images/verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "images/flows.hpp"
#include "images/views.hpp"
#include "pawl/codec.hpp"

namespace pawl::images {
namespace {

using http::Method;

constexpr int kSuccess = 0;
constexpr int kFailure = 1;
constexpr int kRunEnded = 7;  // otherwise than well; docs/cli.md
constexpr auto kFrame = std::chrono::milliseconds(250);

std::string image_path(const VerbCall& call, std::string_view more = "") {
  return fmt::format("/v1/images/{}{}", http::encode_percent(call.argument("image")), more);
}

/// 1536 as "1.5 KiB".
std::string bytes_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

template <class T>
Result<T> ask(const VerbCall& call, Method method, std::string target, std::string body = {}) {
  PAWL_TRY(const auto answer, call.ask(method, std::move(target), std::move(body)));
  return decode<T>(answer);
}

struct RunAnswer {
  std::string flow;
  std::string id;
  std::string state;
  bool finished = false;
  std::string step;
  std::string error;
  std::optional<double> progress{};
  std::string progress_text;
  Json response{};
};

std::string run_target(std::string_view flow, std::string_view id) {
  return fmt::format("/v1/flows/{}/runs/{}", flow, http::encode_percent(id));
}

bool went_well(const RunAnswer& run) { return run.state == "done" || run.state == "handed_off"; }

/// How far a run is, with the steps that take long: the others are short.
double part_fraction(const RunAnswer& run) {
  struct Share {
    std::string_view step;
    double begin;
    double size;
  };
  constexpr Share kShares[] = {{"download", 0, 0.8},       {"validate", 0.8, 0.2},  {"store-metadata", 1, 0},
                               {"extract-layers", 0, 1.0}, {"verify-layout", 1, 0}, {"update-db", 1, 0}};
  for (const auto& share : kShares) {
    if (share.step == run.step) return share.begin + share.size * run.progress.value_or(0);
  }
  return run.progress.value_or(0);
}

/// Shows how far the parts of the image are until the run has ended. What has to be done again does not take
/// back what was shown.
Result<RunAnswer> watch(const VerbCall& call, std::string_view flow, const std::string& id) {
  double shown_fraction = 0;
  while (true) {
    PAWL_TRY(auto run, ask<RunAnswer>(call, Method::get, run_target(flow, id)));
    if (run.finished) {
      call.progress("", 0, "");
      return run;
    }
    // Of a chain, the part that goes on at present.
    auto shown = run;
    std::size_t place = 0;
    if (flow == kProcess) {
      for (const auto part : {kDownload, kUnpack, kActivate}) {
        const auto found = ask<RunAnswer>(call, Method::get, run_target(part, id));
        if (!found) break;
        shown = *found;
        if (!found->finished) break;
        ++place;
      }
    }
    const auto parts = flow == kProcess ? 3.0 : 1.0;
    const auto fraction = (static_cast<double>(place) + part_fraction(shown)) / parts;
    shown_fraction = std::max(shown_fraction, fraction);
    call.progress(fmt::format("{} {}", shown.flow, shown.step), shown_fraction,
                  shown.progress_text.empty() ? shown.error : shown.progress_text);
    std::this_thread::sleep_for(kFrame);
  }
}

Result<int> finish(const VerbCall& call, const StartedView& started, const std::string& id) {
  if (call.arguments.contains("no-wait")) {
    if (call.json) {
      PAWL_TRY(const auto text, encode(started));
      fmt::print("{}\n", text);
    } else {
      fmt::print("{} {} {}\n", started.flow, id, started.attached ? "goes on" : "was started");
    }
    return kSuccess;
  }
  PAWL_TRY(const auto run, watch(call, started.flow, id));
  if (call.json) {
    fmt::print("{}\n", run.response.text);
  } else if (went_well(run)) {
    if (started.flow == kProcess || started.flow == kActivate) {
      PAWL_TRY(const auto image, decode<ProcessResponse>(run.response.text));
      fmt::print("{}\n", image.device_path);
      for (const auto& note : image.notes) fmt::print(stderr, "pawl: note: {}\n", note);
    } else {
      PAWL_TRY(const auto report, decode<ActionReport>(run.response.text));
      for (const auto& action : report.actions) fmt::print("{}\n", action);
    }
  }
  if (went_well(run)) return kSuccess;
  fmt::print(stderr, "pawl: {} {} {} at {}: {}\n", started.flow, id, run.state, run.step, run.error);
  return kRunEnded;
}

/// One of the fields that were given, as JSON.
Result<std::string> body_of(const VerbCall& call, std::initializer_list<std::string_view> names) {
  JsonWriter out;
  out.begin_object();
  for (const auto name : names) {
    if (!call.arguments.contains(name)) continue;
    std::string field(name);
    std::ranges::replace(field, '-', '_');
    out.key(field).string(call.argument(name));
  }
  out.end_object();
  return out.take();
}

Result<int> process(const VerbCall& call) {
  PAWL_TRY(const auto body, body_of(call, {"url", "image-id", "snapshot-name", "pool-name"}));
  PAWL_TRY(const auto started, ask<StartedView>(call, Method::post, "/v1/images", body));
  return finish(call, started, started.image_id);
}

Result<int> list(const VerbCall& call) {
  ImageList all;
  do {
    const auto after = all.next.empty() ? std::string() : "?after=" + http::encode_percent(all.next);
    PAWL_TRY(auto page, ask<ImageList>(call, Method::get, "/v1/images" + after));
    all.images.insert(all.images.end(), page.images.begin(), page.images.end());
    all.next = page.next;
  } while (!all.next.empty());
  if (call.json) {
    PAWL_TRY(const auto text, encode(all));
    fmt::print("{}\n", text);
    return kSuccess;
  }
  std::vector<std::vector<std::string>> rows;
  for (const auto& image : all.images) {
    const auto files = image.unpacked ? std::to_string(image.unpacked->file_count) : std::string("-");
    const auto run = image.runs.empty() ? std::string() : image.runs.front().status;
    rows.push_back({image.image_id, image.download_status, image.activation_status,
                    bytes_text(static_cast<std::uint64_t>(image.size_bytes)), files, run, image.s3_key});
  }
  call.table({"IMAGE", "DOWNLOAD", "ACTIVATION", ">SIZE", ">FILES", "RUN", "OBJECT"}, rows);
  return kSuccess;
}

void print_image(const VerbCall& call, const ImageView& image) {
  std::vector<std::vector<std::string>> facts{
      {"image", image.image_id},
      {"object", image.bucket.empty() ? image.s3_key : fmt::format("s3://{}/{}", image.bucket, image.s3_key)},
      {"sha256", image.checksum},
      {"download", fmt::format("{} {}", image.download_status, image.downloaded_at)},
      {"activation", fmt::format("{} {}", image.activation_status, image.activated_at)}};
  if (image.unpacked) {
    const auto& unpacked = *image.unpacked;
    facts.push_back({"volume", fmt::format("{} {}: {} files, {}", unpacked.device_id.number,
                                           unpacked.device_name, unpacked.file_count,
                                           bytes_text(static_cast<std::uint64_t>(unpacked.size_bytes)))});
    if (unpacked.exclusive_bytes) {
      facts.push_back({"takes", fmt::format("{} of its own, {} shared", bytes_text(*unpacked.exclusive_bytes),
                                            bytes_text(unpacked.shared_bytes.value_or(0)))});
    }
  }
  for (const auto& snapshot : image.snapshots) {
    facts.push_back({"snapshot", fmt::format("{} {}", snapshot.snapshot_name,
                                             snapshot.active ? snapshot.device_path : "inactive")});
  }
  for (const auto& run : image.runs) {
    facts.push_back({run.flow, fmt::format("{} at {}{}{}", run.status, run.step,
                                           run.error.empty() ? "" : ": ", run.error)});
  }
  call.table({"WHAT", ""}, facts);
}

Result<int> show(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::get, image_path(call), {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kSuccess;
  }
  PAWL_TRY(const auto image, decode<ImageView>(answer));
  print_image(call, image);
  return kSuccess;
}

Result<int> change(const VerbCall& call, Method method, std::string_view more) {
  PAWL_TRY(auto body, body_of(call, {"snapshot-name", "pool-name"}));
  PAWL_TRY(const auto started, ask<StartedView>(call, method, image_path(call, more),
                                                method == Method::remove ? std::string() : std::move(body)));
  return finish(call, started, started.image_id);
}

Result<int> collect(const VerbCall& call) {
  if (call.arguments.contains("force")) {
    PAWL_TRY(const auto started, ask<StartedView>(call, Method::post, "/v1/image-garbage"));
    return finish(call, started, "all");
  }
  PAWL_TRY(const auto answer, call.ask(Method::get, "/v1/image-garbage", {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kSuccess;
  }
  PAWL_TRY(const auto found, decode<GarbageList>(answer));
  std::vector<std::vector<std::string>> rows;
  for (const auto& garbage : found.garbage) {
    rows.push_back({garbage.kind, to_text(garbage.volume), garbage.image_id, garbage.name});
  }
  call.table({"KIND", ">VOLUME", "IMAGE", "NAME"}, rows);
  if (!rows.empty()) fmt::print(stderr, "pawl: nothing was removed; --force removes this\n");
  return kSuccess;
}

/// "20GiB" as a number. Error: `invalid_argument`.
Result<std::uint64_t> parse_size(const std::string& text) {
  char* end = nullptr;
  const auto value = std::strtoull(text.c_str(), &end, 10);
  const std::string_view unit(end);
  constexpr auto kMost = std::uint64_t{1} << 50U;
  for (const auto& [name, shift] : {std::pair{"GiB", 30}, std::pair{"MiB", 20}, std::pair{"", 0}}) {
    if (unit == name && value > 0 && value <= (kMost >> shift)) return std::uint64_t{value} << shift;
  }
  return fail(Code::invalid_argument, fmt::format("\"{}\" is no size; such as 40GiB or 512MiB", text));
}

std::string pool_query(const VerbCall& call) {
  if (!call.arguments.contains("pool-name")) return {};
  return "?pool_name=" + http::encode_percent(call.argument("pool-name"));
}

Result<int> detach_pool(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::post, "/v1/image-pool/detach" + pool_query(call), {}));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kSuccess;
  }
  PAWL_TRY(const auto pool, decode<DetachedView>(answer));
  fmt::print("detached the {} pool in {}\n", pool.backend, pool.root);
  return kSuccess;
}

Result<int> set_up_pool(const VerbCall& call) {
  JsonWriter body;
  body.begin_object();
  if (call.arguments.contains("extend")) {
    PAWL_TRY(const auto bytes, parse_size(call.argument("extend")));
    body.key("extend").integer(bytes);
  }
  if (call.arguments.contains("pool-name")) body.key("pool_name").string(call.argument("pool-name"));
  body.end_object();
  PAWL_TRY(const auto text, body.take());
  PAWL_TRY(const auto answer, call.ask(Method::post, "/v1/image-pool", text));
  if (call.json) {
    fmt::print("{}\n", answer);
    return kSuccess;
  }
  PAWL_TRY(const auto pool, decode<PoolView>(answer));
  call.table({"BACK END", "ROOT", ">SIZE", ">USED", ">VOLUMES"},
             {{pool.backend, pool.root, bytes_text(pool.bytes), bytes_text(pool.used),
               std::to_string(pool.volumes)}});
  for (const auto& problem : pool.problems) fmt::print(stderr, "pawl: {}\n", problem);
  return pool.problems.empty() ? kSuccess : kFailure;
}

Result<int> examine(const VerbCall& call) {
  PAWL_TRY(const auto answer, call.ask(Method::get, "/v1/image-doctor", {}));
  PAWL_TRY(const auto diagnosis, decode<Diagnosis>(answer));
  if (call.json) {
    fmt::print("{}\n", answer);
  } else {
    std::vector<std::vector<std::string>> rows;
    for (const auto& check : diagnosis.checks) {
      const auto* verdict = check.good ? "good" : check.needed ? "BAD" : "absent";
      rows.push_back({verdict, check.name, check.found, check.help});
    }
    call.table({"", "WHAT", "FOUND", "WHAT WOULD HELP"}, rows);
  }
  return diagnosis.healthy ? kSuccess : kFailure;
}

}  // namespace

std::vector<Verb> image_verbs() {
  const VerbArgument image{.name = "image", .description = "the image's id", .required = true};
  const VerbArgument no_wait{
      .name = "--no-wait", .description = "return as soon as the run is durable", .flag = true};
  const VerbArgument pool{.name = "--pool-name", .description = "the pool; default: images.pool"};
  const VerbArgument snapshot{.name = "--snapshot-name", .description = "the snapshot; default: snap-IMAGE"};
  return {
      {.name = "process",
       .summary = "Download, unpack and activate an image; prints its path",
       .arguments = {{.name = "url", .description = "s3://BUCKET/KEY or file:///PATH", .required = true},
                     {.name = "--image-id", .description = "its id; default: derived from bucket and key"},
                     snapshot,
                     pool,
                     no_wait},
       .run = process},
      {.name = "ls", .summary = "List images", .run = list},
      {.name = "show", .summary = "Show one image", .arguments = {image}, .run = show},
      {.name = "activate",
       .summary = "Take a snapshot of an image, or activate one again; prints its path",
       .arguments = {image, snapshot, pool, no_wait},
       .run = [](const VerbCall& call) { return change(call, Method::post, "/activate"); }},
      {.name = "deactivate",
       .summary = "Deactivate snapshots of an image; they are kept",
       .arguments = {image,
                     {.name = "--snapshot-name", .description = "the snapshot; default: all of them"},
                     no_wait},
       .run = [](const VerbCall& call) { return change(call, Method::post, "/deactivate"); }},
      {.name = "rm",
       .summary = "Remove an image with its snapshots, its volume and its archive",
       .arguments = {image, no_wait},
       .run = [](const VerbCall& call) { return change(call, Method::remove, ""); }},
      {.name = "gc",
       .summary = "List garbage in the pool and the tables; with --force, remove it",
       .arguments = {{.name = "--force", .description = "remove it", .flag = true}, no_wait},
       .run = collect},
      {.name = "setup-pool",
       .summary = "Make the pool of volumes, attach it again, or extend it",
       .arguments = {{.name = "--extend", .description = "its new size, such as 40GiB"}, pool},
       .run = set_up_pool},
      {.name = "detach-pool",
       .summary = "Deactivate all volumes and give the pool's devices back; setup-pool attaches it again",
       .arguments = {pool},
       .run = detach_pool},
      {.name = "doctor", .summary = "Check what the system needs", .run = examine},
  };
}

}  // namespace pawl::images
