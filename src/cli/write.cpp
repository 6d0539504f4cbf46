// SPDX-License-Identifier: Apache-2.0
// The verbs that change instances: create and send.
#include <fmt/format.h>

#include "cli/input.hpp"
#include "cli/output.hpp"
#include "cli/show.hpp"
#include "cli/verbs.hpp"
#include "pawl/http.hpp"

namespace pawl::cli {
namespace {

int change(const Common& common, const std::string& target, Result<std::string> body,
           const std::string& given) {
  if (!body) return report(body.error());
  auto client = open_client(common.source);
  if (!client) return report(client.error());
  const auto answer =
      client->call_once({.method = "POST", .target = target, .body = *std::move(body)}, request_key(given));
  return present(answer ? parse_answer(*answer) : fail(answer.error()), common.json, show_instance);
}

}  // namespace

int run_create(const Common& common, const WriteArguments& arguments) {
  const auto data = read_json(arguments.json, "the data");
  if (!data) return report(data.error());
  JsonWriter out;
  out.begin_object().key("key").string(arguments.instance.key).key("data").embed(*data);
  if (!arguments.partition.empty()) out.key("partition").string(arguments.partition);
  out.end_object();
  return change(common, "/v1/instances/" + http::encode_percent(arguments.instance.machine), out.take(),
                arguments.idempotency_key);
}

int run_send(const Common& common, const WriteArguments& arguments) {
  const auto payload = read_json(arguments.json, "the payload");
  if (!payload) return report(payload.error());
  JsonWriter out;
  out.begin_object().key("event").string(arguments.event).key("payload").embed(*payload);
  if (arguments.expect_version) out.key("expected_version").integer(*arguments.expect_version);
  out.end_object();
  return change(common,
                fmt::format("/v1/instances/{}/{}/events", http::encode_percent(arguments.instance.machine),
                            http::encode_percent(arguments.instance.key)),
                out.take(), arguments.idempotency_key);
}

}  // namespace pawl::cli
