// SPDX-License-Identifier: Apache-2.0
#include "images/routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "images/flows.hpp"
#include "images/garbage.hpp"
#include "images/names.hpp"
#include "images/views.hpp"
#include "pawl/names.hpp"
#include "support/body.hpp"

namespace pawl::images {
namespace {

using http::Method;
using http::Role;
using systems::read_body;

constexpr std::size_t kMostImages = 500;

Query query_of(Engine& engine) {
  return [&engine](const Sql& statement) { return engine.query(statement); };
}

struct ProcessBody {
  std::string url{};  ///< s3://bucket/key or file:///path, in place of bucket and s3_key
  std::string s3_key{};
  std::string bucket{};
  std::string image_id{};
  std::string snapshot_name{};
  std::int64_t device_size = 0;
  std::string pool_name{};
};

/// Takes the URL apart. Error: `invalid_argument`.
Result<void> apply_url(ProcessBody& body) {
  constexpr std::string_view kS3 = "s3://";
  if (body.url.empty() == body.s3_key.empty()) {
    return fail(Code::invalid_argument, "one of url (s3://bucket/key or file:///path) and s3_key is needed");
  }
  if (body.url.empty()) return {};
  if (is_file(body.url)) {
    body.s3_key = body.url;
    return {};
  }
  const auto slash = body.url.find('/', kS3.size());
  if (!body.url.starts_with(kS3) || slash == std::string::npos || slash == kS3.size()) {
    return fail(Code::invalid_argument,
                fmt::format("url \"{}\": it is s3://bucket/key or file:///path", body.url.substr(0, 256)));
  }
  if (!body.bucket.empty()) return fail(Code::invalid_argument, "the url names the bucket already");
  body.bucket = body.url.substr(kS3.size(), slash - kS3.size());
  body.s3_key = body.url.substr(slash + 1);
  return {};
}

/// An empty one means the usual. Error: `invalid_argument`.
Result<void> check_snapshot_field(const std::string& name) {
  if (name.empty()) return {};
  return check_snapshot_name(name);
}

/// The id of the image that a request means: an object that is known keeps the one that it has. Errors:
/// `invalid_argument`; `volume_exists` if the object has another id, or the id another object.
Result<std::string> id_for(const ImagesView& view, const ProcessBody& body, const ObjectName& name) {
  const auto query = query_of(view.engine);
  PAWL_TRY(const auto row, find_object(query, name.bucket, body.s3_key));
  if (row) {
    if (body.image_id.empty() || body.image_id == row->image_id) return row->image_id;
    return fail(Code::volume_exists, fmt::format("this object is image \"{}\" already", row->image_id));
  }
  auto id = body.image_id.empty() ? image_id_of(name.bucket, body.s3_key) : body.image_id;
  PAWL_CHECK(check_image_id(id));
  PAWL_TRY(const auto other, find_image(query, id));
  if (!other) return id;
  return fail(Code::volume_exists,
              fmt::format("image \"{}\" is another object, \"{}\", already", id, other->s3_key));
}

Result<http::Response> started(const ImagesView&, const std::string& image_id, const Run& run) {
  return http::json(encode(StartedView{.image_id = image_id,
                                       .flow = run.flow,
                                       .run_ulid = run.ulid,
                                       .state = std::string(enum_name(run.state)),
                                       .attached = run.attached}),
                    202);
}

/// A run that was under way already has to be for the same snapshot as the one that is asked for, and for the
/// same pool where one is. Error: `volume_busy`.
template <class T>
Result<T> check_attached(const ImagesView& view, const Run& run, const T& wanted, bool for_its_pool = false) {
  if (!run.attached) return wanted;
  PAWL_TRY(auto running, decode<T>(run.request));
  if constexpr (requires { wanted.pool_name; }) {
    const auto pool = view.services.named_pool(running.pool_name);
    if (for_its_pool && pool && *pool != wanted.pool_name) {
      return fail(Code::volume_busy,
                  fmt::format("{} of image \"{}\" is under way for another pool; wait for it", run.flow,
                              wanted.image_id));
    }
  }
  if (running.snapshot_name == wanted.snapshot_name) return running;
  return fail(Code::volume_busy,
              fmt::format("{} of image \"{}\" is under way for another snapshot; wait for it", run.flow,
                          wanted.image_id));
}

Result<http::Response> process(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(auto body, read_body<ProcessBody>(request, {"url", "s3_key", "bucket", "image_id", "snapshot_name",
                                                       "device_size", "pool_name"}));
  PAWL_CHECK(apply_url(body));
  PAWL_CHECK(check_snapshot_field(body.snapshot_name));
  if (body.device_size != 0) PAWL_CHECK(check_volume_size(body.device_size));
  PAWL_CHECK(view.services.named_pool(body.pool_name));
  PAWL_TRY(const auto name, view.services.object(body.bucket, body.s3_key));
  PAWL_TRY(const auto id, id_for(view, body, name));
  PAWL_TRY(const auto pool, view.services.pool_for(query_of(view.engine), id, body.pool_name));
  const ProcessRequest wanted{.s3_key = body.s3_key,
                              .image_id = id,
                              .bucket = name.bucket,
                              .snapshot_name = body.snapshot_name,
                              .device_size = body.device_size,
                              .pool_name = pool};
  PAWL_TRY(const auto text, encode(wanted));
  PAWL_TRY(const auto run, view.flows.start(kProcess, text, {.id = id}));
  PAWL_TRY(const auto running, check_attached(view, run, wanted, !body.pool_name.empty()));
  // The image may be under way and not yet in the tables.
  if (running.s3_key != wanted.s3_key || running.bucket != wanted.bucket) {
    return fail(Code::volume_exists,
                fmt::format("image \"{}\" is another object, \"{}\", already", id, running.s3_key));
  }
  return started(view, id, run);
}

/// How much each volume takes; empty if the pool is not attached: the image is shown all the same.
std::vector<VolumeUsage> usage_of(const ImagesView& view, const std::string& image_id) {
  const auto place = find_pool_of(query_of(view.engine), image_id);
  const auto pool = view.services.attached_pool(place ? place->value_or("") : "");
  if (!pool) return {};
  auto usage = (*pool)->usage();
  return usage ? *std::move(usage) : std::vector<VolumeUsage>{};
}

Result<http::Response> list(const ImagesView& view, const http::Request& request) {
  const auto query = query_of(view.engine);
  PAWL_TRY(auto rows, list_images(query));
  std::erase_if(rows, [&](const ImageRow& row) { return row.image_id <= request.parameter("after"); });
  ImageList page;
  for (const auto& row : rows) {
    if (page.images.size() == kMostImages) {
      page.next = page.images.back().image_id;
      break;
    }
    PAWL_TRY(auto image, view_image(view.services, row, query, view.flows, {}));
    page.images.push_back(std::move(image));
  }
  return http::json(encode(page));
}

Result<ImageRow> known_image(const ImagesView& view, const http::Request& request) {
  const auto& id = request.parameter("image");
  PAWL_CHECK(check_image_id(id));
  PAWL_TRY(auto row, find_image(query_of(view.engine), id));
  if (!row) return fail(Code::unknown_instance, fmt::format("there is no image \"{}\"", id));
  return *std::move(row);
}

Result<http::Response> show(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(const auto row, known_image(view, request));
  PAWL_TRY(const auto image,
           view_image(view.services, row, query_of(view.engine), view.flows, usage_of(view, row.image_id)));
  return http::json(encode(image));
}

struct SnapshotBody {
  std::string snapshot_name{};
  std::string pool_name{};  ///< of an activation
};

Result<http::Response> activate(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(const auto row, known_image(view, request));
  PAWL_TRY(const auto body, read_body<SnapshotBody>(request, {"snapshot_name", "pool_name"}));
  PAWL_CHECK(check_snapshot_field(body.snapshot_name));
  PAWL_TRY(const auto pool, view.services.pool_for(query_of(view.engine), row.image_id, body.pool_name));
  const ActivateRequest wanted{
      .image_id = row.image_id, .snapshot_name = body.snapshot_name, .pool_name = pool};
  PAWL_TRY(const auto text, encode(wanted));
  PAWL_TRY(const auto run, view.flows.start(kActivate, text, {.id = row.image_id}));
  PAWL_CHECK(check_attached(view, run, wanted, !body.pool_name.empty()));
  return started(view, row.image_id, run);
}

Result<http::Response> deactivate(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(const auto row, known_image(view, request));
  PAWL_TRY(const auto body, read_body<SnapshotBody>(request, {"snapshot_name"}));
  PAWL_CHECK(check_snapshot_field(body.snapshot_name));
  const DeactivateRequest wanted{.image_id = row.image_id, .snapshot_name = body.snapshot_name};
  PAWL_TRY(const auto text, encode(wanted));
  PAWL_TRY(const auto run, view.flows.start(kDeactivate, text, {.id = row.image_id}));
  PAWL_CHECK(check_attached(view, run, wanted));
  return started(view, row.image_id, run);
}

/// An image whose row was lost is known by its volumes, too, and can be removed.
Result<http::Response> remove(const ImagesView& view, const http::Request& request) {
  const auto& id = request.parameter("image");
  PAWL_CHECK(check_image_id(id));
  PAWL_TRY(const auto volumes, list_volumes(query_of(view.engine), id));
  if (volumes.empty()) PAWL_CHECK(known_image(view, request));
  PAWL_TRY(const auto text, encode(RemoveRequest{.image_id = id}));
  PAWL_TRY(const auto run, view.flows.start(kRemove, text, {.id = id}));
  return started(view, id, run);
}

Result<http::Response> show_pool(const ImagesView& view, std::string_view pool_name) {
  PAWL_TRY(const auto name, view.services.named_pool(pool_name));
  PAWL_TRY(const auto pool, view_pool(view.services, name, query_of(view.engine)));
  return http::json(encode(pool));
}

struct PoolBody {
  std::int64_t extend = 0;  ///< bytes
  std::string pool_name{};
};

/// Makes the pool if absent, and extends it if requested.
Result<http::Response> set_up_pool(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(const auto body, read_body<PoolBody>(request, {"extend", "pool_name"}));
  PAWL_TRY(const auto name, view.services.named_pool(body.pool_name));
  const bool was_detached = view.services.pool_state(name) == PoolState::detached;
  PAWL_TRY(auto* pool, view.services.attach_pool(name));
  // As after a restart of the machine: what should be active is made so again.
  if (was_detached) {
    PAWL_TRY(const auto text, encode(ReactivateRequest{.pool_name = name}));
    PAWL_CHECK(view.flows.start(kReactivate, text, {.id = reactivation_id(name)}));
  }
  if (body.extend < 0) return fail(Code::invalid_argument, "$.extend: a number of bytes");
  if (body.extend > 0) PAWL_CHECK(pool->extend(static_cast<std::uint64_t>(body.extend)));
  return show_pool(view, body.pool_name);
}

/// Whether a run may use the pool. All do but the reactivation of another one, which goes on for a while
/// where that pool cannot be attached.
bool may_use(const ImagesView& view, const Run& run, const std::string& pool) {
  if (run.flow != kReactivate) return true;
  const auto request = decode<ReactivateRequest>(run.request);
  if (!request) return true;
  const auto named = view.services.named_pool(request->pool_name);
  return !named || *named == pool;
}

/// No run that may need the pool is unfinished, whatever it waits for. Error: `volume_busy`.
Result<void> check_no_runs(const ImagesView& view, const std::string& pool) {
  constexpr std::size_t kMostRuns = 100;
  for (const auto flow : kAllFlows) {
    PAWL_TRY(const auto page,
             view.flows.list(
                 {.flow = std::string(flow), .finished = false, .newest_first = true, .limit = kMostRuns}));
    for (const auto& run : page.runs) {
      if (!may_use(view, run, pool)) continue;
      return fail(Code::volume_busy,
                  fmt::format("{} \"{}\" has not ended; cancel it, or wait for it", flow, run.id));
    }
  }
  return {};
}

Result<http::Response> detach_pool(const ImagesView& view, const http::Request& request) {
  PAWL_TRY(const auto name, view.services.named_pool(request.parameter("pool_name")));
  PAWL_CHECK(view.services.detach_pool(name, [&] { return check_no_runs(view, name); }));
  const auto& options = view.services.pool_options(name);
  return http::json(encode(DetachedView{.pool_name = view.services.pool_title(name),
                                        .backend = std::string(enum_name(options.kind)),
                                        .root = options.root}));
}

Result<http::Response> look_at_garbage(const ImagesView& view) {
  const auto get = [&](std::string_view flow, std::string_view id) { return view.flows.get(flow, id); };
  PAWL_TRY(const auto pools, attached_pools(view.services));
  PAWL_TRY(const auto garbage,
           find_garbage(view.services, pools, query_of(view.engine),
                        [&](std::string_view image) { return is_worked_on(image, get); }));
  return http::json(encode(view_garbage(view.services, garbage)));
}

Result<http::Response> collect_garbage(const ImagesView& view) {
  PAWL_TRY(const auto run, view.flows.start(kCollect, "{}", {.id = "all"}));
  return started(view, "", run);
}

constexpr const char* kImageSchema = R"({"type":"object","required":["image_id","bucket","s3_key","runs"]})";
constexpr const char* kStartedSchema =
    R"({"type":"object","required":["image_id","flow","run_ulid","state","attached"],"properties":{
    "image_id":{"type":"string"},"flow":{"type":"string"},"run_ulid":{"type":"string"},
    "state":{"type":"string"},"attached":{"type":"boolean"}}})";
constexpr const char* kActivateBody =
    R"({"type":"object","properties":{"snapshot_name":{"type":"string"},"pool_name":{"type":"string"}},
        "additionalProperties":false})";
constexpr const char* kSnapshotBody =
    R"({"type":"object","properties":{"snapshot_name":{"type":"string"}},"additionalProperties":false})";

std::vector<http::Route> reading_routes(const ImagesView& view) {
  return {
      {.path = "/v1/images",
       .id = "images_list",
       .summary = "Images, by their ids, with the newest runs of each",
       .query = {{.name = "after", .description = "list the images after this one"}},
       .response = R"({"type":"object","required":["images"],"properties":{"images":{"type":"array"}}})",
       .run = [view](const http::Request& request) { return list(view, request); }},
      {.path = "/v1/images/{image}",
       .id = "images_get",
       .summary = "One image: its object, volume, snapshots and runs",
       .response = kImageSchema,
       .errors = {Code::unknown_instance},
       .run = [view](const http::Request& request) { return show(view, request); }},
      {.path = "/v1/image-pool",
       .id = "images_pool",
       .summary = "How full a pool of volumes is, and all the pools",
       .query = {{.name = "pool_name", .description = "the pool; default: the default one"}},
       .response = R"({"type":"object","required":["backend","bytes","used","volumes"]})",
       .errors = {Code::invalid_argument, Code::backend_unavailable, Code::volume_failed},
       .run =
           [view](const http::Request& request) { return show_pool(view, request.parameter("pool_name")); }},
      {.path = "/v1/image-garbage",
       .id = "images_garbage",
       .summary = "Garbage: what is only in the tables or only in the pool, or unreferenced",
       .response = R"({"type":"object","required":["garbage"],"properties":{"garbage":{"type":"array"}}})",
       .errors = {Code::backend_unavailable, Code::volume_failed, Code::store_io},
       .run = [view](const http::Request&) { return look_at_garbage(view); }},
      {.path = "/v1/image-doctor",
       .id = "images_doctor",
       .summary = "Checks of what the system needs",
       .response = R"({"type":"object","required":["healthy","checks"]})",
       .run = [view](const http::Request&) { return http::json(encode(diagnose(view.services))); }},
  };
}

std::vector<http::Route> changing_routes(const ImagesView& view) {
  return {
      {.method = Method::post,
       .path = "/v1/images",
       .id = "images_process",
       .summary = "Download, unpack and activate an image; a second call finds the unfinished run",
       .role = Role::operator_,
       .request = R"({"type":"object","properties":{"url":{"type":"string"},"s3_key":{"type":"string"},
           "bucket":{"type":"string"},"image_id":{"type":"string"},"snapshot_name":{"type":"string"},
           "device_size":{"type":"integer"},"pool_name":{"type":"string"}},"additionalProperties":false})",
       .response = kStartedSchema,
       .success = 202,
       .errors = {Code::invalid_argument, Code::volume_exists, Code::volume_busy},
       .run = [view](const http::Request& request) { return process(view, request); }},
      {.method = Method::post,
       .path = "/v1/images/{image}/activate",
       .id = "images_activate",
       .summary = "Take a snapshot of an unpacked image, or activate one again",
       .role = Role::operator_,
       .request = kActivateBody,
       .response = kStartedSchema,
       .success = 202,
       .errors = {Code::invalid_argument, Code::unknown_instance, Code::volume_exists, Code::volume_busy},
       .run = [view](const http::Request& request) { return activate(view, request); }},
      {.method = Method::post,
       .path = "/v1/images/{image}/deactivate",
       .id = "images_deactivate",
       .summary = "Deactivate the snapshots of an image; they are kept",
       .role = Role::operator_,
       .request = kSnapshotBody,
       .response = kStartedSchema,
       .success = 202,
       .errors = {Code::invalid_argument, Code::unknown_instance, Code::volume_busy},
       .run = [view](const http::Request& request) { return deactivate(view, request); }},
      {.method = Method::remove,
       .path = "/v1/images/{image}",
       .id = "images_remove",
       .summary = "Remove an image with its snapshots, its volume and its archive",
       .role = Role::operator_,
       .response = kStartedSchema,
       .success = 202,
       .errors = {Code::unknown_instance},
       .run = [view](const http::Request& request) { return remove(view, request); }},
      {.method = Method::post,
       .path = "/v1/image-pool",
       .id = "images_setup_pool",
       .summary = "Make the pool, attach it again after a restart of the machine, or extend it",
       .role = Role::admin,
       .request =
           R"({"type":"object","properties":{"extend":{"type":"integer"},"pool_name":{"type":"string"}},
               "additionalProperties":false})",
       .response = R"({"type":"object","required":["backend","bytes","used","volumes"]})",
       .errors = {Code::invalid_argument, Code::backend_unavailable, Code::volume_failed},
       .run = [view](const http::Request& request) { return set_up_pool(view, request); }},
      {.method = Method::post,
       .path = "/v1/image-pool/detach",
       .id = "images_detach_pool",
       .summary = "Deactivate all volumes and give the pool's devices back, until it is set up again",
       .role = Role::admin,
       .query = {{.name = "pool_name", .description = "the pool; default: the default one"}},
       .response = R"({"type":"object","required":["backend","root"]})",
       .errors = {Code::invalid_argument, Code::volume_busy, Code::backend_unavailable, Code::volume_failed},
       .run = [view](const http::Request& request) { return detach_pool(view, request); }},
      {.method = Method::post,
       .path = "/v1/image-garbage",
       .id = "images_collect",
       .summary = "Remove the garbage",
       .role = Role::operator_,
       .response = kStartedSchema,
       .success = 202,
       .run = [view](const http::Request&) { return collect_garbage(view); }},
  };
}

}  // namespace

std::vector<http::Route> image_routes(const ImagesView& view) {
  auto routes = reading_routes(view);
  auto more = changing_routes(view);
  routes.insert(routes.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return routes;
}

}  // namespace pawl::images
