// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Arguments and functions of the verbs; app.cpp defines their command line. Each returns its exit code.

#include <cstdint>
#include <optional>
#include <string>

#include "cli/source.hpp"

namespace pawl::cli {

/// Arguments of every verb that reads.
struct Common {
  SourceOptions source;
  bool json = false;
};

struct InstanceArguments {
  std::string machine;
  std::string key;
};

struct ListArguments {
  InstanceQuery query;
  bool finished = false;
  bool unfinished = false;
};

struct HistoryArguments {
  InstanceArguments instance;
  std::int64_t before = 0;
  std::size_t limit = 100;
};

struct WriteArguments {
  InstanceArguments instance;
  std::string event;      ///< of `send`
  std::string json;       ///< data or payload: JSON, @FILE or -
  std::string partition;  ///< of `create`
  std::optional<std::int64_t> expect_version;
  std::string idempotency_key;
};

/// Names one run.
struct RunArguments {
  std::string flow;
  std::string id;
  std::string step;     ///< of `retry`
  std::string reason;   ///< of `cancel`
  std::string timeout;  ///< of `wait`; empty: as long as it takes
  bool follow = false;  ///< of `logs`
};

struct RunListArguments {
  std::string flow;
  std::string state;
  std::string queue;
  std::string cursor;
  bool finished = false;
  bool unfinished = false;
  std::string order = "newest";
  std::size_t limit = 100;
};

struct RunStartArguments {
  std::string flow;
  std::string request;  ///< JSON, @FILE or -
  std::string id;
  std::string queue;
  std::optional<std::int64_t> priority;
  std::string delay;
  std::string after;  ///< FLOW/ID
  std::string on;
  std::string from;
  std::string idempotency_key;
  bool wait = false;
};

struct TailArguments {
  FeedQuery query;
  std::size_t limit = 0;  ///< end after so many; 0: never
};

struct TopArguments {
  bool once = false;
};

struct TimerArguments {
  std::string machine;
};

struct PoolArguments {
  std::string pool;  ///< with a size: the one to resize
  std::optional<std::int64_t> size;
};

struct DiagramArguments {
  std::string machine;
  std::string format = "mermaid";
};

struct BackupArguments {
  std::string target;  ///< a name in the server's directory of backups; with a store: the path of the copy
};

struct BenchArguments {
  std::size_t transitions = 20'000;
  std::size_t syncs = 200;
};

struct TokenArguments {
  std::string name;
  std::string role = "viewer";
  std::string expires;
  std::string id;
};

struct UserArguments {
  std::string user;
  std::string role;
  std::string password_file;  ///< empty: asked for
};

struct RecoverArguments {
  std::string user;
  std::string store;
};

struct LoginArguments {
  std::string user = "admin";
};

int run_machines(const Common& common);
int run_ls(const Common& common, const ListArguments& arguments);
int run_get(const Common& common, const InstanceArguments& arguments);
int run_history(const Common& common, const HistoryArguments& arguments);
int run_timers(const Common& common, const TimerArguments& arguments);
int run_pools(const Common& common, const PoolArguments& arguments);
int run_stats(const Common& common);
int run_diagram(const Common& common, const DiagramArguments& arguments);

int run_create(const Common& common, const WriteArguments& arguments);
int run_send(const Common& common, const WriteArguments& arguments);

int run_runs(const Common& common, const RunListArguments& arguments);
int run_run_start(const Common& common, const RunStartArguments& arguments);
int run_run_show(const Common& common, const RunArguments& arguments);
int run_run_wait(const Common& common, const RunArguments& arguments);
int run_run_logs(const Common& common, const RunArguments& arguments);
int run_run_cancel(const Common& common, const RunArguments& arguments);
int run_run_pause(const Common& common, const RunArguments& arguments);
int run_run_resume(const Common& common, const RunArguments& arguments);
int run_run_retry(const Common& common, const RunArguments& arguments);

int run_tail(const Common& common, const TailArguments& arguments);
int run_top(const Common& common, const TopArguments& arguments);

int run_backup(const Common& common, const BackupArguments& arguments);
int run_check(const std::string& path, bool json);
int run_bench(bool json, const BenchArguments& arguments);

int run_token_create(const Common& common, const TokenArguments& arguments);
int run_token_ls(const Common& common);
int run_token_revoke(const Common& common, const TokenArguments& arguments);
int run_user_add(const Common& common, const UserArguments& arguments);
int run_user_ls(const Common& common);
int run_user_password(const Common& common, const UserArguments& arguments);
int run_user_role(const Common& common, const UserArguments& arguments);
int run_user_rm(const Common& common, const UserArguments& arguments);
/// On a store that no server has open.
int run_user_recover(bool json, const RecoverArguments& arguments);
int run_login(const Common& common, const LoginArguments& arguments);

}  // namespace pawl::cli
