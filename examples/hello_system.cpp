// SPDX-License-Identifier: Apache-2.0
// A system brings everything it needs: a machine with work, a table, a route, a verb, a metric and a page.
#include <filesystem>
#include <iostream>
#include <limits>

#include "pawl/server.hpp"
#include "pawl/system.hpp"

enum class Guest { announced, greeted };
struct Arrive {};
struct Greet {
  std::string text;
};
struct Visit {
  std::string greeting;
};

// Arriving asks for the work; its answer greets, and writes a row of the system's own table in that commit.
constexpr auto guest =
    pawl::machine<Guest, Visit>("hello_guest")
        .initial(Guest::announced)
        .stay<Arrive>(Guest::announced, [](Visit&, const Arrive& arrive,
                                           pawl::Effects& effects) { effects.work("greet", arrive); })
        .on<Greet>(Guest::announced, Guest::greeted,
                   [](Visit& visit, const Greet& greet, pawl::Effects& effects) {
                     visit.greeting = greet.text;
                     effects.sql({.text = "INSERT INTO hello_book(line) VALUES(?1)", .rows = {{greet.text}}});
                   })
        .terminal(Guest::greeted);
static_assert(pawl::verified<guest>);

// excerpt: system
struct Book {
  std::vector<std::string> lines;
};

class Hello final : public pawl::System {
 public:
  std::string name() const override { return "hello"; }
  std::string summary() const override { return "greets its guests"; }

  void add_machines(pawl::Machines& machines) override {
    machines.add<guest>();
    machines.work<guest, Arrive>(
        "greet", [](const pawl::WorkContext& context, const Arrive&) -> pawl::Result<pawl::Reply> {
          return pawl::reply(Greet{"Hello, " + std::string(context.key) + "!"});
        });
  }

  // A later release adds its own at the end.
  std::vector<pawl::Migration> migrations() const override {
    return {{{.text = "CREATE TABLE hello_book(line TEXT NOT NULL)"}}};
  }

  std::vector<pawl::http::Route> routes(pawl::Engine& engine) override {
    return {{.path = "/v1/hello/book",
             .id = "hello_book",
             .summary = "Everybody who was greeted",
             .response = R"({"type":"object","properties":{"lines":{"type":"array"}}})",
             .run = [&engine](const pawl::http::Request&) -> pawl::Result<pawl::http::Response> {
               PAWL_TRY(const auto rows, engine.query({.text = "SELECT line FROM hello_book ORDER BY line"}));
               Book book;
               for (const auto& row : rows) book.lines.push_back(std::get<std::string>(row.front().get()));
               return pawl::http::json(pawl::encode(book));
             }}};
  }

  std::vector<pawl::Verb> verbs() override {
    return {{.name = "wave",
             .summary = "Wave at the terminal",
             .arguments = {{.name = "name", .description = "who waves", .required = true}},
             .local = true,
             .run = [](const pawl::VerbCall& call) {
               std::cout << call.argument("name") << " waves\n";
               return 0;
             }}};
  }

  void write_metrics(pawl::Engine& engine, pawl::MetricsText& out) override {
    const auto greeted = engine.counts()["hello_guest"]["greeted"];
    out.gauge("hello_greeted", "Guests that were greeted.").sample(static_cast<double>(greeted));
  }

  std::optional<pawl::Page> page() override {
    return pawl::Page{.title = "Guest book",
                      .script =
                          "export default async (place, host) => {\n"
                          "  const { lines } = await host.get('/v1/hello/book');\n"
                          "  place.textContent = lines.join(' ');\n"
                          "};\n"};
  }
};
// excerpt end

static std::string get(pawl::Server& server, std::string path) {
  return server.handle({.path = std::move(path)}).body;
}

/// With an argument it stays until its input ends, so that the page can be looked at.
int main(int arguments, char**) {
  const std::filesystem::path place = "hello";  // a directory of its own, removed at the end
  std::filesystem::create_directory(place);
  {
    // excerpt: serve
    pawl::ThreadRuntime runtime;
    Hello hello;
    pawl::Machines machines;
    hello.add_machines(machines);
    const auto engine = pawl::Engine::open(runtime, std::move(machines),
                                           {.store = "sqlite:" + (place / "hello.db").string(),
                                            .migrations = {{hello.name(), hello.migrations()}}})
                            .value();
    pawl::ServerOptions options{.listen = "127.0.0.1:0"};
    options.systems = {&hello};
    const auto server = pawl::Server::start(runtime, *engine, options).value();
    // excerpt end
    for (const auto* name : {"Ada", "Max"}) {
      engine->create<guest>(name).value();
      engine->send<guest>(name, Arrive{}).value();
      engine->wait<guest>(name, std::chrono::minutes(1), Guest::greeted).value();
    }
    std::cout << get(*server, "/v1/hello/book") << '\n';
    std::cout << get(*server, "/systems/hello/page.js");
    const auto metrics = get(*server, "/metrics");
    std::cout << metrics.substr(metrics.find("\nhello_greeted") + 1);
    hello.verbs().front().run({.arguments = {{"name", "Ada"}}}).value();
    if (arguments > 1) {
      std::cout << "http://127.0.0.1:" << server->port() << "/systems/hello" << std::endl;
      std::cin.ignore(std::numeric_limits<std::streamsize>::max());
    }
  }
  std::filesystem::remove_all(place);
}

// prints: {"lines":["Hello, Ada!","Hello, Max!"]}
// prints: export default async (place, host) => {
// prints:   const { lines } = await host.get('/v1/hello/book');
// prints:   place.textContent = lines.join(' ');
// prints: };
// prints: hello_greeted 2
// prints: Ada waves
