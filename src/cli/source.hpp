// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The source of the reading verbs: a running server, or a store, which may have an owner. Both return the
/// documents of the API (docs/server.md), so that a verb works with either.
///
///     PAWL_TRY(const auto source, open_source(options));
///     PAWL_TRY(const auto machines, source->machines());

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/client.hpp"
#include "pawl/error.hpp"
#include "pawl/json.hpp"
#include "pawl/time.hpp"

namespace pawl::cli {

/// The options of the command line.
struct SourceOptions {
  std::string url;         ///< empty: $PAWL_URL, else where `pawl serve` listens by default
  std::string store;       ///< a path or postgresql://…; in place of a server
  std::string token_file;  ///< empty: as `find_token` says
  std::string ca;          ///< empty: $PAWL_CA, else whom the system trusts
};

struct InstanceQuery {
  std::string machine{};
  std::string state{};
  std::string partition{};
  std::string changed_after{};
  std::string changed_before{};
  std::optional<bool> finished{};
  std::string cursor{};
  std::size_t limit = 100;  ///< at most kMostPage
};
inline constexpr std::size_t kMostPage = 1000;

struct FeedQuery {
  std::string machine{};
  std::string key{};
  std::string state{};
  std::string kind{};
  std::string after{};  ///< a cursor, "begin", or "" for what comes from now on
};

/// The log from some point on. Used by one thread at a time.
class Feed {
 public:
  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;

  /// Entries as JSON, in order, each once; empty after the timeout. Waits for a server that is unreachable.
  /// Errors: permanent ones.
  virtual Result<std::vector<std::string>> next(Duration most) = 0;
};

/// Used by one thread at a time.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  /// For people: an address or a path, without a password.
  virtual std::string name() const = 0;

  /// How many instances one call of `instances` may ask for.
  virtual std::size_t most_page() const { return kMostPage; }

  virtual Result<JsonDocument> machines() = 0;
  virtual Result<JsonDocument> instances(const InstanceQuery& query) = 0;
  virtual Result<JsonDocument> instance(const std::string& machine, const std::string& key) = 0;
  virtual Result<JsonDocument> history(const std::string& machine, const std::string& key,
                                       std::int64_t before, std::size_t limit) = 0;
  virtual Result<JsonDocument> timers(const std::string& machine, const std::string& cursor) = 0;
  virtual Result<JsonDocument> stats() = 0;
  /// `notice` is called when the server is lost and when it is connected again.
  virtual Result<std::unique_ptr<Feed>> follow(const FeedQuery& query,
                                               std::function<void(const std::string&)> notice) = 0;
};

/// Error: `invalid_argument` if both a server and a store are given.
Result<std::unique_ptr<Source>> open_source(const SourceOptions& options);

/// For verbs that need a server. Error: `invalid_argument` if a store is given.
Result<Client> open_client(const SourceOptions& options);

/// Each half of `open_source`.
std::unique_ptr<Source> server_source(Client client);
Result<std::unique_ptr<Source>> store_source(const std::string& where);

/// What `--store` means to the store: "sqlite:PATH", also for the directory that `pawl serve` keeps it in, or
/// a URL.
std::string store_address(const std::string& given);

/// A document of the API. Error: `answer_invalid`.
Result<JsonDocument> parse_answer(std::string_view text);

/// Members of an object of the API; empty if absent or of another kind.
std::string text_of(JsonValue object, std::string_view name);
std::int64_t number_of(JsonValue object, std::string_view name);

}  // namespace pawl::cli
