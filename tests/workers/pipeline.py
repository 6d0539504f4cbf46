#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps workers with the built `pawl serve` and `pawl workers`, as people do.

    pipeline.py <pawl>
"""
import http.client
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import workers_world as world
from workers_world import PATIENCE, wait_until

PAWL = os.path.abspath(sys.argv[1])

PLANT = """\
children:
  - name: plant
    workerType: parent
    userSpec:
      config: |
        children_count: 2
        child_worker_type: child
        child_config: 'address: "{{ .IP }}"'
      variables: {user: {IP: 10.0.0.7}}
"""
TICKER = """\
  - name: ticker
    workerType: process
    userSpec:
      config:
        command: [/bin/sh, -c, 'echo one; echo two >&2; exec sleep 1000']
        stop_grace: 2s
"""


class WorkersCase(unittest.TestCase):
    settings = ""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = pathlib.Path(directory.name)
        self.place = world.Place(PAWL, directory.name)
        self.workers = world.Workers(self.place, self.settings)
        self.addCleanup(self.clear)

    def clear(self):
        """No process is left behind, whatever became of the test."""
        if self.workers.server.process.poll() is None:
            self.workers.apply("children: []")
            wait_until(lambda: not self.workers.states(), self.workers.states)
        self.workers.server.kill()

    def file(self, text, name="site.yaml"):
        path = self.top / name
        path.with_suffix(".new").write_text(text, encoding="utf-8")
        os.replace(path.with_suffix(".new"), path)
        return path

    def pawl(self, *arguments):
        return self.workers.server.pawl("workers", *arguments)

    def good(self, *arguments):
        run = self.pawl(*arguments)
        self.assertEqual(run.returncode, 0, run)
        return run.stdout


class CommandTest(WorkersCase):
    def test_a_file_becomes_a_tree_that_is_shown_parked_and_removed(self):
        path = self.file(PLANT)
        differs = self.pawl("diff", path)
        self.assertEqual((differs.returncode, differs.stdout), (1, "+ plant (parent)\n"), differs)
        self.assertIn("applied as version", self.good("apply", path))
        same = self.pawl("diff", path)
        self.assertEqual((same.returncode, same.stdout), (0, ""), same)
        self.workers.wait_for("plant", "Running")
        tree = self.good("tree")
        self.assertRegex(tree, r"(?m)^WORKER +TYPE +STATE +AGE +HEALTH +REASON$")
        self.assertRegex(tree, r"(?m)^plant +parent +Running +\d+s +good +2 of 2 children are healthy$")
        self.assertRegex(tree, r"(?m)^├─ child-0 +child +Connected ")
        self.assertRegex(tree, r"(?m)^└─ child-1 +child +Connected ")
        shown = self.good("show", "plant/child-0")
        self.assertRegex(shown, r'(?m)^desired +\{"address":"10.0.0.7"')
        self.assertRegex(shown, r'(?m)^observed +\{"connected":true\}')
        self.assertRegex(shown, r"(?m)Z +Ordered Connect +TryingToConnect ")

        self.good("park", "plant")
        self.workers.wait_for("plant", "Stopped")
        self.workers.wait_for("plant/child-1", "Stopped")
        self.assertRegex(self.good("tree"), r"(?m)^plant .*good, parked")
        self.good("run", "plant")
        self.workers.wait_for("plant", "Running")
        self.good("restart", "plant", "--reason", "for a test")
        wait_until(lambda: self.workers.show("plant")["worker"]["incarnation"] == 2, "a fresh instance")
        self.assertIn("for a test", self.good("show", "plant"))
        refused = self.pawl("remove", "plant/child-0")
        self.assertEqual(refused.returncode, 1, refused)
        self.good("remove", "plant")
        wait_until(lambda: self.workers.states() == {}, self.workers.states)
        self.assertEqual(self.pawl("show", "plant").returncode, 5)

    def test_mistakes_are_told_with_their_lines_and_change_nothing(self):
        self.good("apply", self.file(PLANT))
        wrong = self.file(PLANT.replace("workerType: parent", "workerType: parnet"))
        for verb, code in (("apply", 1), ("diff", 2)):
            run = self.pawl(verb, wrong)
            self.assertEqual((run.returncode, run.stdout), (code, ""), run)
            self.assertRegex(run.stderr, r'site.yaml:3: children\[0\].workerType: .*parnet.*did you mean "?parent')
        typo = self.file(PLANT.replace("children_count", "childen_count"))
        run = self.pawl("apply", typo)
        self.assertRegex(run.stderr, r"site.yaml:6: children\[0\].userSpec.config.childen_count: .*children_count")
        status, problem = self.workers.apply(typo.read_text(encoding="utf-8"), file="a.yaml")
        self.assertEqual((status, problem["code"], len(problem["problems"])), (422, "spec_invalid", 1))
        self.assertEqual((problem["problems"][0]["line"], problem["problems"][0]["suggestion"]), (6, "children_count"))
        self.workers.wait_for("plant", "Running")

    def test_a_tree_that_somebody_else_has_changed_is_not_replaced(self):
        self.good("apply", self.file(PLANT))
        version = self.workers.call("GET", "/v1/worker-tree")[1]["version"]
        status, answer = self.workers.apply("children: []", expected_version=version - 1)
        self.assertEqual((status, answer["code"]), (409, "desired_conflict"))
        status, answer = self.workers.apply(self.workers.call("GET", "/v1/worker-tree")[1]["yaml"],
                                            expected_version=version)
        self.assertEqual((status, answer["changed"]), (200, False))

    def test_bad_requests_are_told_what_is_wrong(self):
        for method, path, body, status, code in (
                ("GET", "/v1/workers/none", None, 404, "unknown_instance"),
                ("GET", "/v1/workers/a%2Fb", None, 404, "unknown_instance"),
                ("POST", "/v1/workers/none/park", {}, 404, "unknown_instance"),
                ("POST", "/v1/workers/none/restart", {"colour": 1}, 400, "unknown_name"),
                ("DELETE", "/v1/workers/none", None, 404, "unknown_instance"),
                ("DELETE", "/v1/workers/a%2Fb", None, 400, "invalid_argument"),
                ("GET", "/v1/workers/(top)", None, 404, "unknown_instance"),
                ("POST", "/v1/workers/(top)/park", {}, 404, "unknown_instance"),
                ("POST", "/v1/workers/(top)/run", {}, 404, "unknown_instance"),
                ("POST", "/v1/workers/(top)/restart", {}, 404, "unknown_instance"),
                ("GET", "/v1/workers/(top)/logs", None, 404, "unknown_instance"),
                ("PUT", "/v1/worker-tree", {}, 400, "missing_field"),
                ("PUT", "/v1/worker-tree", {"yaml": "{"}, 422, "spec_invalid"),
                ("GET", "/v1/workers?limit=0", None, 400, "invalid_argument"),
                ("GET", "/v1/workers/none/logs?lines=x", None, 400, "invalid_argument")):
            with self.subTest(path=path, method=method):
                found = self.workers.call(method, path, body)
                self.assertEqual((found[0], found[1]["code"]), (status, code), found)

    def test_metrics_count_workers_and_what_they_do(self):
        self.good("apply", self.file(PLANT))
        self.workers.wait_for("plant", "Running")
        connection = http.client.HTTPConnection("127.0.0.1", self.workers.server.port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        self.assertIn('pawl_workers{type="child",phase="running"} 2\n', text)
        self.assertIn('pawl_workers_health{type="child",health="good"} 2\n', text)
        self.assertIn('pawl_workers_health{type="child",health="failing"} 0\n', text)
        self.assertRegex(text, r"(?m)^pawl_workers_actions_total [1-9]")
        self.assertRegex(text, r"(?m)^pawl_workers_file_mistakes 0$")
        self.assertNotIn('type="application"', text)  # the top of the tree is none of the users'

    def test_a_scenario_is_played_without_a_server(self):
        for name in ("simple", "failing", "panic", "slow", "cascade", "helloworld", "concurrent"):
            run = self.place.run("workers", "scenario", name)
            self.assertEqual(run.returncode, 0, run)
            self.assertRegex(run.stdout, r"(?m)^ +\d+\.\d{3}s ")
            self.assertNotIn("NOT AS EXPECTED", run.stdout)
        unknown = self.place.run("workers", "scenario", "none")
        self.assertNotEqual(unknown.returncode, 0)
        self.assertIn("simple", unknown.stderr)


class DocumentTest(unittest.TestCase):
    def test_the_two_minutes_of_the_document_are_as_it_says(self):
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs/workers.md").read_text(encoding="utf-8")
        files = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.S))
        shown = re.search(r"```\n(WORKER .*?)```", text, re.S)[1]
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        place = world.Place(PAWL, directory.name)
        files["pawl.yaml"] += "listen: 127.0.0.1:0\ndata: data\n"
        files["pawl.yaml"] = files["pawl.yaml"].replace("workers:\n", "workers:\n  on_stop: drain\n", 1)
        for name, content in files.items():
            (place.directory / name).write_text(content, encoding="utf-8")
        with place.start("serve", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            self.addCleanup(server.kill)
            url = re.fullmatch(r"Pawl is ready: (\S+)\n", server.stdout.readline())[1]
            password = server.stdout.readline().split()[-1]
            logged_in = place.run("login", "--url", url, text=f"{password}\ncorrect horse battery\n")
            self.assertEqual(logged_in.returncode, 0, logged_in)
            # Ages and the number of the process are not the same twice.
            same = lambda tree: re.sub(r"[0-9]+s |process [0-9]+|[ ─├└]+", " ", tree)  # noqa: E731
            tree = lambda: place.run("workers", "tree", "--url", url)  # noqa: E731
            wait_until(lambda: same(tree().stdout) == same(shown), tree)
            server.terminate()
            self.assertEqual(server.wait(PATIENCE), 0)


class ProcessTest(WorkersCase):
    def pid(self, path="ticker"):
        return self.workers.show(path)["observed"]["pid"]

    def start(self):
        self.good("apply", self.file("children:\n" + TICKER))
        self.workers.wait_for("ticker", "Running")

    def runs_anew(self, before):
        return self.workers.state("ticker") == "Running" and self.pid() not in (0, before)

    def test_a_process_runs_and_its_output_is_shown(self):
        self.start()
        os.kill(self.pid(), 0)
        wait_until(lambda: len(self.workers.call("GET", "/v1/workers/ticker/logs")[1]["lines"]) == 2, "two lines")
        log = self.good("logs", "ticker")
        self.assertRegex(log, r"(?m)Z +out +one$")
        self.assertRegex(log, r"(?m)Z +err +two$")
        self.assertEqual(len(self.good("logs", "ticker", "--lines", "1").splitlines()), 2)

    def test_a_killed_process_is_started_again_and_a_parked_one_is_not(self):
        self.start()
        first = self.pid()
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: self.runs_anew(first), "another process")
        self.assertEqual(self.workers.show("ticker")["observed"]["restarts"], 1)
        self.good("park", "ticker")
        self.workers.wait_for("ticker", "Stopped")
        self.assertEqual(self.workers.show("ticker")["observed"]["process"], "exited")
        self.good("run", "ticker")
        self.workers.wait_for("ticker", "Running")

    def test_a_changed_command_replaces_the_process_and_a_changed_policy_does_not(self):
        self.start()
        first = self.pid()
        self.good("apply", self.file("children:\n" + TICKER + "        restart: on_failure\n"))
        wait_until(lambda: self.workers.show("ticker")["desired"]["restart"] == "on_failure", "the policy")
        self.assertEqual(self.pid(), first)
        self.good("apply", self.file("children:\n" + TICKER.replace("1000", "2000")))
        wait_until(lambda: self.runs_anew(first), "another process")
        self.assertRaises(ProcessLookupError, os.kill, first, 0)

    def test_policies_say_what_becomes_of_a_process_that_ends(self):
        def worker(name, command, more):
            return (f"  - name: {name}\n    workerType: process\n    userSpec:\n      config:\n"
                    f"        command: [/bin/sh, -c, '{command}']\n        backoff_first: 100ms\n{more}")
        self.good("apply", self.file(
            "children:\n" + worker("once", "exit 3", "        restart: never\n")
            + worker("well", "exit 0", "        restart: on_failure\n")
            + worker("badly", "exit 4", "        restart: on_failure\n        give_up_after: 3\n")
            + worker("missing", "exit 0", "        restart: never\n").replace("/bin/sh", "/no/such/program")))
        self.workers.wait_for("once", "Exited")
        self.assertEqual(self.workers.show("once")["observed"]["exit_code"], 3)
        self.workers.wait_for("well", "Exited")
        self.workers.wait_for("badly", "GaveUp")
        self.assertEqual(self.workers.show("badly")["observed"]["restarts"], 2)
        # It may be installed later: it is tried again, and says why it does not start.
        wait_until(lambda: "/no/such/program" in self.workers.show("missing")["worker"]["problem"],
                   lambda: self.workers.show("missing"))
        self.good("restart", "once")
        wait_until(lambda: self.workers.show("once")["worker"]["incarnation"] == 2
                   and self.workers.state("once") == "Exited", lambda: self.workers.show("once"))

    def test_a_command_that_is_changed_to_a_missing_program_is_tried_again_and_says_so(self):
        once = TICKER.replace("exec sleep 1000", "exit 0") + "        restart: never\n"
        self.good("apply", self.file("children:\n" + once))
        self.workers.wait_for("ticker", "Exited")
        self.good("apply", self.file("children:\n" + once.replace("/bin/sh", "/no/such/program")))
        tries = lambda: self.workers.show("ticker")["worker"]  # noqa: E731
        wait_until(lambda: tries()["failures"] >= 2, tries)
        self.assertEqual(tries()["state"], "TryingToStart")
        self.assertIn("/no/such/program", tries()["problem"])
        self.good("apply", self.file("children:\n" + TICKER))
        self.good("restart", "ticker")
        self.workers.wait_for("ticker", "Running")

    def test_a_removed_process_leaves_nothing_and_can_be_added_again(self):
        self.start()
        first = self.pid()
        self.good("apply", self.file("children: []"))
        wait_until(lambda: self.workers.states() == {}, self.workers.states)
        self.assertRaises(ProcessLookupError, os.kill, first, 0)
        self.start()
        self.assertNotEqual(self.pid(), first)

    def test_a_process_outlives_the_server(self):
        self.start()
        first = self.pid()
        self.workers.server.kill()
        os.kill(first, 0)
        self.workers = world.Workers(self.place)
        self.workers.wait_for("ticker", "Running")
        self.assertEqual(self.pid(), first)


class DrainTest(WorkersCase):
    settings = "  on_stop: drain\n  drain_base: 1s\n"

    def test_a_server_that_drains_waits_for_processes_that_take_their_time(self):
        slow = TICKER.replace("exec sleep 1000", 'trap "sleep 2; exit 0" TERM; echo ready; while :; do sleep 0.1; done')
        self.good("apply", self.file("children:\n" + slow.replace("stop_grace: 2s", "stop_grace: 60s")))
        wait_until(lambda: "ready" in self.pawl("logs", "ticker").stdout, "it listens to TERM")
        self.workers.server.process.terminate()
        self.workers.server.process.communicate(timeout=PATIENCE)
        status, = self.top.glob("data/workers/processes/ticker/status")
        self.assertRegex(status.read_text(encoding="utf-8"), r"(?m)^exited 0$")

    def test_a_server_that_drains_leaves_no_process_and_goes_on_later(self):
        self.good("apply", self.file("children:\n" + TICKER))
        self.workers.wait_for("ticker", "Running")
        first = self.workers.show("ticker")["observed"]["pid"]
        self.workers.server.process.terminate()
        self.workers.server.process.communicate(timeout=PATIENCE)
        self.assertRaises(ProcessLookupError, os.kill, first, 0)
        self.workers = world.Workers(self.place, self.settings)
        self.workers.wait_for("ticker", "Running")


class FileTest(WorkersCase):
    def setUp(self):
        self.settings = "  file: site.yaml\n"
        super().setUp()

    def clear(self):
        self.file("children: []\n")
        super().clear()

    def test_the_file_is_followed_and_a_mistake_disturbs_no_other_worker(self):
        problems = lambda: self.workers.call("GET", "/v1/workers")[1]["problems"]  # noqa: E731
        wait_until(lambda: len(problems()) == 1, problems)  # there is no file yet
        self.file(PLANT)
        self.workers.wait_for("plant", "Running")
        more = "  - {name: calm, workerType: child}\n  - {name: hello, workerType: helloworld}\n"
        self.file(PLANT.replace("children_count: 2", "children_count: two") + more)
        self.workers.wait_for("calm", "Connected")
        self.workers.wait_for("hello", "Running")
        self.assertEqual(self.workers.state("plant"), "Running")
        listed = self.workers.call("GET", "/v1/workers")[1]
        self.assertEqual([(one["line"], one["key"]) for one in listed["problems"]],
                         [(6, "children[0].userSpec.config.children_count")])
        self.assertIn("site.yaml:6: ", self.pawl("tree").stderr)
        self.file("children: [")
        wait_until(lambda: "children[0]" not in self.pawl("tree").stderr, "the mistake of the other file is gone")
        self.assertEqual(self.workers.state("hello"), "Running")
        self.file(PLANT.replace("children_count: 2", "children_count: 1"))
        wait_until(lambda: set(self.workers.states()) == {"plant", "plant/child-0"}, self.workers.states)
        self.assertEqual(self.workers.call("GET", "/v1/workers")[1]["problems"], [])


class RolesTest(unittest.TestCase):
    """Who may only look sees no passwords."""

    def test_values_of_environments_are_hidden_from_viewers(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        place = world.Place(PAWL, directory.name)
        (place.directory / "site.yaml").write_text(
            "children:\n  - name: secretive\n    workerType: process\n    enabled: false\n    userSpec:\n"
            "      config:\n        command: [/bin/true]\n        environment: {TOKEN: 'opensesame{{ .X }}'}\n"
            "      variables: {user: {X: opensesame}}\n", encoding="utf-8")
        server = world.Server(place, "data: data\nsystems: [workers]\nworkers: {file: site.yaml}\n", auth=True)
        self.addCleanup(server.kill)
        login = server.pawl("login", "--user", "admin", text=f"{server.password}\n{'long enough ' * 3}\n")
        self.assertEqual(login.returncode, 0, login)
        seen = {}
        for role in ("viewer", "operator"):
            token = server.json("token", "create", role, "--role", role)["token"]
            ask = lambda *verb, token=token: server.pawl(  # noqa: E731
                "workers", *verb, environment={"PAWL_TOKEN": token})
            wait_until(lambda ask=ask: ask("show", "secretive").returncode == 0, lambda ask=ask: ask("tree"))
            shown = ask("show", "secretive", "--json").stdout
            self.assertIn("TOKEN", shown)
            seen[role] = ("opensesame" in shown, ask("diff", "site.yaml").returncode)
        self.assertEqual(seen["operator"], (True, 0))
        self.assertFalse(seen["viewer"][0])
        self.assertNotEqual(seen["viewer"][1], 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
