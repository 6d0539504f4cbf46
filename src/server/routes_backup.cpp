// SPDX-License-Identifier: Apache-2.0
// /v1/backup: a consistent copy of the store while it is in use.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "pawl/json.hpp"
#include "pawl/names.hpp"
#include "server/backups.hpp"
#include "server/body.hpp"
#include "server/routes.hpp"

namespace pawl::server {
namespace {

constexpr std::size_t kMostName = 128;

/// Only a file name, so that no copy is written outside of the directory.
Result<void> check_backup_name(const std::string& name) {
  const bool plain = std::ranges::all_of(name, [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '_' || byte == '.';
  });
  if (plain && !name.empty() && name.size() <= kMostName && !name.starts_with('.')) return {};
  return fail(Code::invalid_argument,
              fmt::format("$.name is a file's name of 1 to {} letters, digits, - _ and ., which does "
                          "not begin with a point",
                          kMostName));
}

/// "pawl-20261116T043314.123456Z.db"
std::string name_of(Time now) {
  auto text = to_string(now);
  std::erase_if(text, [](char byte) { return byte == '-' || byte == ':'; });
  return fmt::format("pawl-{}.db", text);
}

}  // namespace

Backups::Backups(Runtime& runtime, Engine& engine, std::string directory, std::string elsewhere)
    : runtime_(runtime),
      engine_(engine),
      directory_(std::move(directory)),
      elsewhere_(std::move(elsewhere)),
      workers_(runtime.open_thread_pool("backup", {.threads = 1, .queue = 1})) {}

Result<http::Response> Backups::start(const http::Request& request) {
  PAWL_TRY(const auto body, Body::parse(request, {"name"}));
  PAWL_TRY(const auto name, body.text_or("name", name_of(runtime_.now())));
  PAWL_CHECK(check_backup_name(name));
  if (!elsewhere_.empty()) return fail(Code::invalid_argument, elsewhere_);
  std::error_code failure;
  std::filesystem::create_directories(directory_, failure);
  if (failure) {
    return fail(Code::store_io,
                fmt::format("the directory {} cannot be made: {}", directory_, failure.message()));
  }
  const auto path = (std::filesystem::path(directory_) / name).string();
  if (std::filesystem::exists(path, failure)) {
    return fail(Code::duplicate_instance, fmt::format("there is a backup \"{}\" already", name));
  }
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::running) {
      return fail(Code::overloaded, "a backup is being written; GET /v1/backup says how far it is");
    }
    state_ = State::running;
    file_ = path;
    progress_ = 0;
    error_.clear();
  }
  const auto submitted = workers_->submit([this, path](std::stop_token) { write(path); });
  if (!submitted) {
    const std::lock_guard lock(mutex_);
    state_ = State::failed;
    error_ = submitted.error().message();
  }
  PAWL_TRY(auto response, status());
  response.status = 202;
  return response;
}

void Backups::write(const std::string& path) {
  const auto made = engine_.backup(path, [this](double done) {
    const std::lock_guard lock(mutex_);
    progress_ = done;
  });
  const std::lock_guard lock(mutex_);
  state_ = made ? State::done : State::failed;
  if (made) progress_ = 1;
  if (!made) error_ = made.error().to_string();
}

Result<http::Response> Backups::status() {
  JsonWriter out;
  {
    const std::lock_guard lock(mutex_);
    out.begin_object().key("state").string(enum_name(state_));
    if (state_ != State::none) out.key("file").string(file_).key("progress").number(progress_);
    if (!error_.empty()) out.key("error").string(error_);
    out.end_object();
  }
  return http::json(out.take());
}

std::vector<http::Route> Backups::routes() {
  return {
      {.method = http::Method::post,
       .path = "/v1/backup",
       .id = "start_backup",
       .summary = "Begin a backup in the directory `backups` of the data; the store goes on meanwhile",
       .role = http::Role::admin,
       .request = schema_ref("BackupRequest"),
       .response = schema_ref("Backup"),
       .success = 202,
       .errors = {Code::invalid_argument, Code::duplicate_instance, Code::overloaded, Code::store_io},
       .run = [this](const http::Request& request) { return start(request); }},
      {.path = "/v1/backup",
       .id = "get_backup",
       .summary = "How far the newest backup since the start is",
       .role = http::Role::admin,
       .response = schema_ref("Backup"),
       .run_fast = [this](const http::Request&) { return status(); }},
  };
}

}  // namespace pawl::server
