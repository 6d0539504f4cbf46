// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One connection to PostgreSQL, in pipeline mode: statements are queued, then sent together, and their
/// results are read in order.
///
///     PAWL_TRY(auto db, Connection::open(address, {.patience = patience}));
///     db.queue("BEGIN");
///     db.queue("SELECT epoch FROM pawl.shards WHERE shard = $1", Params().int4(0));
///     db.queue("COMMIT");
///     PAWL_TRY(const auto results, db.sync());        // one round trip; the first error, if any
///     results[1].integer(0, 0);
///
/// Not thread-safe.

#include <libpq-fe.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/postgres/address.hpp"
#include "store/query.hpp"
#include "store/store.hpp"

namespace pawl::postgres {

/// Format of values.
enum class Format : std::uint8_t { text = 0, binary = 1 };

/// Parameters of one statement, in binary format unless noted otherwise. A value.
class Params {
 public:
  Params& int4(std::int64_t value);
  Params& int8(std::int64_t value);
  Params& float8(double value);
  Params& uuid(std::span<const std::uint8_t> bytes);
  Params& text(std::string_view text);
  Params& bytea(std::string_view bytes);
  /// A text whose type the server infers from its context.
  Params& inferred(std::string_view text);
  Params& null();
  /// A value of this type in the caller's encoding; borrowed until it is queued.
  Params& borrow(std::uint32_t type, std::string_view bytes);

  std::size_t size() const { return types_.size(); }
  const std::vector<Oid>& types() const { return types_; }

 private:
  friend class Connection;
  enum class Kind : std::uint8_t { own, borrowed, null };
  struct Value {
    std::string own;
    std::string_view borrowed;
    Kind kind = Kind::own;
  };
  Params& add(std::uint32_t type, Format format, Value value);

  std::vector<Oid> types_;
  std::vector<int> formats_;
  std::vector<Value> values_;
};

/// The rows that one statement returned, in binary format unless the statement was queued for text.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result) {}

  int count() const { return PQntuples(result_.get()); }
  int columns() const { return PQnfields(result_.get()); }
  bool is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) != 0; }
  std::string_view bytes(int row, int column) const;
  std::int64_t integer(int row, int column) const;
  bool boolean(int row, int column) const { return integer(row, column) != 0; }
  Time time(int row, int column) const { return Time(Duration(integer(row, column))); }
  /// With escapes decoded; empty for NULL.
  std::string text(int row, int column) const;
  Result<InstanceId> id(int row, int column) const;
  Oid type(int column) const { return PQftype(result_.get(), column); }
  /// Number of rows that the statement changed.
  std::int64_t affected() const;

 private:
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

/// Fields of one row of a COPY in binary format.
class CopiedRow {
 public:
  explicit CopiedRow(std::vector<std::string_view>& fields) : fields_(fields) {}
  std::string_view bytes(std::size_t column) const { return fields_[column]; }
  bool is_null(std::size_t column) const { return fields_[column].data() == nullptr; }
  std::int64_t integer(std::size_t column) const;
  Time time(std::size_t column) const { return Time(Duration(integer(column))); }
  std::string text(std::size_t column) const;
  Result<InstanceId> id(std::size_t column) const;

 private:
  std::vector<std::string_view>& fields_;
};

struct ConnectionOptions {
  Duration patience = std::chrono::seconds(30);  ///< limit for the wait for one answer
  bool read_only = false;
};

class Connection {
 public:
  Connection() = default;

  /// Error: `store_io`, with the message of the server or of libpq.
  static Result<Connection> open(const Address& address, ConnectionOptions options);

  explicit operator bool() const { return connection_ != nullptr; }
  void close() { connection_.reset(); }
  /// Whether the connection was lost: then the outcome of the last statements is unknown.
  bool lost() const { return lost_; }
  bool in_transaction() const { return PQtransactionStatus(get()) > PQTRANS_ACTIVE; }
  int socket() const { return PQsocket(get()); }
  int backend() const { return PQbackendPID(get()); }
  PGconn* get() const { return connection_.get(); }

  /// Queues a statement. `queue_kept` prepares it at its first use and keeps it, for frequent statements.
  void queue(const std::string& sql, const Params& params = {});
  void queue_kept(const std::string& sql, const Params& params = {});
  /// For application statements: prepares the unnamed statement; `queue_again` runs it with other parameters.
  void queue_unnamed(const std::string& sql, const Params& params);
  void queue_again(const Params& params, Format format = Format::binary);
  /// Number of queued messages, and of results that they will have.
  std::size_t queued() const { return prepares_.size(); }
  std::size_t queued_results() const {
    return static_cast<std::size_t>(std::ranges::count(prepares_, false));
  }
  /// Sends the queue and returns one result per statement. After an error an open transaction must be rolled
  /// back; `failed_at` is the position of the failed statement.
  Result<std::vector<Rows>> sync();
  /// Sends the queue and passes each row to `row` when it arrives. If the watch or `row` returns an error,
  /// the connection counts as lost; closing it ends the statement (`end_statements_on_close`).
  Result<void> stream(const QueryWatch& watch, const std::function<Result<void>(const Rows&)>& row);
  /// After an error of `sync`: the results of the statements before the failed one.
  std::vector<Rows> take_partial() { return std::move(partial_); }
  std::size_t failed_at() const { return failed_at_; }
  /// Runs one statement; returns the last result of the queue.
  Result<Rows> run(const std::string& sql, const Params& params = {});
  /// Asks the server to notice by itself, within a second, that the connection was closed while a statement
  /// runs, and to end the statement. PQcancel would need a second connection, and waits for it without a
  /// limit. Not for commits: the server would also stop waiting for its standby. Errors: `store_io` if the
  /// connection was lost; a server that cannot do it (on Windows) finishes the statement instead.
  Result<void> end_statements_on_close();
  /// Rolls back the open transaction, if any; if that fails, the connection counts as lost.
  void roll_back();

  /// Runs a script of several statements without parameters and results.
  Result<void> run_script(const std::string& sql);
  /// Reads the rows of `sql` (a SELECT) one by one, in constant memory.
  Result<void> copy_out(const std::string& sql, const std::function<Result<void>(const CopiedRow&)>& row);
  /// Copies rows without decoding them, out and in; for backups.
  Result<void> copy_raw(const std::string& sql, const std::function<Result<void>(std::string_view)>& part);
  Result<void> begin_copy_in(const std::string& sql);
  Result<void> copy_in(std::string_view part);
  /// Ends the COPY. Returns the first error since its beginning, or the number of rows that the server
  /// reports. Until then only `roll_back` may be called.
  Result<std::int64_t> end_copy_in();

  /// Starts a COPY without waiting for the server: sends statements, the last of which is a COPY FROM STDIN.
  void start_copy_in(const std::string& script);
  /// Whether the server is ready for rows. Does not block; a failure is reported at the end of the COPY.
  bool takes_rows();
  /// Blocks until the server is ready for rows.
  Result<void> wait_until_it_takes_rows();
  /// Whether a COPY is in progress.
  bool copying() const { return copy_in_ != CopyIn::none; }

  /// Whether since the last call the wait of a commit for the synchronous standby was cancelled.
  bool take_unreplicated() { return std::exchange(*unreplicated_, false); }

  /// The SQLSTATE of an error; empty if it has none.
  static std::string_view sqlstate(const Error& error) { return error.field("sqlstate"); }

 private:
  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };

  Error to_error(const PGresult* result, std::string_view doing);
  Error lost_error(std::string_view doing);
  Result<std::vector<Rows>> results();
  /// Waits for the socket and sends unsent data. Returns false on a timeout or an error.
  bool wait_for_socket();
  /// Waits for the next result; null at the end of a statement's results.
  Result<PGresult*> next_result();
  Result<void> pipeline(bool on);
  Result<void> expect(ExecStatusType status, std::string_view doing);
  /// Returns how many rows were copied.
  Result<std::int64_t> finish_copy(std::string_view doing);
  Result<void> copy_begun(PGresult* raw);
  void abandon_copy_in();

  /// The arguments of `stream`.
  struct Streaming {
    const QueryWatch& watch;
    const std::function<Result<void>(const Rows&)>& row;
    int wake;  ///< an eventfd that ends a wait for the socket
  };
  enum class CopyIn : std::uint8_t { none, starting, taking, failed };

  std::unique_ptr<PGconn, Finish> connection_;
  const Address* address_ = nullptr;
  ConnectionOptions options_;
  std::unordered_map<std::string, std::string> kept_;  ///< statement to name
  std::vector<std::string> new_kept_;                  ///< queued for preparation, not confirmed yet
  int names_given_ = 0;
  std::vector<bool> prepares_;  ///< per queued message: whether it is a preparation, whose result is skipped
  std::string current_;         ///< name of the statement that `queue_again` runs
  std::size_t failed_at_ = 0;
  std::vector<Rows> partial_;
  CopyIn copy_in_ = CopyIn::none;
  std::optional<Error> copy_error_;  ///< the first failure
  bool lost_ = false;
  bool send_failed_ = false;
  const Streaming* streaming_ = nullptr;  ///< while `stream` runs
  std::chrono::steady_clock::time_point deadline_;
  std::unique_ptr<bool> unreplicated_ = std::make_unique<bool>(false);
};

}  // namespace pawl::postgres
