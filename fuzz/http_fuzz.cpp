// SPDX-License-Identifier: Apache-2.0
// The whole way of a request: any bytes go through a real session, the router and the engine, on a store in
// memory. Whatever they are, what comes back is a sequence of well-formed answers; a refusal is a problem
// document and has changed nothing; who has no valid token gets at nothing that needs one.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pawl/assert.hpp"
#include "pawl/auth.hpp"
#include "pawl/flows.hpp"
#include "pawl/json.hpp"
#include "pawl/sim_disk.hpp"
#include "pawl/system.hpp"
#include "server/session.hpp"

namespace pawl::server {
namespace {

enum class Door { closed, open, locked };
struct Push {
  int force = 1;
};
struct Pull {};
struct TurnKey {
  Required<std::string> key_id;
};
struct Count {
  int opened = 0;
};
constexpr auto door =
    machine<Door, Count>("door")
        .initial(Door::closed)
        .on<Push>(Door::closed, Door::open, [](Count& count, const Push& push) { count.opened = push.force; })
        .on<Pull>(Door::open, Door::closed)
        .on<TurnKey>(Door::closed, Door::locked)
        .terminal(Door::locked);

constexpr std::int64_t kFresh =
    2000;  // entries after which the world is made anew, so that memory is bounded
constexpr auto kKnown = std::to_array<unsigned>({100, 200, 201, 202, 204, 304, 400, 401, 403, 404, 405,
                                                 408, 409, 410, 413, 415, 422, 429, 431, 503, 504});
/// What is served without a token.
constexpr auto kOpen =
    std::to_array<std::string_view>({"/healthz", "/readyz", "/v1/openapi.json", "/v1/logout", "/v1/me",
                                     "/v1/login", "/v1/login/code", "/v1/password"});

/// The first piece of a live stream, so that a reader who never leaves does not keep the fuzzer waiting.
class FirstPiece final : public http::Stream {
 public:
  explicit FirstPiece(std::shared_ptr<http::Stream> whole) : whole_(std::move(whole)) {}
  void open(std::function<void()> ready) override { whole_->open(std::move(ready)); }
  bool take(std::string& out) override {
    whole_->take(out);
    return false;
  }
  void idle(std::string& out) override { whole_->idle(out); }
  void close() override { whole_->close(); }

 private:
  std::shared_ptr<http::Stream> whole_;
};

struct Errand {
  std::string to;
};
struct Found {
  std::string what;
};

/// A system with a bit of everything that is reached over HTTP.
class Hello final : public System {
 public:
  std::string name() const override { return "hello"; }
  void add_flows(Flows& flows) override {
    flows.add(flow<Errand, Found>(std::string(kFlow))
                  .remote("fetch", {.retry = {.retries = 0}, .lease = std::chrono::hours(1)})
                  .end());
  }
  std::vector<http::Route> routes(Engine&) override {
    const auto greet = [](const http::Request& request) {
      JsonWriter out;
      out.begin_object().key("hello").string(request.parameter("name")).end_object();
      return http::json(out.take());
    };
    return {{.path = "/v1/hello/{name}", .id = "hello", .summary = "greets", .run_fast = greet},
            {.method = http::Method::post,
             .path = "/v1/hello/{name}",
             .id = "hello_loud",
             .summary = "greets",
             .role = http::Role::operator_,
             .request = R"({"type":"object"})",
             .run = greet}};
  }
  std::optional<Page> page() override { return Page{.title = "Hello", .script = "export default () => {};"}; }
  void write_metrics(Engine&, MetricsText& out) override { out.gauge("hello", "Hello.").sample(1); }

  static constexpr std::string_view kFlow = "errand";
};

/// Nobody ends a run meanwhile, so that who waits for one does so in vain: not for long, then.
void wait_briefly(http::Request& request) {
  if (request.path.ends_with("/wait")) request.query = "timeout=1ms";
  if (request.path.ends_with("/runs") && !request.query.empty()) request.query = "wait=1ms";
  if (request.path.ends_with("/claim") && request.body.find("wait") != std::string::npos) {
    request.body = R"({"wait":"1ms"})";
  }
}

/// A directory for backups, which are real files.
class Directory {
 public:
  Directory() { PAWL_ASSERT(mkdtemp(path_.data()) != nullptr, "a directory can be made"); }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "pawl-fuzz-XXXXXX").string();
};

/// One engine behind two servers: one for everybody, one that asks for a token.
struct World {
  World() : auth(make_auth({.cheap_passwords = true})) {
    auth->add_machines(machines);
    machines.add<door>();
    hello.add_flows(flows);
    flows.add_machines(machines);
    engine =
        Engine::open(
            runtime, machines,
            {.store = "sqlite:pawl.db", .vfs = disk.vfs_name(), .work_threads = 1, .pools = {{"uplink", 2}}})
            .value();
    auth->start(runtime, *engine).value();
    engine->create<door>("front").value();
    flows.attach(*engine).value();
    flows.start(Hello::kFlow, "{}", {.id = "first"}).value();
    ServerOptions options{.listen = "127.0.0.1:0", .threads = 1, .handler_threads = 1};
    options.systems = {&hello};
    options.flows = &flows;
    options.backups = directory.path();
    open = Server::start(runtime, *engine, options).value();
    options.auth = auth.get();
    guarded = Server::start(runtime, *engine, options).value();
  }

  ~World() {
    guarded.reset();
    open.reset();
    flows.detach();
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  http::Response handle(http::Request request) {
    wait_briefly(request);
    const bool asks = !request.header("Authorization").empty() || !request.header("Cookie").empty();
    const bool reads = request.method == http::Method::get;
    const auto path = request.path;
    request.remote = std::to_string(++callers);  // or the limit on failures would refuse everything soon
    auto since = engine->subscribe("").value();
    auto response = (asks ? *guarded : *open).handle(std::move(request));
    const bool moved = has_moved(since);
    PAWL_ASSERT(!moved || (!reads && response.status < 300), "only a write that was accepted moves the log",
                path, response.status);
    const bool dashboard =
        reads && !path.starts_with("/v1/") && path != "/metrics" && path != "/systems/hello/page.js";
    PAWL_ASSERT(!asks || response.status >= 300 || dashboard || std::ranges::find(kOpen, path) != kOpen.end(),
                "without a valid token nothing is served that needs one", path, response.status);
    PAWL_ASSERT(!asks || !moved, "without a valid token nothing is changed", path);
    if (response.stream) response.stream = std::make_shared<FirstPiece>(std::move(response.stream));
    return response;
  }

  /// Runs are left out: they go on by themselves.
  static bool has_moved(Subscription& since) {
    while (true) {
      const auto events = since.poll().value();
      if (events.empty()) return false;
      for (const auto& event : events) {
        if (event.machine != Hello::kFlow) return true;
      }
    }
  }

  sim::Disk disk{1};
  Directory directory;
  ThreadRuntime runtime;
  Hello hello;
  Flows flows{runtime};
  Machines machines;
  std::unique_ptr<Auth> auth;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Server> open;
  std::unique_ptr<Server> guarded;
  std::uint64_t callers = 0;
};

/// Both ends of a connection on one thread: the session's and a client that sends all, then reads all.
std::string exchange(World& world, std::string_view sent) {
  auto shared = std::make_shared<Shared>();
  shared->limits = {.header_bytes = 1024, .body_bytes = 1024};  // small, so that they are passed
  shared->handler = [&world](http::Request request, std::move_only_function<void(http::Response)> reply) {
    reply(world.handle(std::move(request)));
  };
  const auto loop = std::make_shared<Loop>();
  const auto quota = std::make_shared<Quota>("connections", QuotaLimits{});
  std::array<int, 2> ends{};
  PAWL_ASSERT(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "two sockets");
  asio::local::stream_protocol::socket client(loop->context, asio::local::stream_protocol(), ends[0]);
  std::string received;
  asio::async_write(client, asio::buffer(sent), [&client](const Failure&, std::size_t) {
    Failure ignored;
    client.shutdown(asio::socket_base::shutdown_send, ignored);
  });
  asio::async_read(client, asio::dynamic_buffer(received), [](const Failure&, std::size_t) {});
  run_plain(shared, loop, Socket(loop->context, asio::ip::tcp::v4(), ends[1]), quota->acquire("here"));
  loop->context.run();
  PAWL_ASSERT(shared->counters.connections == 0, "the session has ended");
  return received;
}

void check_problem(const std::string& body, unsigned status) {
  const auto document = JsonDocument::parse(body);
  PAWL_ASSERT(document.has_value(), "a problem is JSON", body);
  for (const auto* name : {"type", "title", "status", "detail", "code", "number", "fields"}) {
    PAWL_ASSERT(document->root().find(name).has_value(), "a problem is complete", name, body);
  }
  const auto said = document->root().find("status")->as_integer();
  PAWL_ASSERT(said && *said == std::int64_t{status}, "a problem repeats its status", body);
}

/// Checks the first answer and returns what comes after it.
std::string_view check_answer(std::string_view bytes, bool may_be_head) {
  namespace wire = beast::http;
  wire::response_parser<wire::string_body> parser;
  parser.eager(true);
  Failure failure;
  const auto end = bytes.find("\r\n\r\n");
  PAWL_ASSERT(end != std::string_view::npos, "an answer has a header", bytes);
  auto rest = bytes.substr(end + 4);
  // An answer to HEAD has a length and no body: the next answer, or nothing, comes at once.
  if (may_be_head && (rest.empty() || rest.starts_with("HTTP/1.1 "))) parser.skip(true);
  const auto used = parser.put(asio::buffer(bytes), failure);
  PAWL_ASSERT(!failure, "an answer is HTTP", failure.message(), bytes);
  const bool until_close = parser.need_eof();
  if (until_close) parser.put_eof(failure);
  PAWL_ASSERT(!failure && parser.is_done(), "an answer is whole", bytes);
  const auto& answer = parser.get();
  const auto status = answer.result_int();
  PAWL_ASSERT(std::ranges::find(kKnown, status) != kKnown.end(), "the status is one that is documented",
              status, bytes);
  if (status >= 400) {
    PAWL_ASSERT(answer[wire::field::content_type] == "application/problem+json", "a refusal is a problem",
                bytes);
    if (!answer.body().empty()) check_problem(answer.body(), status);
  }
  return until_close ? std::string_view() : bytes.substr(used);
}

}  // namespace
}  // namespace pawl::server

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pawl::server;
  static std::unique_ptr<World> world;
  if (!world || world->engine->stats().last_seq > kFresh) {
    world.reset();
    world = std::make_unique<World>();
  }
  const std::string_view sent(reinterpret_cast<const char*>(data), size);
  const auto received = exchange(*world, sent);
  const bool may_be_head = sent.find("HEAD ") != std::string_view::npos;
  std::string_view rest = received;
  while (!rest.empty()) rest = check_answer(rest, may_be_head);
  return 0;
}
