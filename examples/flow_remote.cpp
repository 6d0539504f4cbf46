// SPDX-License-Identifier: Apache-2.0
// A flow with a step that another process does, in whatever language: it claims the step over HTTP, keeps it
// with heartbeats and completes it. remote_worker.py does so; here the program is its own worker.
#include <filesystem>
#include <iostream>
#include <limits>

#include "pawl/flows.hpp"
#include "pawl/server.hpp"
#include "pawl/system.hpp"

using namespace std::chrono_literals;

// excerpt: remote
struct Picture {
  std::string name;
  std::vector<int> sizes;
};
struct Thumbnails {
  std::vector<std::string> files;
  bool published = false;
};

class Gallery final : public pawl::System {
 public:
  std::string name() const override { return "gallery"; }

  void add_flows(pawl::Flows& flows) override {
    flows.add(pawl::flow<Picture, Thumbnails>("thumbnails")
                  .remote("render", {.lease = 1s})  // a worker that is silent for longer loses it
                  .to("publish",
                      [](pawl::Step&, const Picture&, Thumbnails& thumbnails) {
                        thumbnails.published = true;
                        return pawl::Outcome::done();
                      })
                  .end());
  }
};
// excerpt end

static std::string post(pawl::Server& server, std::string path, std::string body) {
  return server
      .handle({.method = pawl::http::Method::post,
               .path = std::move(path),
               .headers = {{"Content-Type", "application/json"}},
               .body = std::move(body)})
      .body;
}

/// With an argument it stays until its input ends, so that workers can come.
int main(int arguments, char**) {
  const std::filesystem::path place = "gallery";  // a directory of its own, removed at the end
  std::filesystem::create_directory(place);
  {
    pawl::ThreadRuntime runtime;
    Gallery gallery;
    pawl::Flows flows(runtime);
    gallery.add_flows(flows);
    pawl::Machines machines;
    flows.add_machines(machines);
    const auto engine = pawl::Engine::open(runtime, std::move(machines),
                                           {.store = "sqlite:" + (place / "gallery.db").string()})
                            .value();
    flows.attach(*engine).value();
    pawl::ServerOptions options{.listen = "127.0.0.1:0"};
    options.flows = &flows;
    options.systems = {&gallery};
    const auto server = pawl::Server::start(runtime, *engine, options).value();
    if (arguments > 1) {
      std::cout << "http://127.0.0.1:" << server->port() << std::endl;
      std::cin.ignore(std::numeric_limits<std::streamsize>::max());
    } else {
      post(*server, "/v1/flows/thumbnails/runs", R"({"id":"cat","request":{"name":"cat","sizes":[64]}})");
      const auto claimed =
          post(*server, "/v1/flows/thumbnails/claim", R"({"steps":["render"],"wait":"30s"})");
      const auto document = pawl::JsonDocument::parse(claimed).value();
      std::cout << "claimed " << document.root().find("request")->to_text() << '\n';
      post(*server, "/v1/leases/complete",
           R"({"outcome":"done","response":{"files":["cat-64.png"]},"lease":)" +
               document.root().find("lease")->to_text() + "}");
      std::cout << flows.wait("thumbnails", "cat", 1min).value().response << '\n';
    }
    flows.detach();
  }
  std::filesystem::remove_all(place);
}

// prints: claimed {"name":"cat","sizes":[64]}
// prints: {"files":["cat-64.png"],"published":true}
