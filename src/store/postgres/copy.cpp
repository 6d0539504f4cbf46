// SPDX-License-Identifier: Apache-2.0
// Streams of rows. COPY is not possible in pipeline mode, so the connection leaves it meanwhile.
#include <fmt/format.h>

#include <optional>

#include "store/postgres/connection.hpp"
#include "store/postgres/wire.hpp"

namespace pawl::postgres {
namespace {

constexpr std::size_t kSignature = 11;
constexpr std::string_view kWriting = "writing to PostgreSQL";

/// Removes `count` bytes from the front; an error if there are fewer.
Result<std::string_view> take(std::string_view& bytes, std::size_t count) {
  if (bytes.size() < count) return fail(Code::store_corrupt, "a row of PostgreSQL's COPY is incomplete");
  const auto taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

/// Splits the messages of a binary COPY into rows.
class CopyParser {
 public:
  explicit CopyParser(const std::function<Result<void>(const CopiedRow&)>& row) : row_(row) {}

  Result<void> part(std::string_view bytes) {
    if (!std::exchange(begun_, true)) {
      PAWL_CHECK(take(bytes, kSignature + 4));
      PAWL_TRY(const auto extension, take(bytes, 4));
      PAWL_CHECK(take(bytes, static_cast<std::size_t>(get_int(extension))));
    }
    while (!bytes.empty()) {
      PAWL_TRY(const auto columns, take(bytes, 2));
      const auto count = get_int(columns);
      if (count < 0) return {};  // the end
      fields_.clear();
      for (std::int64_t i = 0; i < count; ++i) {
        PAWL_TRY(const auto length, take(bytes, 4));
        const auto size = get_int(length);
        std::string_view field;
        if (size >= 0) {
          PAWL_TRY(field, take(bytes, static_cast<std::size_t>(size)));
        }
        fields_.push_back(field);
      }
      PAWL_CHECK(row_(CopiedRow(fields_)));
    }
    return {};
  }

 private:
  const std::function<Result<void>(const CopiedRow&)>& row_;
  std::vector<std::string_view> fields_;
  bool begun_ = false;
};

}  // namespace

Result<void> Connection::pipeline(bool on) {
  const int done = on ? PQenterPipelineMode(get()) : PQexitPipelineMode(get());
  if (done != 1) return fail(lost_error("changing to or from pipeline mode"));
  return {};
}

Result<void> Connection::expect(ExecStatusType status, std::string_view doing) {
  PAWL_TRY(auto* raw, next_result());
  if (raw == nullptr) return fail(lost_error(doing));
  const Rows result(raw);
  if (PQresultStatus(raw) == status) return {};
  return fail(to_error(raw, doing));
}

/// Reads the remaining results of the statement and returns to pipeline mode.
Result<std::int64_t> Connection::finish_copy(std::string_view doing) {
  std::optional<Error> first;
  std::int64_t copied = 0;
  while (true) {
    PAWL_TRY(auto* raw, next_result());
    if (raw == nullptr) break;
    const Rows result(raw);
    if (PQresultStatus(raw) == PGRES_FATAL_ERROR && !first) first = to_error(raw, doing);
    if (std::string_view(PQcmdStatus(raw)).starts_with("COPY")) copied = result.affected();
    if (lost_) break;
  }
  if (!lost_) PAWL_CHECK(pipeline(true));
  if (first) return fail(*std::move(first));
  return copied;
}

Result<void> Connection::run_script(const std::string& sql) {
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  PAWL_CHECK(pipeline(false));
  if (PQsendQuery(get(), sql.c_str()) != 1) return fail(lost_error("running a script"));
  PAWL_CHECK(finish_copy("running a script"));
  return {};
}

Result<void> Connection::copy_raw(const std::string& sql,
                                  const std::function<Result<void>(std::string_view)>& part) {
  constexpr std::string_view kDoing = "reading from PostgreSQL";
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  PAWL_CHECK(pipeline(false));
  const auto copy = fmt::format("COPY ({}) TO STDOUT (FORMAT binary)", sql);
  if (PQsendQuery(get(), copy.c_str()) != 1) return fail(lost_error(kDoing));
  if (auto begun = expect(PGRES_COPY_OUT, kDoing); !begun) {
    if (!lost_) PAWL_CHECK(finish_copy(kDoing));
    return begun;
  }
  Result<void> taken;
  while (true) {
    char* raw = nullptr;
    const int size = PQgetCopyData(get(), &raw, 1);
    const std::unique_ptr<char, decltype(&PQfreemem)> bytes(raw, &PQfreemem);
    if (size > 0) {
      if (taken) taken = part({raw, static_cast<std::size_t>(size)});
      deadline_ = std::chrono::steady_clock::now() + options_.patience;
    } else if (size == 0) {
      if (!wait_for_socket()) return fail(lost_error(kDoing));
    } else {
      break;
    }
  }
  PAWL_CHECK(finish_copy(kDoing));
  return taken;
}

Result<void> Connection::copy_out(const std::string& sql,
                                  const std::function<Result<void>(const CopiedRow&)>& row) {
  CopyParser parser(row);
  return copy_raw(sql, [&](std::string_view bytes) { return parser.part(bytes); });
}

void Connection::start_copy_in(const std::string& script) {
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  copy_in_ = CopyIn::starting;
  auto sent = pipeline(false);
  if (sent && PQsendQuery(get(), script.c_str()) != 1) sent = fail(lost_error(kWriting));
  if (sent) return;
  copy_in_ = CopyIn::failed;
  copy_error_ = std::move(sent).error();
}

/// Handles a result of the statements before the COPY, or of the COPY.
Result<void> Connection::copy_begun(PGresult* raw) {
  if (raw == nullptr) return fail(lost_error(kWriting));
  const Rows result(raw);
  const auto status = PQresultStatus(raw);
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return {};
  if (status == PGRES_COPY_IN) {
    copy_in_ = CopyIn::taking;
    return {};
  }
  auto error = to_error(raw, kWriting);
  // The first error has the cause; later ones are consequences.
  if (!lost_) static_cast<void>(finish_copy(kWriting));
  return fail(std::move(error));
}

bool Connection::takes_rows() {
  while (copy_in_ == CopyIn::starting) {
    Result<void> done;
    if (PQconsumeInput(get()) != 1 && PQisBusy(get()) != 0) {
      done = fail(lost_error(kWriting));
    } else if (PQisBusy(get()) != 0) {
      return false;
    } else {
      done = copy_begun(PQgetResult(get()));
    }
    if (done) continue;
    copy_in_ = CopyIn::failed;
    copy_error_ = std::move(done).error();
  }
  return copy_in_ == CopyIn::taking;
}

Result<void> Connection::wait_until_it_takes_rows() {
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  while (copy_in_ == CopyIn::starting) {
    auto next = next_result();
    auto done = next ? copy_begun(*next) : Result<void>(fail(std::move(next).error()));
    if (done) continue;
    copy_in_ = CopyIn::failed;
    copy_error_ = std::move(done).error();
  }
  if (copy_in_ == CopyIn::failed) return fail(*copy_error_);
  return {};
}

void Connection::abandon_copy_in() {
  // The server answers with an error, as intended; `lost` reports a lost connection.
  if (wait_until_it_takes_rows() && PQputCopyEnd(get(), "given up") == 1)
    static_cast<void>(finish_copy(kWriting));
  copy_in_ = CopyIn::none;
  copy_error_.reset();
}

Result<void> Connection::begin_copy_in(const std::string& sql) {
  start_copy_in(sql);
  if (wait_until_it_takes_rows()) return {};
  copy_in_ = CopyIn::none;
  return fail(*std::exchange(copy_error_, std::nullopt));
}

Result<void> Connection::copy_in(std::string_view part) {
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  while (true) {
    const int done = PQputCopyData(get(), part.data(), static_cast<int>(part.size()));
    if (done == 1) return {};
    if (done == 0 && wait_for_socket()) continue;
    copy_in_ = CopyIn::failed;
    copy_error_ = lost_error(kWriting);
    return fail(*copy_error_);
  }
}

Result<std::int64_t> Connection::end_copy_in() {
  auto done = wait_until_it_takes_rows();
  deadline_ = std::chrono::steady_clock::now() + options_.patience;
  while (done) {
    const int ended = PQputCopyEnd(get(), nullptr);
    if (ended == 1) break;
    if (ended < 0 || !wait_for_socket()) done = fail(lost_error(kWriting));
  }
  copy_in_ = CopyIn::none;
  copy_error_.reset();
  if (!done) return fail(std::move(done).error());
  return finish_copy(kWriting);
}

}  // namespace pawl::postgres
