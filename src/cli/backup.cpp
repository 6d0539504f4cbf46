// SPDX-License-Identifier: Apache-2.0
// pawl backup: a consistent copy, made by a running server or read from a store.
#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"
#include "store/store.hpp"

namespace pawl::cli {
namespace {

constexpr auto kPause = std::chrono::milliseconds(200);

/// The server writes the copy; this waits for it.
Result<JsonDocument> on_server(const SourceOptions& options, const std::string& name) {
  PAWL_TRY(auto client, open_client(options));
  JsonWriter out;
  out.begin_object();
  if (!name.empty()) out.key("name").string(name);
  PAWL_TRY(auto asked, out.end_object().take());
  PAWL_TRY(auto body, client.call({.method = "POST", .target = "/v1/backup", .body = std::move(asked)}));
  ProgressBar bar("backup");
  while (true) {
    PAWL_TRY(auto document, parse_answer(body));
    const auto state = text_of(document.root(), "state");
    if (state == "failed") {
      return fail(Code::store_io, fmt::format("the backup failed: {}", text_of(document.root(), "error")));
    }
    if (state == "done") return document;
    if (state != "running") {
      return fail(Code::store_io, "the server restarted during the backup; run it again");
    }
    const auto progress = document.root().find("progress");
    bar.show(progress ? progress->as_number().value_or(0) : 0);
    std::this_thread::sleep_for(kPause);
    PAWL_TRY(body, client.get("/v1/backup"));
  }
}

Result<JsonDocument> of_store(const std::string& given, const std::string& target) {
  if (target.empty())
    return fail(Code::invalid_argument, "--store needs a target: pawl backup --store PATH TARGET");
  PAWL_TRY(const auto store,
           open_store_at({.where = store_address(given), .read_only = true, .create = false}));
  ProgressBar bar("backup");
  PAWL_CHECK(store->backup(target, [&](double done) { bar.show(done); }));
  JsonWriter out;
  out.begin_object().key("file").string(target).key("state").string("done").key("progress").number(1);
  PAWL_TRY(const auto text, out.end_object().take());
  return parse_answer(text);
}

}  // namespace

int run_backup(const Common& common, const BackupArguments& arguments) {
  const auto made = common.source.store.empty() ? on_server(common.source, arguments.target)
                                                : of_store(common.source.store, arguments.target);
  return present(made, common.json,
                 [](JsonValue backup) { fmt::print("{}\n", printable(text_of(backup, "file"))); });
}

}  // namespace pawl::cli
