// SPDX-License-Identifier: Apache-2.0
// The command line of the verbs for a server; those that only read also work on a store.
#include "cli/app_parts.hpp"
#include "cli/output.hpp"

namespace pawl::cli {

void add_server_options(CLI::App& verb, Common& common) {
  verb.add_option("--url", common.source.url, "the server; default: $PAWL_URL, else http://127.0.0.1:7420")
      ->type_name("URL");
  verb.add_option("--token-file", common.source.token_file,
                  "file with the token; default: $PAWL_TOKEN, else the credentials file")
      ->type_name("FILE");
  verb.add_option("--ca", common.source.ca,
                  "PEM file with the certificate authorities to trust; default: $PAWL_CA")
      ->type_name("FILE");
}

void add_json(CLI::App& verb, Common& common) { verb.add_flag("--json", common.json, "print JSON"); }

CLI::App* add_noun(CLI::App& app, const char* name, const char* text) {
  auto* noun = app.add_subcommand(name, text);
  noun->require_subcommand(1);
  return noun;
}

namespace {

constexpr std::size_t kMostListed = 1'000'000;

void add_store_option(CLI::App& verb, Common& common) {
  verb.add_option("--store", common.source.store,
                  "read a store instead of a server: a path or postgresql://…")
      ->type_name("STORE");
}

int machines_verb(const Common& common, const Nothing&) { return run_machines(common); }
int stats_verb(const Common& common, const Nothing&) { return run_stats(common); }

void add_instance(CLI::App& verb, InstanceArguments& instance) {
  verb.add_option("machine", instance.machine, "the machine's name")->required();
  verb.add_option("key", instance.key, "the instance's key")->required();
}

void add_ls(CLI::App& app, int& status) {
  const auto given = make_given<ListArguments>();
  auto* verb = add_verb(app, status, "ls", "List instances, oldest first", given, run_ls);
  auto& query = given->own.query;
  add_store_option(*verb, given->common);
  verb->add_option("machine", query.machine, "only this machine");
  verb->add_option("--state", query.state, "only this state");
  verb->add_option("--partition", query.partition, "only this partition");
  auto* finished = verb->add_flag("--finished", given->own.finished, "only finished instances");
  verb->add_flag("--unfinished", given->own.unfinished, "only unfinished instances")->excludes(finished);
  verb->add_option("--changed-after", query.changed_after,
                   "only instances changed after, such as 2026-11-16T04:00:00Z")
      ->type_name("TIME");
  verb->add_option("--changed-before", query.changed_before, "only instances changed before")
      ->type_name("TIME");
  verb->add_option("--cursor", query.cursor, "continue after this page");
  verb->add_option("-n,--limit", query.limit, "most instances to list, up to 1000000")
      ->type_name("N")
      ->check(between(std::size_t{1}, kMostListed))
      ->capture_default_str();
}

void add_history(CLI::App& app, int& status) {
  const auto given = make_given<HistoryArguments>();
  auto* verb =
      add_verb(app, status, "history", "Show an instance's history, newest entry first", given, run_history);
  add_store_option(*verb, given->common);
  add_instance(*verb, given->own.instance);
  verb->add_option("--before", given->own.before, "only entries before this one")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("-n,--limit", given->own.limit, "most entries to show, up to 1000")
      ->type_name("N")
      ->check(between(std::size_t{1}, kMostPage))
      ->capture_default_str();
}

void add_live(CLI::App& app, int& status) {
  const auto tail = make_given<TailArguments>();
  auto* verb = add_verb(app, status, "tail", "Follow the log live until Ctrl-C", tail, run_tail);
  auto& query = tail->own.query;
  add_store_option(*verb, tail->common);
  auto* machine = verb->add_option("machine", query.machine, "only this machine");
  verb->add_option("key", query.key, "only this instance")->needs(machine);
  verb->add_option("--state", query.state, "only entries with this new state");
  verb->add_option("--kind", query.kind, "only this kind of entry")
      ->check(CLI::IsMember({"created", "fired", "recovery", "work", "timer", "message"}));
  verb->add_option("--after", query.after,
                   "start after this cursor; `begin`: with the oldest entry that is kept")
      ->type_name("CURSOR");
  verb->add_option("-n,--limit", tail->own.limit, "stop after this many entries")->check(CLI::PositiveNumber);

  const auto top = make_given<TopArguments>();
  auto* screen = app.add_subcommand("top", "Watch machines and states, refreshed every second");
  add_server_options(*screen, top->common);
  add_store_option(*screen, top->common);
  screen->add_flag("--once", top->own.once, "print one frame and exit; the default without a terminal");
  screen->callback([top, &status] { status = run_top(top->common, top->own); });
}

void add_operating(CLI::App& app, int& status) {
  const auto timers = make_given<TimerArguments>();
  auto* timers_verb =
      add_verb(app, status, "timers", "Show timers that are set, next first", timers, run_timers);
  add_store_option(*timers_verb, timers->common);
  timers_verb->add_option("machine", timers->own.machine, "only this machine");

  const auto pools = make_given<PoolArguments>();
  auto* pools_verb = add_verb(app, status, "pools", "Show permit pools, or resize one", pools, run_pools);
  auto* pool = pools_verb->add_option("pool", pools->own.pool, "the pool to resize");
  auto* size = pools_verb->add_option("--size", pools->own.size, "new size, until the server restarts");
  size->type_name("N")->check(between(1, 1'000'000))->needs(pool);
  pool->needs(size);

  const auto diagram = make_given<DiagramArguments>();
  auto* diagram_verb =
      add_verb(app, status, "diagram", "Print a machine's diagram with live counts", diagram, run_diagram);
  diagram_verb->add_option("machine", diagram->own.machine, "the machine's name")->required();
  diagram_verb->add_option("--format", diagram->own.format, "output format")
      ->check(CLI::IsMember({"mermaid", "dot", "json"}))
      ->capture_default_str();
}

CLI::App* add_write(CLI::App& app, int& status, const char* name, const char* text,
                    const std::shared_ptr<Given<WriteArguments>>& given,
                    int (*run)(const Common&, const WriteArguments&)) {
  auto* verb = add_verb(app, status, name, text, given, run);
  add_instance(*verb, given->own.instance);
  verb->add_option("--idempotency-key", given->own.idempotency_key,
                   "repeats with the same key take effect once; default: a new key")
      ->type_name("KEY");
  return verb;
}

void add_tokens(CLI::App& app, int& status) {
  auto* noun = add_noun(app, "token", "Create, list and revoke tokens");
  const auto made = make_given<TokenArguments>();
  auto* create =
      add_verb(*noun, status, "create", "Create a token; it is printed once", made, run_token_create);
  create->add_option("name", made->own.name, "what it is for")->required();
  create->add_option("--role", made->own.role, "what it may do")
      ->check(CLI::IsMember({"viewer", "operator", "admin"}))
      ->capture_default_str();
  create->add_option("--expires", made->own.expires, "expiry, such as 2027-01-01T00:00:00Z; default: never")
      ->type_name("TIME");
  add_verb<Nothing>(*noun, status, "ls", "List valid tokens", make_given<Nothing>(),
                    [](const Common& common, const Nothing&) { return run_token_ls(common); });
  const auto revoked = make_given<TokenArguments>();
  auto* revoke = add_verb(*noun, status, "revoke", "Revoke a token immediately", revoked, run_token_revoke);
  revoke->add_option("id", revoked->own.id, "the token's id; see `pawl token ls`")->required();
}

void add_users(CLI::App& app, int& status) {
  auto* noun = add_noun(app, "user", "Add, list, change and remove users");
  const auto verb = [&](const char* name, const char* text, int (*run)(const Common&, const UserArguments&),
                        bool role, bool password) {
    const auto given = make_given<UserArguments>();
    auto* made = add_verb(*noun, status, name, text, given, run);
    made->add_option("user", given->own.user, "the user's name")->required();
    if (role) {
      made->add_option("--role", given->own.role, "the user's role")
          ->required()
          ->check(CLI::IsMember({"viewer", "operator", "admin"}));
    }
    if (password) {
      made->add_option("--password-file", given->own.password_file,
                       "file whose first line is the password; default: prompt")
          ->type_name("FILE");
    }
  };
  verb("add", "Add a user with a one-time password", run_user_add, true, true);
  add_verb<Nothing>(*noun, status, "ls", "List users", make_given<Nothing>(),
                    [](const Common& common, const Nothing&) { return run_user_ls(common); });
  verb("password", "Give a user a new one-time password", run_user_password, false, true);
  verb("role", "Change a user's role", run_user_role, true, false);
  verb("rm", "Remove a user", run_user_rm, false, false);
  const auto recovered = std::make_shared<std::pair<RecoverArguments, bool>>();
  auto* recover = noun->add_subcommand(
      "recover", "Make a user an administrator with a one-time password, on the store of a stopped server");
  recover->add_option("user", recovered->first.user, "the user's name; created if it does not exist")
      ->required();
  recover->add_option("--store", recovered->first.store, "the store: a path or postgresql://…")
      ->type_name("STORE")
      ->required();
  recover->add_flag("--json", recovered->second, "print JSON");
  recover->callback([recovered, &status] { status = run_user_recover(recovered->second, recovered->first); });
}

}  // namespace

void add_reading(CLI::App& app, int& status) {
  const auto machines = make_given<Nothing>();
  auto* machines_noun =
      add_verb(app, status, "machines", "Show machines with the number of instances in each state", machines,
               machines_verb);
  add_store_option(*machines_noun, machines->common);
  add_ls(app, status);
  const auto get = make_given<InstanceArguments>();
  auto* get_verb = add_verb(app, status, "get", "Show one instance", get, run_get);
  add_store_option(*get_verb, get->common);
  add_instance(*get_verb, get->own);
  add_history(app, status);
  add_live(app, status);
  add_operating(app, status);
  const auto stats = make_given<Nothing>();
  auto* stats_noun =
      add_verb(app, status, "stats", "Show counters since the server's start", stats, stats_verb);
  add_store_option(*stats_noun, stats->common);
}

void add_changing(CLI::App& app, int& status) {
  const auto created = make_given<WriteArguments>();
  auto* create =
      add_write(app, status, "create", "Create an instance; returns once it is durable", created, run_create);
  create->add_option("data", created->own.json, "the instance's data: JSON, @FILE, or - for standard input")
      ->type_name("JSON");
  create->add_option("--partition", created->own.partition, "the instance's partition");

  const auto sent = make_given<WriteArguments>();
  auto* send = add_write(app, status, "send", "Send an event; returns once it is durable", sent, run_send);
  send->add_option("event", sent->own.event, "the event's name")->required();
  send->add_option("payload", sent->own.json, "the event's payload: JSON, @FILE, or - for standard input")
      ->type_name("JSON");
  send->add_option("--expect-version", sent->own.expect_version, "refuse if the instance has another version")
      ->check(CLI::NonNegativeNumber);

  const auto backup = make_given<BackupArguments>();
  auto* backup_verb =
      add_verb(app, status, "backup", "Write a consistent copy of the server's store", backup, run_backup);
  add_store_option(*backup_verb, backup->common);
  backup_verb->add_option("target", backup->own.target,
                          "name of the copy in the server's backup directory; with --store: its path");

  const auto check = std::make_shared<std::pair<std::string, bool>>();
  auto* check_verb = app.add_subcommand("check", "Check a whole store for damage; exits with 1 if damaged");
  check_verb->add_option("store", check->first, "the store: a path or postgresql://…")->required();
  check_verb->add_flag("--json", check->second, "print JSON");
  check_verb->callback([check, &status] { status = run_check(check->first, check->second); });

  const auto bench = make_given<BenchArguments>();
  auto* bench_verb =
      app.add_subcommand("bench", "Measure durable transitions and compare them with the disk");
  bench_verb->add_option("--transitions", bench->own.transitions, "how many")
      ->type_name("N")
      ->check(between(std::size_t{1}, std::size_t{100'000'000}))
      ->capture_default_str();
  bench_verb->add_option("--syncs", bench->own.syncs, "number of single syncs to measure")
      ->type_name("N")
      ->check(between(std::size_t{1}, std::size_t{1'000'000}))
      ->capture_default_str();
  bench_verb->add_flag("--json", bench->common.json, "print JSON");
  bench_verb->callback([bench, &status] { status = run_bench(bench->common.json, bench->own); });
}

void add_access(CLI::App& app, int& status) {
  const auto given = make_given<LoginArguments>();
  auto* login = app.add_subcommand("login", "Log in as an administrator and store a token for this command");
  add_server_options(*login, given->common);
  login->add_option("--user", given->own.user, "the user to log in as")->capture_default_str();
  login->callback([given, &status] { status = run_login(given->common, given->own); });
  add_tokens(app, status);
  add_users(app, status);
}

}  // namespace pawl::cli
