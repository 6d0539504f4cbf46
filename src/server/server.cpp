// SPDX-License-Identifier: Apache-2.0
#include "pawl/server.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>
#include <vector>

#include "pawl/auth.hpp"
#include "pawl/flows.hpp"
#include "pawl/json.hpp"
#include "pawl/system.hpp"
#include "server/backups.hpp"
#include "server/dashboard.hpp"
#include "server/event_feed.hpp"
#include "server/listen.hpp"
#include "server/origin.hpp"
#include "server/quota.hpp"
#include "server/router.hpp"
#include "server/routes.hpp"
#include "server/transport.hpp"
#include "server/watch.hpp"

namespace pawl {
namespace {

/// Without auth, a web page must not reach the server through a host name of its own (DNS rebinding), and a
/// caller must not be able to run programs as the server's user.
Result<void> check_without_auth(const ServerOptions& options, const http::Request& request,
                                const http::Route& route) {
  if (!options.allow_insecure) PAWL_CHECK(server::check_local_host(request));
  if (!route.runs_programs || options.allow_programs_without_auth) return {};
  return fail(Code::forbidden,
              fmt::format("{} {} runs programs on this machine, which needs auth (auth.enabled: true); "
                          "allow_programs_without_auth: true lets everybody who reaches the server do it",
                          http::name(route.method), route.path));
}

/// A stream that holds a slot of the quota.
class CountedStream final : public http::Stream {
 public:
  CountedStream(std::shared_ptr<http::Stream> stream, std::shared_ptr<server::QuotaSlot> slot)
      : stream_(std::move(stream)), slot_(std::move(slot)) {}
  void open(std::function<void()> ready) override { stream_->open(std::move(ready)); }
  bool take(std::string& out) override { return stream_->take(out); }
  void idle(std::string& out) override { stream_->idle(out); }
  void close() override { stream_->close(); }

 private:
  const std::shared_ptr<http::Stream> stream_;
  const std::shared_ptr<server::QuotaSlot> slot_;
};

/// /v1/me of a server without auth.
http::Route anonymous_identity_route() {
  return {.path = "/v1/me",
          .id = "who_am_i",
          .summary = "The caller's user and role",
          .role = http::Role::anyone,
          .response = server::schema_ref("Identity"),
          .run_fast = [](const http::Request& request) -> Result<http::Response> {
            JsonWriter out;
            out.begin_object().key("user").string(request.user);
            out.key("role").string(http::name(request.role)).end_object();
            return http::json(out.take());
          }};
}

}  // namespace

struct Server::Impl {
  Impl(Runtime& with, Engine& on, ServerOptions how)
      : runtime(with),
        engine(on),
        options(std::move(how)),
        feed(with, on, options.limits, options.log),
        router(with, options.handler_threads, options.log) {
    if (!options.backups.empty()) backups.emplace(with, on, options.backups, options.backups_elsewhere);
  }
  ~Impl() {
    if (options.auth != nullptr) options.auth->on_change(nullptr);
    waits.close();
    if (transport) transport->stop();
  }

  Result<void> add_routes();
  void guard();
  Result<void> assign_connection(const http::Request& request);
  /// What limits per user count this for. Without auth there are no users.
  std::string identity_of(const http::Request& request) const {
    if (options.auth == nullptr) return {};
    return request.identity.empty() ? request.user : request.identity;
  }
  Result<std::shared_ptr<http::Stream>> admit_stream(std::shared_ptr<http::Stream> stream,
                                                     std::shared_ptr<const http::Request> request,
                                                     const http::Route& route);
  Result<void> add_own_routes();
  Result<http::Response> list_systems() const;
  Result<http::Response> system_script(const http::Request& request) const;

  Runtime& runtime;
  Engine& engine;
  ServerOptions options;
  std::atomic<bool> draining{false};
  std::vector<std::pair<System*, std::optional<Page>>> pages;
  std::string document;  // OpenAPI
  const std::shared_ptr<server::Quota> connections = std::make_shared<server::Quota>(
      "connections", server::QuotaLimits{.all = options.limits.connections,
                                         .per_address = options.limits.connections_per_address,
                                         .per_user = options.limits.connections_per_user,
                                         .reserved = options.limits.connections_reserved});
  const std::shared_ptr<server::Quota> streams = std::make_shared<server::Quota>(
      "event streams", server::QuotaLimits{.all = options.limits.streams,
                                           .per_address = options.limits.streams_per_address,
                                           .per_user = options.limits.streams_per_user,
                                           .reserved = options.limits.streams_reserved});
  server::EventFeed feed;
  std::optional<server::Backups> backups;
  server::Waits waits;
  std::optional<server::Watch> watch;  // only with auth
  server::Router router;
  std::unique_ptr<server::Transport> transport;
};

Result<http::Response> Server::Impl::list_systems() const {
  JsonWriter out;
  out.begin_object().key("systems").begin_array();
  for (const auto& [system, page] : pages) {
    out.begin_object().key("name").string(system->name()).key("summary").string(system->summary());
    if (page) {
      out.key("page").begin_object().key("title").string(page->title);
      out.key("script").string(fmt::format("/systems/{}/page.js", system->name())).end_object();
    }
    out.end_object();
  }
  out.end_array().end_object();
  return http::json(out.take());
}

Result<http::Response> Server::Impl::system_script(const http::Request& request) const {
  for (const auto& [system, page] : pages) {
    if (page && system->name() == request.parameter("system")) {
      return http::Response{.body = page->script, .content_type = "text/javascript"};
    }
  }
  return fail(Code::unknown_route, fmt::format("no system \"{}\" has a page", request.parameter("system")));
}

Result<void> Server::Impl::add_own_routes() {
  PAWL_CHECK(router.add({.path = "/v1/systems",
                         .id = "list_systems",
                         .summary = "The systems that run here, and their pages",
                         .response = server::schema_ref("Systems"),
                         .run_fast = [this](const http::Request&) { return list_systems(); }}));
  PAWL_CHECK(
      router.add({.path = "/systems/{system}/page.js",
                  .id = "get_page",
                  .summary = "The script of a system's page",
                  .content_type = "text/javascript",
                  .errors = {Code::unknown_route},
                  .run_fast = [this](const http::Request& request) { return system_script(request); }}));
  PAWL_CHECK(router.add({.path = "/metrics",
                         .id = "metrics",
                         .summary = "Metrics in Prometheus' text format",
                         .content_type = "text/plain",
                         .run = [this](const http::Request&) -> Result<http::Response> {
                           return http::Response{
                               .body = server::metrics(
                                   engine, router, feed, transport ? &transport->counters() : nullptr,
                                   options.systems, options.flows,
                                   {{"connections", connections.get()}, {"streams", streams.get()}}),
                               .content_type = "text/plain; version=0.0.4; charset=utf-8"};
                         }}));
  return router.add({.path = "/v1/openapi.json",
                     .id = "openapi",
                     .summary = "This document",
                     .role = http::Role::anyone,
                     .response = R"({"type":"object"})",
                     .run_fast = [this](const http::Request&) -> Result<http::Response> {
                       return http::Response{.body = document};
                     }});
}

Result<void> Server::Impl::add_routes() {
  std::vector<std::vector<http::Route>> all{server::machine_routes(engine), server::instance_routes(engine),
                                            server::event_routes(feed), server::operating_routes(engine),
                                            server::health_routes(engine, draining)};
  if (options.flows != nullptr) {
    all.push_back(server::flow_routes(engine, *options.flows, waits));
    all.push_back(server::run_routes(*options.flows, waits));
    all.push_back(server::lease_routes(*options.flows, waits));
  }
  if (backups) all.push_back(backups->routes());
  if (options.auth != nullptr) all.push_back(options.auth->routes(engine));
  for (auto* system : options.systems) {
    pages.emplace_back(system, system->page());
    all.push_back(system->routes(engine));
  }
  for (auto& routes : all) {
    for (auto& route : routes) PAWL_CHECK(router.add(std::move(route)));
  }
  PAWL_CHECK(add_own_routes());
  if (options.auth == nullptr) PAWL_CHECK(router.add(anonymous_identity_route()));
  PAWL_TRY(document, server::openapi(router.entries()));
  return {};
}

/// Routes for anyone do not assign the connection, so that operators can log in on a reserved one. It is
/// closed after such an answer.
Result<void> Server::Impl::assign_connection(const http::Request& request) {
  const auto connection = request.connection.lock();
  if (!connection || request.role == http::Role::anyone) return {};
  return connections->assign(*connection, identity_of(request), request.role >= http::Role::operator_);
}

Result<std::shared_ptr<http::Stream>> Server::Impl::admit_stream(std::shared_ptr<http::Stream> stream,
                                                                 std::shared_ptr<const http::Request> request,
                                                                 const http::Route& route) {
  if (const auto connection = request->connection.lock()) {
    auto slot = streams->acquire(connection->address());
    const auto assigned =
        slot ? streams->assign(**slot, identity_of(*request), request->role >= http::Role::operator_)
             : fail(slot.error());
    if (!assigned) {
      stream->close();
      return fail(assigned.error());
    }
    stream = std::make_shared<CountedStream>(std::move(stream), *std::move(slot));
  }
  return watch ? watch->over(std::move(stream), std::move(request), route) : std::move(stream);
}

void Server::Impl::guard() {
  if (options.auth != nullptr) {
    router.authenticate_with(
        [this, auth = options.auth](http::Request& request, const http::Route& route) -> Result<void> {
          PAWL_CHECK(auth->authenticate(request, route));
          return assign_connection(request);
        });
  } else {
    router.authenticate_with([this](http::Request& request, const http::Route& route) -> Result<void> {
      request.user = "anonymous";
      request.role = http::Role::admin;
      PAWL_CHECK(check_without_auth(options, request, route));
      return assign_connection(request);
    });
  }
  router.fall_back_to(server::dashboard);
  router.audit_with([log = options.log](const http::Request& request, const http::Route& route,
                                        const http::Response& response) {
    std::vector<LogField> fields{{"user", request.user},
                                 {"from", request.remote},
                                 {"did", route.id},
                                 {"path", request.path},
                                 {"status", response.status}};
    for (const auto& [key, value] : response.audit) fields.push_back({key, value});
    log.always("audit", fields);
  });
  router.admit_streams_with([this](std::shared_ptr<http::Stream> stream,
                                   std::shared_ptr<const http::Request> request, const http::Route& route) {
    return admit_stream(std::move(stream), std::move(request), route);
  });
  if (options.auth == nullptr) return;
  watch.emplace(runtime, options.limits.heartbeat,
                [this](const http::Request& request, const http::Route& route) -> Result<void> {
                  auto again = request;
                  PAWL_CHECK(options.auth->authenticate_again(again, route));
                  return server::check_role(again, route);
                });
  options.auth->on_change([this] { watch->changed(); });
}

Result<std::unique_ptr<Server>> Server::start(Runtime& runtime, Engine& engine, ServerOptions options) {
  PAWL_TRY(const auto address, server::check_listening(options, options.auth != nullptr));
  if (options.auth == nullptr && options.allow_insecure) {
    options.log.warn(
        "any web page can change what this server holds: there is no auth, and with allow_insecure "
        "a page reaches it by a host name of its own (DNS rebinding)",
        {{"hint", "auth.enabled: true"}});
  }
  auto impl = std::make_unique<Impl>(runtime, engine, std::move(options));
  PAWL_CHECK(impl->add_routes());
  impl->guard();
  auto* router = &impl->router;
  PAWL_TRY(impl->transport,
           server::Transport::open(
               {.address = address.host,
                .port = address.port,
                .threads = impl->options.threads,
                .limits = impl->options.limits,
                .connection_quota = impl->connections,
                .certificate = impl->options.certificate,
                .key = impl->options.key,
                .log = impl->options.log},
               [router](http::Request request, std::move_only_function<void(http::Response)> reply) {
                 router->handle(std::move(request), std::move(reply));
               }));
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

std::uint16_t Server::port() const { return impl_->transport->port(); }

http::Response Server::handle(http::Request request) {
  struct Slot {
    Gate gate;
    http::Response response;
  };
  auto slot = std::make_shared<Slot>();
  impl_->router.handle(std::move(request), [slot](http::Response response) {
    slot->response = std::move(response);
    slot->gate.open();
  });
  impl_->runtime.wait(slot->gate);
  if (const auto complete = std::exchange(slot->response.finish, nullptr)) complete(slot->response);
  return std::move(slot->response);
}

Result<void> Server::reload_certificate() { return impl_->transport->reload_certificate(); }

bool Server::drain(Duration most) {
  impl_->draining = true;
  impl_->feed.close();
  impl_->waits.close();
  return impl_->transport->drain(most);
}

}  // namespace pawl
