#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `pawl runs` and `pawl run` of the built command against a real server with the demo's flow.

    runs.py <pawl>
"""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import unittest

import world

PAWL = os.path.abspath(sys.argv[1])
FLOW = "demo_delivery"
NOWHERE = '{"item":"lamp","city":"Atlantis"}'  # there is no road to it


class RunsTest(unittest.TestCase):
    """One server for all: each test has runs of its own."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.place = world.Place(PAWL, cls.directory.name)
        cls.server = world.Server(cls.place)
        cls.addClassCleanup(cls.server.kill)

    def start(self, run, *more):
        return self.server.json("run", "start", FLOW, "--id", run, *more)

    def assert_refused(self, run, status, code):
        self.assertEqual((run.returncode, run.stdout), (status, ""), run)
        self.assertRegex(run.stderr, rf"(?m)^pawl: PAWL-\d+ {code}: ")

    def test_a_start_shows_the_run_and_a_repeat_finds_it(self):
        made = self.start("once", "--delay", "1h", "--queue", "demo_dock", "--priority", "5", "--request",
                          '{"item":"lamp"}')
        self.assertEqual((made["state"], made["queue"], made["priority"], made["request"]),
                         ("delayed", "demo_dock", 5, {"item": "lamp"}))
        self.assertTrue(self.start("once")["attached"])
        shown = self.server.pawl("run", "show", FLOW, "once").stdout
        self.assertRegex(shown, r"(?m)^id +once$")
        self.assertRegex(shown, r"(?m)^queue +demo_dock \(priority 5\)$")
        self.assertRegex(shown, r'(?m)^ +"item": "lamp"$')

    def test_requests_come_from_an_argument_a_file_or_standard_input(self):
        (self.place.directory / "request.json").write_text('{"item":"compass"}', encoding="utf-8")
        for run, given, text in (("by-file", "@request.json", ""), ("by-input", "-", '{"item":"compass"}')):
            made = self.server.json("run", "start", FLOW, "--id", run, "--delay", "1h", "--request", given, text=text)
            self.assertEqual(made["request"], {"item": "compass"})

    def test_runs_are_listed(self):
        self.start("listed", "--delay", "1h")
        listed = self.server.json("runs", "--flow", FLOW, "--state", "delayed", "--limit", 1000)["runs"]
        self.assertIn("listed", [run["id"] for run in listed])
        self.assertEqual({run["state"] for run in listed}, {"delayed"})
        head, *rows = self.server.pawl("runs", "--unfinished", "--limit", 1000).stdout.splitlines()
        self.assertEqual(head.split(), ["FLOW", "ID", "STATE", "STEP", "ATTEMPT", "CHANGED", "AGE", "ERROR"])
        [row] = [row for row in rows if " listed " in row]
        self.assertRegex(row, rf"^{FLOW} +listed +delayed +pick ")

    def test_the_newest_runs_are_listed_first(self):
        for run in ("earlier", "later"):
            self.start(run, "--delay", "1h")
        for order, expected in (((), ["later", "earlier"]), (("--order", "oldest"), ["earlier", "later"])):
            listed = self.server.json("runs", "--state", "delayed", "--limit", 1000, *order)["runs"]
            self.assertEqual([run["id"] for run in listed if run["id"] in expected], expected)
        first = self.server.json("runs", "--limit", 1)
        second = self.server.json("runs", "--limit", 1, "--cursor", first["next"])
        self.assertLessEqual(second["runs"][0]["created_at"], first["runs"][0]["created_at"])

    def test_a_start_that_is_repeated_with_its_key_starts_one_run(self):
        ended = [self.server.pawl("run", "start", FLOW, "--request", NOWHERE, "--idempotency-key", "once-only", "--wait",
                                  "--json") for _ in range(2)]
        self.assertEqual([run.returncode for run in ended], [7, 7], ended)
        first, second = (json.loads(run.stdout) for run in ended)
        self.assertEqual((second["ulid"], second["generation"]), (first["ulid"], 1))
        self.assertNotEqual(self.server.json("run", "start", FLOW, "--request", NOWHERE)["ulid"], first["ulid"])

    def test_runs_take_no_events_and_no_creation_from_elsewhere(self):
        self.start("alone", "--delay", "1h")
        for arguments in (("send", FLOW, "alone", "StepDone"), ("create", FLOW, "made")):
            refused = self.server.pawl(*arguments)
            self.assert_refused(refused, 1, "invalid_argument")
            self.assertIn(f"/v1/flows/{FLOW}/runs", refused.stderr)

    def test_waiting_and_following_outlive_a_restart_of_the_server(self):
        running, ended = ({"flow": FLOW, "id": "x", "state": state, "finished": finished, "generation": 1}
                          for state, finished in (("running", False), ("done", True)))
        span = {"kind": "attempt", "step": "pick", "attempt": 1, "from": "2026-01-01T00:00:00.000000Z",
                "to": "2026-01-01T00:00:01.000000Z", "outcome": "done"}
        for verb, answers, lines in (
                (("wait", FLOW, "x", "--json"), (running, ended), 1),
                (("logs", FLOW, "x", "--follow"), ({"run": running, "spans": [span]},
                                                   {"run": ended, "spans": [span, span]}), 2)):
            with self.subTest(verb=verb):
                before, after = (world.answer(json.dumps(answer)) for answer in answers)
                stopping = world.answer(json.dumps({"code": "stopped", "detail": "the server stops"}),
                                        "503 Service Unavailable", "application/problem+json")
                peer = world.Peer([before, b"", stopping, after])
                try:
                    run = self.place.run("run", *verb, "--url", peer.url)
                finally:
                    peer.close()
                self.assertEqual((run.returncode, len(run.stdout.splitlines())), (0, lines), run)
                self.assertIn("waiting for it", run.stderr)
                self.assertIn("connected again", run.stderr)

    def test_a_server_that_never_answered_is_not_waited_for(self):
        for verb in (("wait",), ("logs", "--follow")):
            run = self.place.run("run", *verb, FLOW, "x", "--url", f"http://127.0.0.1:{world.free_port()}")
            self.assert_refused(run, 3, "unreachable")

    def test_waiting_ends_with_what_the_run_came_to(self):
        self.start("bad", "--request", NOWHERE)
        waited = self.server.pawl("run", "wait", FLOW, "bad", "--json")
        run = json.loads(waited.stdout)
        self.assertEqual((waited.returncode, run["state"], run["error"]), (7, "aborted", "there is no road to Atlantis"))
        late = self.start("late", "--delay", "1h")
        self.assertEqual(late["state"], "delayed")
        self.assert_refused(self.server.pawl("run", "wait", FLOW, "late", "--timeout", "10ms"), 1, "timed_out")

    def test_a_dependent_run_waits_for_the_other(self):
        self.start("first", "--delay", "1h")
        after = self.start("second", "--after", f"{FLOW}/first", "--on", "failure", "--request", NOWHERE)
        self.assertEqual(after["after"], {"flow": FLOW, "id": "first", "on": "failure"})
        cancelled = self.server.json("run", "cancel", FLOW, "first", "--reason", "not today")
        self.assertEqual(cancelled["id"], "first")
        ended = self.server.pawl("run", "wait", FLOW, "first", "--json")
        self.assertEqual((ended.returncode, json.loads(ended.stdout)["error"]), (7, "not today"))
        self.assertEqual(self.server.pawl("run", "wait", FLOW, "second").returncode, 7)

    def test_a_run_is_paused_resumed_and_retried(self):
        self.start("steered", "--delay", "1h", "--request", NOWHERE)
        self.assertEqual(self.server.json("run", "pause", FLOW, "steered")["state"], "paused")
        self.assertEqual(self.server.json("run", "resume", FLOW, "steered")["state"], "delayed")
        self.assertEqual(self.server.json("run", "retry", FLOW, "steered", "--step", "ship")["step"], "ship")
        self.assertEqual(self.server.json("run", "cancel", FLOW, "steered")["id"], "steered")
        self.assertEqual(self.server.pawl("run", "wait", FLOW, "steered").returncode, 7)
        again = self.server.json("run", "retry", FLOW, "steered", "--step", "ship")
        self.assertEqual((again["generation"], again["step"]), (2, "ship"))

    def test_logs_tell_what_took_time(self):
        self.start("told", "--request", NOWHERE)
        live = self.server.pawl("run", "logs", FLOW, "told", "--follow")
        self.assertEqual(live.returncode, 0, live)
        self.assertRegex(live.stdout, r"(?m)  attempt +ship +1  \w+ +there is no road to Atlantis$")
        self.assertRegex(live.stdout, r"(?m)  attempt +undo pack +1  done")
        table = self.server.pawl("run", "logs", FLOW, "told").stdout
        self.assertEqual(table.splitlines()[0].split(), ["FROM", "TOOK", "WHAT", "STEP", "ATTEMPT", "OUTCOME", "ERROR"])
        self.assertRegex(table, r"(?m) attempt +pack +1 +done$")
        spans = self.server.json("run", "logs", FLOW, "told")["spans"]
        self.assertEqual(len(spans), len(live.stdout.splitlines()))

    def test_exit_codes_tell_refusals_apart(self):
        for arguments, status, code in ((("show", FLOW, "nobody"), 5, "unknown_instance"),
                                        (("show", "demo_delivry", "x"), 5, "unknown_machine"),
                                        (("start", FLOW, "--queue", "nothing"), 5, "unknown_pool"),
                                        (("start", FLOW, "--after", "nothing"), 1, "invalid_argument"),
                                        (("start", FLOW, "--delay", "soon"), 1, "invalid_argument"),
                                        (("start", FLOW, "--request", '{"item":7}'), 1, "wrong_type"),
                                        (("wait", FLOW, "x", "--timeout", "soon"), 1, "invalid_argument")):
            with self.subTest(arguments=arguments):
                self.assert_refused(self.server.pawl("run", *arguments), status, code)

    def test_a_terminal_shows_how_far_it_is(self):
        ours, theirs = pty.openpty()
        process = self.place.start("run", "start", FLOW, "--request", NOWHERE, "--wait", "--url", self.server.url,
                                   stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        self.assertEqual(process.wait(world.PATIENCE), 7)
        self.assertRegex(shown.decode(), re.compile(r"step 2 of 3: pack .*%  running"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
