// SPDX-License-Identifier: Apache-2.0
#include "store/postgres/connection.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "store/postgres/wire.hpp"

namespace pawl::postgres {
namespace {

/// The SQLSTATE with which the fence refuses; see schema.cpp.
constexpr std::string_view kFenced = "PAWL1";

/// Maps a SQLSTATE. Temporary failures become `rolled_back`: the statement certainly had no effect and may be
/// retried.
Code code_of(std::string_view state) {
  if (state == kFenced) return Code::store_fenced;
  if (state == "53100") return Code::disk_full;
  if (state.starts_with("40") || state == "55P03" || state == "57014") return Code::rolled_back;
  if (state == "XX001" || state == "XX002") return Code::store_corrupt;
  return Code::store_io;
}

std::string first_line(const char* text) {
  std::string line = text == nullptr ? "" : text;
  line.resize(std::min(line.find('\n'), line.size()));
  return line;
}

void on_notice(void* unreplicated, const PGresult* notice) {
  // The message is localized, the name of the function is not. The transaction is durable on this server but
  // may be missing on its standby.
  const char* function = PQresultErrorField(notice, PG_DIAG_SOURCE_FUNCTION);
  if (function != nullptr && std::string_view(function) == "SyncRepWaitForLSN") {
    *static_cast<bool*>(unreplicated) = true;
  }
}

Result<InstanceId> to_id(std::string_view bytes) {
  InstanceId id;
  if (bytes.size() != id.bytes.size()) {
    return fail(Code::store_corrupt, fmt::format("an instance id has {} bytes instead of 16", bytes.size()));
  }
  std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  return id;
}

}  // namespace

Params& Params::add(std::uint32_t type, Format format, Value value) {
  types_.push_back(type);
  formats_.push_back(std::to_underlying(format));
  values_.push_back(std::move(value));
  return *this;
}

Params& Params::int4(std::int64_t value) {
  std::string bytes;
  put_int4(bytes, static_cast<std::int32_t>(value));
  return add(kInt4, Format::binary, {.own = std::move(bytes)});
}

Params& Params::int8(std::int64_t value) {
  std::string bytes;
  put_int8(bytes, value);
  return add(kInt8, Format::binary, {.own = std::move(bytes)});
}

Params& Params::float8(double value) {
  std::string bytes;
  put_int8(bytes, std::bit_cast<std::int64_t>(value));
  return add(kFloat8, Format::binary, {.own = std::move(bytes)});
}

Params& Params::uuid(std::span<const std::uint8_t> bytes) {
  return add(kUuid, Format::binary, {.own = std::string(bytes.begin(), bytes.end())});
}

Params& Params::text(std::string_view text) {
  std::string buffer;
  return add(kText, Format::binary, {.own = std::string(escaped(text, buffer))});
}

Params& Params::bytea(std::string_view bytes) {
  return add(kBytea, Format::binary, {.own = std::string(bytes)});
}

Params& Params::borrow(std::uint32_t type, std::string_view bytes) {
  return add(type, Format::binary, {.own = {}, .borrowed = bytes, .kind = Kind::borrowed});
}

Params& Params::inferred(std::string_view text) { return add(0, Format::text, {.own = std::string(text)}); }

Params& Params::null() { return add(0, Format::text, {.own = {}, .borrowed = {}, .kind = Kind::null}); }

std::string_view Rows::bytes(int row, int column) const {
  if (is_null(row, column)) return {};
  return {PQgetvalue(result_.get(), row, column),
          static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}

std::int64_t Rows::integer(int row, int column) const { return get_int(bytes(row, column)); }
std::string Rows::text(int row, int column) const { return unescaped(bytes(row, column)); }
Result<InstanceId> Rows::id(int row, int column) const { return to_id(bytes(row, column)); }

std::int64_t Rows::affected() const {
  if (std::string_view(PQcmdStatus(result_.get())).starts_with("SELECT")) return 0;
  const std::string_view text = PQcmdTuples(result_.get());
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::int64_t CopiedRow::integer(std::size_t column) const { return get_int(bytes(column)); }
std::string CopiedRow::text(std::size_t column) const { return unescaped(bytes(column)); }
Result<InstanceId> CopiedRow::id(std::size_t column) const { return to_id(bytes(column)); }

Result<Connection> Connection::open(const Address& address, ConnectionOptions options) {
  Connection made;
  made.address_ = &address;
  made.options_ = options;
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : address.settings()) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  made.connection_.reset(PQconnectdbParams(names.data(), values.data(), 0));
  if (PQstatus(made.get()) != CONNECTION_OK) {
    const auto said = address.redact(first_line(PQerrorMessage(made.get())));
    return fail(Code::store_io, fmt::format("connecting to {}: {}", address.shown(), said));
  }
  PQsetNoticeReceiver(made.get(), &on_notice, made.unreplicated_.get());
  PQsetnonblocking(made.get(), 1);
  PAWL_CHECK(made.pipeline(true));
  if (options.read_only) made.queue("SET default_transaction_read_only = on");
  made.queue("SET client_encoding = 'UTF8'");
  made.queue("SET default_transaction_isolation = 'read committed'");
  made.queue("SET client_min_messages = 'warning'");
  made.queue("SET standard_conforming_strings = on");
  PAWL_CHECK(made.sync());
  return made;
}

Error Connection::to_error(const PGresult* result, std::string_view doing) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (state == nullptr || PQstatus(get()) == CONNECTION_BAD) return lost_error(doing);
  return Error(code_of(state),
               fmt::format("{}: PostgreSQL says '{}' (SQLSTATE {})", doing,
                           address_->redact(primary == nullptr ? "" : primary), state),
               {{"sqlstate", state}, {"server", address_->shown()}});
}

Error Connection::lost_error(std::string_view doing) {
  lost_ = true;
  const auto said = address_->redact(first_line(PQerrorMessage(get())));
  return Error(Code::store_io,
               fmt::format("{}: the connection to {} was lost: {}", doing, address_->shown(),
                           said.empty() ? "no answer in time" : said),
               {{"server", address_->shown()}});
}

void Connection::queue(const std::string& sql, const Params& params) {
  queue_unnamed(sql, params);
  queue_again(params);
}

void Connection::queue_unnamed(const std::string& sql, const Params& params) {
  if (PQsendPrepare(get(), "", sql.c_str(), static_cast<int>(params.size()), params.types_.data()) != 1)
    send_failed_ = true;
  current_.clear();
  prepares_.push_back(true);
}

void Connection::queue_kept(const std::string& sql, const Params& params) {
  auto found = kept_.find(sql);
  if (found == kept_.end()) {
    found = kept_.emplace(sql, fmt::format("pawl{}", ++names_given_)).first;
    if (PQsendPrepare(get(), found->second.c_str(), sql.c_str(), static_cast<int>(params.size()),
                      params.types_.data()) != 1)
      send_failed_ = true;
    prepares_.push_back(true);
    new_kept_.push_back(sql);
  }
  current_ = found->second;
  queue_again(params);
}

void Connection::queue_again(const Params& params, Format format) {
  std::vector<const char*> values;
  std::vector<int> lengths;
  for (const auto& value : params.values_) {
    const bool borrowed = value.kind == Params::Kind::borrowed;
    const char* bytes = borrowed ? value.borrowed.data() : value.own.c_str();
    values.push_back(value.kind == Params::Kind::null ? nullptr : bytes);
    lengths.push_back(static_cast<int>(borrowed ? value.borrowed.size() : value.own.size()));
  }
  if (PQsendQueryPrepared(get(), current_.c_str(), static_cast<int>(params.size()), values.data(),
                          lengths.data(), params.formats_.data(), std::to_underlying(format)) != 1)
    send_failed_ = true;
  prepares_.push_back(false);
}

bool Connection::wait_for_socket() {
  while (true) {
    const int unsent = PQflush(get());
    if (unsent < 0) return false;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline_ - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    // poll() ignores a negative descriptor.
    std::array<pollfd, 2> waits{
        {{.fd = PQsocket(get()),
          .events = static_cast<short>(POLLIN | (unsent > 0 ? POLLOUT : 0)),
          .revents = 0},
         {.fd = streaming_ == nullptr ? -1 : streaming_->wake, .events = POLLIN, .revents = 0}}};
    const int ready =
        poll(waits.data(), waits.size(), static_cast<int>(std::min<std::int64_t>(left.count(), 1000)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (waits[1].revents != 0) return false;
    if ((waits[0].revents & (POLLIN | POLLERR | POLLHUP)) != 0) return PQconsumeInput(get()) == 1;
  }
}

Result<PGresult*> Connection::next_result() {
  while (PQisBusy(get()) != 0) {
    // Results that arrived before the connection was lost are still returned.
    if (wait_for_socket() || PQisBusy(get()) == 0) continue;
    if (streaming_ != nullptr) {
      if (auto goes_on = streaming_->watch.check(); !goes_on) {
        lost_ = true;
        return fail(std::move(goes_on).error());
      }
    }
    return fail(lost_error("waiting for PostgreSQL"));
  }
  return PQgetResult(get());
}

Result<std::vector<Rows>> Connection::sync() {
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  return results();
}

Result<void> Connection::stream(const QueryWatch& watch,
                                const std::function<Result<void>(const Rows&)>& row) {
  const int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake < 0) return fail(Code::store_io, "cannot create an eventfd");
  const Streaming streaming{watch, row, wake};
  Result<std::vector<Rows>> rest;
  {
    const std::stop_callback on_stop(watch.stop(), [wake] { eventfd_write(wake, 1); });
    streaming_ = &streaming;
    deadline_ = watch.deadline();
    rest = results();
    streaming_ = nullptr;
  }
  ::close(wake);
  if (!rest) return fail(std::move(rest).error());
  return {};
}

Result<std::vector<Rows>> Connection::results() {
  const auto prepares = std::exchange(prepares_, {});
  const auto new_kept = std::exchange(new_kept_, {});
  if (lost_ || !connection_) return fail(Code::store_io, "the connection was lost before");
  if (std::exchange(send_failed_, false) || PQpipelineSync(get()) != 1)
    return fail(lost_error("sending to PostgreSQL"));
  std::vector<Rows> rows;
  std::optional<Error> first;
  std::size_t position = 0;
  int silences = 0;
  while (true) {
    // Has an effect only before the first result of a statement.
    if (streaming_ != nullptr) PQsetSingleRowMode(get());
    PAWL_TRY(auto* raw, next_result());
    if (raw == nullptr) {
      // A null ends the results of a statement; two in a row mean that the connection has ended.
      if (++silences > 1) return fail(lost_error("waiting for PostgreSQL"));
      ++position;
      continue;
    }
    silences = 0;
    Rows result(raw);
    const auto status = PQresultStatus(raw);
    if (status == PGRES_PIPELINE_SYNC) break;
    if (status == PGRES_SINGLE_TUPLE) {
      auto goes_on = streaming_->watch.check();
      if (goes_on) goes_on = streaming_->row(result);
      if (!goes_on) {
        lost_ = true;  // the rest of the result is not read
        return fail(std::move(goes_on).error());
      }
    } else if (status == PGRES_FATAL_ERROR) {
      if (!first) {
        first = to_error(raw, "running a statement");
        failed_at_ = position;
      }
      if (lost_) return fail(*std::move(first));
    } else if (status != PGRES_PIPELINE_ABORTED && position < prepares.size() && !prepares[position]) {
      rows.push_back(std::move(result));
    }
  }
  if (!first) return rows;
  // Which of them were prepared before the error is unknown; the next use takes another name.
  for (const auto& sql : new_kept) kept_.erase(sql);
  partial_ = std::move(rows);
  return fail(*std::move(first));
}

Result<Rows> Connection::run(const std::string& sql, const Params& params) {
  queue(sql, params);
  PAWL_TRY(auto rows, sync());
  if (rows.empty()) return fail(Code::internal, "a statement had no result");
  return std::move(rows.back());
}

Result<void> Connection::end_statements_on_close() {
  auto set = run("SET client_connection_check_interval = '1s'");
  if (!set && lost_) return fail(std::move(set).error());
  return {};
}

void Connection::roll_back() {
  if (lost_ || !connection_) return;
  if (copying()) abandon_copy_in();
  // Send the queue first; its outcome no longer matters.
  if (!prepares_.empty()) static_cast<void>(sync());
  if (lost_ || !in_transaction()) return;
  if (auto done = run("ROLLBACK"); !done) lost_ = true;
}

}  // namespace pawl::postgres
