#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the verbs of the built command against a real server, and against peers that are none.

    remote.py <pawl> <cli_store>
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import world
from world import answer

PAWL, MAKE_STORE = map(os.path.abspath, sys.argv[1:3])
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
HOSTILE = "bell\a\x1b[31m\x9b\u202e"


class Case(unittest.TestCase):
    def make_place(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return world.Place(PAWL, directory.name)

    def serve(self, place, *arguments, **options):
        server = world.Server(place, *arguments, **options)
        self.addCleanup(server.kill)
        return server

    def assert_ends(self, run, status, code=None):
        self.assertEqual(run.returncode, status, run)
        if status != 0:
            self.assertEqual(run.stdout, "")
        if code:
            self.assertRegex(run.stderr, rf"(?m)^pawl: PAWL-\d+ {code}: ")
        self.assertIsNone(CONTROL.search(run.stdout + run.stderr), run)


class ServerTest(Case):
    """One server for all: each test has instances of its own."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        cls.place = world.Place(PAWL, cls.directory.name)
        cls.server = world.Server(cls.place)
        cls.addClassCleanup(cls.server.kill)

    def create(self, key):
        return self.server.json("create", "demo_order", key, '{"item":"lamp","city":"Oslo","cents":700}')

    def test_create_send_get_and_history_tell_one_story(self):
        made = self.create("story")
        self.assertEqual((made["state"], made["version"], made["data"]["item"]), ("placed", 1, "lamp"))
        sent = self.server.json("send", "demo_order", "story", "Cancel", '{"reason":"no"}')
        self.assertEqual((sent["state"], sent["finished"], sent["data"]["reason"]), ("cancelled", True, "no"))
        self.assertEqual(self.server.json("get", "demo_order", "story"), sent)
        history = self.server.json("history", "demo_order", "story")
        self.assertEqual([event["kind"] for event in history["events"]], ["fired", "created"])
        self.assertEqual(history["events"][0]["payload"], {"reason": "no"})
        page = self.server.json("history", "demo_order", "story", "--limit", 1)
        rest = self.server.json("history", "demo_order", "story", "--before", page["next"])
        self.assertEqual([event["kind"] for event in rest["events"]], ["created"])

    def test_tables_are_for_people(self):
        self.create("seen")
        shown = self.server.pawl("get", "demo_order", "seen")
        self.assertRegex(shown.stdout, r"(?m)^key +seen\nstate +placed\nversion +1 ")
        self.assertRegex(shown.stdout, r"(?m)^accepts +Checkout, Cancel$")
        self.assertRegex(shown.stdout, r'(?m)^ +"city": "Oslo",$')
        listed = self.server.pawl("ls", "demo_order", "--limit", 1000)
        head, *rows = listed.stdout.splitlines()
        self.assertEqual(head.split(), ["MACHINE", "KEY", "STATE", "VERSION", "CHANGED", "AGE", "DATA"])
        [row] = [row for row in rows if " seen " in row]
        self.assertEqual(row[head.index("STATE"):].split()[:2], ["placed", "1"])
        self.assertNotIn("\x1b", shown.stdout + listed.stdout)
        self.assertRegex(self.server.pawl("machines").stdout, r"(?m)^demo_order +placed +\d+\n +charging ")
        self.assertRegex(self.server.pawl("stats").stdout, r"(?m)^transitions +[\d,]+$")
        self.assertRegex(self.server.pawl("history", "demo_order", "seen").stdout, r"(?m)^ *\d+ .* created +placed ")

    def test_payloads_come_from_an_argument_a_file_or_standard_input(self):
        for key, given, text in (("by-file", "@cancel.json", ""), ("by-input", "-", '{"reason":"x"}')):
            (self.place.directory / "cancel.json").write_text('{"reason":"x"}', encoding="utf-8")
            self.create(key)
            sent = self.server.json("send", "demo_order", key, "Cancel", given, text=text)
            self.assertEqual(sent["data"]["reason"], "x")
        for given in ("{", "[1]", "@missing.json"):
            self.assert_ends(self.server.pawl("send", "demo_order", "by-file", "Cancel", given), 1)
        self.assert_ends(self.server.pawl("send", "demo_order", "by-file", "Cancel", "@/dev/zero"), 1, "too_large")

    def test_an_idempotency_key_makes_a_repeat_do_nothing(self):
        self.create("once")
        arguments = ("send", "demo_order", "once", "Cancel", "--idempotency-key", "k-1")
        self.assertEqual(self.server.json(*arguments), self.server.json(*arguments))
        self.assertEqual(self.server.json("get", "demo_order", "once")["version"], 2)
        other = self.server.pawl("send", "demo_order", "once", "Cancel", '{"reason":"y"}', "--idempotency-key", "k-1")
        self.assert_ends(other, 6, "request_id_reused")

    def test_an_expected_version_is_checked(self):
        self.create("versioned")
        wrong = self.server.pawl("send", "demo_order", "versioned", "Cancel", "--expect-version", 7)
        self.assert_ends(wrong, 6, "version_conflict")
        self.assertEqual(self.server.json("send", "demo_order", "versioned", "Cancel", "--expect-version", 1)["version"], 2)

    def test_exit_codes_tell_refusals_apart(self):
        self.create("codes")
        cases = [(("get", "demo_order", "absent"), 5, "unknown_instance"),
                 (("get", "demo_ordre", "codes"), 5, "unknown_machine"),
                 (("ls", "demo_order", "--state", "plaecd"), 5, "unknown_state"),
                 (("send", "demo_order", "codes", "Cancle"), 5, "unknown_event"),
                 (("send", "demo_order", "codes", "Packed"), 6, "illegal_event"),
                 (("create", "demo_order", "codes"), 6, "duplicate_instance"),
                 (("pools", "nope", "--size", 3), 5, "unknown_pool"),
                 (("ls", "--cursor", "rubbish"), 1, "cursor_invalid"),
                 (("ls", "--changed-after", "yesterday"), 1, "invalid_argument")]
        for arguments, status, code in cases:
            with self.subTest(arguments=arguments):
                self.assert_ends(self.server.pawl(*arguments), status, code)

    def test_unknown_names_get_a_suggestion(self):
        for arguments, wanted in ((("get", "demo_ordre", "x"), "demo_order"), (("diagram", "demo_ordr"), "demo_order"),
                                  (("ls", "demo_order", "--state", "plaecd"), "placed"),
                                  (("send", "demo_order", "absent-key", "Cancle"), "Cancel")):
            with self.subTest(arguments=arguments):
                self.assertIn(wanted, self.server.pawl(*arguments).stderr)

    def test_ls_filters_and_pages(self):
        for key in ("page-1", "page-2", "page-3"):
            self.create(key)
        self.server.json("send", "demo_order", "page-1", "Cancel")
        cancelled = self.server.json("ls", "demo_order", "--state", "cancelled", "--finished", "--limit", 1000)
        keys = [instance["key"] for instance in cancelled["instances"]]
        self.assertIn("page-1", keys)
        self.assertNotIn("page-2", keys)
        unfinished = self.server.json("ls", "--unfinished", "--limit", 1000)
        self.assertNotIn("page-1", [instance["key"] for instance in unfinished["instances"]])
        first = self.server.json("ls", "--limit", 1)
        second = self.server.json("ls", "--limit", 1, "--cursor", first["next"])
        self.assertNotEqual(first["instances"][0]["key"], second["instances"][0]["key"])
        self.assertIn("--cursor", self.server.pawl("ls", "--limit", 1).stderr)

    def test_operating_verbs_show_what_the_server_has(self):
        machines = self.server.json("machines")["machines"]
        self.assertEqual({machine["name"] for machine in machines}, {"demo_order", "demo_delivery"})
        self.assertTrue(all(machine["definition"]["name"] == machine["name"] for machine in machines))
        self.assertIn("transitions", self.server.json("stats"))
        self.assertIn("timers", self.server.json("timers"))
        self.assertEqual(self.server.pawl("timers", "demo_order").returncode, 0)
        self.assertEqual(self.server.json("pools", "demo_couriers", "--size", 5), {"name": "demo_couriers", "size": 5})
        resized = self.server.pawl("pools", "demo_couriers", "--size", 4)
        self.assertEqual(resized.stdout, "demo_couriers has 4 permits until the server restarts\n")
        self.assertEqual({pool["name"] for pool in self.server.json("pools")["pools"]},
                         {"started_attempts", "work_threads", "demo_couriers", "demo_dock"})
        self.assertRegex(self.server.pawl("pools").stdout, r"(?m)^POOL +SIZE +GRANTED +WAITING\nwork_threads +8 ")
        self.assertTrue(self.server.pawl("diagram", "demo_order").stdout.startswith("stateDiagram-v2\n"))
        self.assertIn("digraph", self.server.pawl("diagram", "demo_order", "--format", "dot").stdout)
        self.assertEqual(self.server.json("diagram", "demo_order")["name"], "demo_order")

    def test_hostile_keys_do_not_reach_the_terminal(self):
        self.assertEqual(self.create(HOSTILE)["key"], HOSTILE)
        for arguments in (("get", "demo_order", HOSTILE), ("ls", "demo_order", "-n", 1000),
                          ("history", "demo_order", HOSTILE, "--json"), ("get", "demo_order", HOSTILE + "?"),
                          ("tail", "demo_order", HOSTILE, "--after", "begin", "-n", 1),
                          ("get", "demo_order", HOSTILE, "--json")):
            with self.subTest(arguments=arguments):
                run = self.server.pawl(*arguments)
                self.assertIsNone(CONTROL.search(run.stdout + run.stderr), run)
                self.assertRegex(run.stdout + run.stderr, r"bell\\(x07|u0007)")

    def test_tail_follows_from_the_beginning_or_a_cursor_and_filters(self):
        self.create("tailed")
        self.server.json("send", "demo_order", "tailed", "Cancel")
        run = self.server.pawl("tail", "demo_order", "tailed", "--after", "begin", "-n", 2, "--json")
        first, second = map(json.loads, run.stdout.splitlines())
        self.assertEqual((first["kind"], second["event"]), ("created", "Cancel"))
        run = self.server.pawl("tail", "demo_order", "tailed", "--after", first["cursor"], "-n", 1)
        self.assertRegex(run.stdout, r"^\d\d:\d\d:\d\d\.\d{3}  demo_order +tailed +Cancel +→ cancelled  v2\n$")
        state = self.server.pawl("tail", "--state", "delivered", "-n", 1, "--json")
        self.assertEqual(json.loads(state.stdout)["state"], "delivered")
        self.assert_ends(self.server.pawl("tail", "--after", "rubbish"), 1, "cursor_invalid")

    def test_ctrl_c_ends_tail_the_way_signals_do(self):
        with self.place.start("tail", "--after", "begin", "--json", "--url", self.server.url,
                              stdout=subprocess.PIPE) as tail:
            self.assertIn(b"seq", tail.stdout.readline())
            tail.send_signal(signal.SIGINT)
            self.assertEqual(tail.wait(world.PATIENCE), -signal.SIGINT)

    def test_top_prints_one_frame_where_there_is_no_terminal(self):
        run = self.server.pawl("top", "--once")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"^pawl top  http://127\.0\.0\.1:\d+  20")
        self.assertRegex(run.stdout, r"(?m)^\d+\.\d entries/s  \d+\.\d commits/s ")
        self.assertRegex(run.stdout, r"(?m)^MACHINE +STATE +INSTANCES +INTO/S")
        self.assertRegex(run.stdout, r"(?m)^BUSIEST, LAST \d S +KEY +ENTRIES +LAST +STATE$")
        self.assertIsNone(CONTROL.search(run.stdout))

    def test_a_backup_is_a_store_of_its_own_under_the_data_directory(self):
        self.create("kept")
        made = self.server.json("backup", "nightly.db")
        path = self.place.directory / made["file"]
        self.assertEqual(path, self.place.directory / "pawl-data" / "backups" / "nightly.db")
        self.assertTrue(json.loads(self.place.run("check", path, "--json").stdout)["sound"])
        kept = self.place.run("get", "demo_order", "kept", "--store", path, "--json")
        self.assertEqual(json.loads(kept.stdout)["data"]["item"], "lamp")
        self.assert_ends(self.server.pawl("backup", "nightly.db"), 6, "duplicate_instance")
        for name in ("../out.db", "/tmp/out.db", ".hidden", "a b", "x" * 200):
            with self.subTest(name=name):
                self.assert_ends(self.server.pawl("backup", name), 1, "invalid_argument")
        self.assertRegex(self.server.pawl("backup").stdout, r"^pawl-data/backups/pawl-\d{8}T[\d.]+Z\.db\n$")

    def test_the_address_comes_from_the_environment_too(self):
        run = self.place.run("machines", environment={"PAWL_URL": self.server.url})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("\x1b", run.stdout)

    def test_an_output_that_cannot_be_written_is_no_success(self):
        with open("/dev/full", "wb") as full:
            with self.place.start("machines", "--url", self.server.url, stdout=full, stderr=subprocess.PIPE) as process:
                _, err = process.communicate(timeout=world.PATIENCE)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"standard output", err)


class TailTest(Case):
    def test_tail_goes_on_where_it_was_after_the_server_was_killed(self):
        place = self.make_place()
        port = world.free_port()
        server = self.serve(place, port=port)
        with place.start("tail", "--after", "begin", "--json", "--url", server.url, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True) as tail:
            self.addCleanup(tail.kill)
            seqs = [json.loads(tail.stdout.readline())["seq"]]
            server.kill()
            self.assertIn("lost the server", tail.stderr.readline())
            again = self.serve(place, port=port)
            self.assertIn("connected again; continuing after the last entry", tail.stderr.readline())
            made = again.json("create", "demo_order", "after-the-crash")
            while seqs[-1] < made["seq"]:
                seqs.append(json.loads(tail.stdout.readline())["seq"])
            tail.kill()
        self.assertEqual(seqs, list(range(1, seqs[-1] + 1)), "nothing is missing, nothing comes twice")


class StoreTest(Case):
    def setUp(self):
        self.place = self.make_place()
        self.path = self.place.directory / "doors.db"
        subprocess.run([MAKE_STORE, self.path], check=True, timeout=world.PATIENCE)

    def json(self, *arguments):
        run = self.place.run(*arguments, "--store", self.path, "--json")
        self.assertEqual(run.returncode, 0, run)
        return json.loads(run.stdout)

    def test_a_store_gives_the_documents_that_a_server_gives(self):
        self.assertEqual(self.json("machines"),
                         {"machines": [{"name": "door", "counts": {"closed": 2, "locked": 1}, "instances": 3}]})
        listed = self.json("ls", "door")
        self.assertEqual([one["key"] for one in listed["instances"]], ["front", "back", "bell\a\x1b[31m"])
        front = self.json("get", "door", "front")
        self.assertEqual(front, listed["instances"][0])
        self.assertEqual((front["state"], front["version"], front["data"]), ("closed", 3, {"opened": 1}))
        events = self.json("history", "door", "front")["events"]
        self.assertEqual([event["event"] for event in events], ["Pull", "Push", ""])
        self.assertEqual(self.json("stats")["instances"], 3)
        self.assertEqual(self.json("timers"), {"timers": []})

    def test_its_pages_go_on_where_they_ended(self):
        first = self.json("ls", "--limit", 2)
        self.assertEqual(len(first["instances"]), 2)
        rest = self.json("ls", "--cursor", first["next"])
        self.assertEqual([one["key"] for one in rest["instances"]], ["bell\a\x1b[31m"])
        self.assertNotIn("next", rest)
        self.assertEqual([one["key"] for one in self.json("ls", "--finished")["instances"]], ["back"])

    def test_it_is_followed_like_a_server(self):
        run = self.place.run("tail", "--store", self.path, "--after", "begin", "-n", 6, "--json")
        self.assertEqual([json.loads(line)["seq"] for line in run.stdout.splitlines()], [1, 2, 3, 4, 5, 6])
        run = self.place.run("tail", "door", "front", "--store", self.path, "--after", 1, "-n", 2)
        self.assertRegex(run.stdout, r"door +front +Push +→ open +v2\n.*Pull +→ closed +v3\n$")

    def test_a_server_is_read_beside_itself_and_its_users_are_not_shown(self):
        server = self.serve(self.place, "demo: true\n", auth=True)
        run = self.place.run("ls", "--store", self.place.directory / "pawl-data", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertLessEqual({one["machine"] for one in json.loads(run.stdout)["instances"]},
                             {"demo_order", "demo_delivery"})
        top = self.place.run("top", "--once", "--store", self.place.directory / "pawl-data")
        self.assertRegex(top.stdout, r"(?m)^demo_order +\w+ +\d+")
        self.assertIsNotNone(server.password)

    def test_what_needs_a_server_says_so(self):
        for arguments in (("send", "door", "front", "Push"), ("pools",), ("diagram", "door")):
            with self.subTest(arguments=arguments):
                self.assert_ends(self.place.run(*arguments, "--store", self.path), 2)
        self.assert_ends(self.place.run("ls", "--store", self.path, "--url", "http://x"), 1, "invalid_argument")

    def test_unknown_names_are_not_found(self):
        run = self.place.run("ls", "dor", "--store", self.path)
        self.assert_ends(run, 5, "unknown_machine")
        self.assertIn('did you mean "door"', run.stderr)
        self.assert_ends(self.place.run("get", "door", "side", "--store", self.path), 5, "unknown_instance")

    def test_a_backup_of_a_store_goes_where_it_is_told(self):
        target = self.place.directory / "copy.db"
        self.assertEqual(self.place.run("backup", target, "--store", self.path).stdout, f"{target}\n")
        self.assertEqual(self.place.run("check", target).stdout, "sound: 6 entries, 3 heads, 0 problems\n")
        self.assert_ends(self.place.run("backup", target, "--store", self.path), 1, "invalid_argument")
        self.assert_ends(self.place.run("backup", "--store", self.path), 1, "invalid_argument")


class AccessTest(Case):
    PASSWORD = "correct horse battery"

    def setUp(self):
        self.place = self.make_place()
        self.server = self.serve(self.place, auth=True)

    def log_in(self):
        return self.server.pawl("login", text=f"{self.server.password}\n{self.PASSWORD}\n")

    def test_the_first_login_leaves_a_token_that_only_its_owner_may_read(self):
        self.assert_ends(self.server.pawl("machines"), 4, "unauthenticated")
        self.assertIn("pawl login", self.server.pawl("machines").stderr)
        self.assert_ends(self.log_in(), 0)
        kept = self.place.directory / "config" / "pawl" / "credentials"
        self.assertEqual(kept.stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.server.pawl("machines").returncode, 0)
        kept.chmod(0o644)
        self.assert_ends(self.server.pawl("machines"), 4, "forbidden")

    def test_a_wrong_password_is_said_without_advice_to_log_in(self):
        run = self.server.pawl("login", text="wrong password\n")
        self.assert_ends(run, 4, "unauthenticated")
        self.assertNotIn("pawl login", run.stderr)

    def test_tokens_are_made_listed_used_and_revoked(self):
        self.log_in()
        made = self.server.json("token", "create", "ci", "--role", "viewer", "--expires", "2099-01-01T00:00:00Z")
        [listed] = [one for one in self.server.json("token", "ls")["tokens"] if one["name"] == "ci"]
        self.assertEqual((listed["id"], listed["role"]), (made["id"], "viewer"))
        self.assertRegex(self.server.pawl("token", "ls").stdout, rf"(?m)^{made['id']} +ci +viewer ")
        file = self.place.directory / "token"
        file.write_text(made["token"] + "\n", encoding="utf-8")
        file.chmod(0o600)
        self.assertEqual(self.server.pawl("ls", "--token-file", file).returncode, 0)
        self.assert_ends(self.server.pawl("create", "demo_order", "x", "--token-file", file), 4, "forbidden")
        self.assertEqual(self.server.pawl("token", "revoke", made["id"]).returncode, 0)
        self.assert_ends(self.server.pawl("ls", environment={"PAWL_TOKEN": made["token"]}), 4, "unauthenticated")
        file.chmod(0o640)
        self.assert_ends(self.server.pawl("ls", "--token-file", file), 4, "forbidden")
        self.assertRegex(self.server.pawl("token", "create", "plain").stdout, r"^pawl_[\w-]+\n$")

    def test_users_are_added_changed_and_removed(self):
        self.log_in()
        added = self.server.pawl("user", "add", "ada", "--role", "operator", text=f"{self.PASSWORD}\n")
        self.assertEqual((added.returncode, added.stdout), (0, "ada is operator\n"))
        self.assert_ends(self.server.pawl("user", "add", "ada", "--role", "viewer", text="x\n"), 6, "duplicate_instance")
        self.assertEqual(self.server.pawl("user", "role", "ada", "--role", "viewer").stdout, "ada is viewer\n")
        [ada] = [one for one in self.server.json("user", "ls")["users"] if one["user"] == "ada"]
        self.assertEqual((ada["role"], ada["one_time"]), ("viewer", True))
        (self.place.directory / "secret").write_text("another long password\n", encoding="utf-8")
        self.assertEqual(self.server.pawl("user", "password", "ada", "--password-file", "secret").returncode, 0)
        self.assertRegex(self.server.pawl("user", "ls").stdout, r"(?m)^ada +viewer .* one-time$")
        self.assertEqual(self.server.pawl("user", "rm", "ada").returncode, 0)
        self.assert_ends(self.server.pawl("user", "password", "ada", text="x\n"), 5, "unknown_instance")
        self.assert_ends(self.server.pawl("user", "rm", "ada"), 5, "unknown_instance")

    def test_the_owner_of_the_machine_gets_back_in_once_the_server_is_stopped(self):
        self.assert_ends(self.log_in(), 0)
        recover = ("user", "recover", "admin", "--store", "pawl-data/pawl.db")
        self.assert_ends(self.place.run(*recover), 1, "store_locked")
        self.server.kill()
        self.assertNotEqual(self.place.run("user", "recover", "admin", "--store", "none.db").returncode, 0)
        self.assertFalse((self.place.directory / "none.db").exists())
        run = self.place.run(*recover)
        self.assertRegex(run.stdout, r"^\S{20}\n$")
        self.server = self.serve(self.place, auth=True, first_login=False)
        run = self.server.pawl("login", text=f"{run.stdout.strip()}\nanother {self.PASSWORD}\n")
        self.assert_ends(run, 0)
        self.assertEqual(self.server.pawl("user", "ls").returncode, 0)

    def test_a_wrong_token_is_not_authorised(self):
        for token in ("pawl_0123456789abcdef_rubbish", "rubbish"):
            run = self.server.pawl("machines", environment={"PAWL_TOKEN": token})
            self.assert_ends(run, 4, "unauthenticated")
        self.assert_ends(self.server.pawl("machines", environment={"PAWL_TOKEN": "two words"}), 1, "invalid_argument")


class TlsTest(Case):
    def test_a_certificate_is_trusted_only_with_its_authority(self):
        place = self.make_place()
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out",
             "certificate.pem"], cwd=place.directory, check=True, capture_output=True, timeout=world.PATIENCE)
        server = self.serve(place, "demo: true\ntls: {certificate: certificate.pem, key: key.pem}\n")
        self.assertTrue(server.url.startswith("https://"))
        self.assertEqual(server.pawl("machines", "--ca", "certificate.pem").returncode, 0)
        self.assertEqual(server.pawl("tail", "-n", 1, environment={"PAWL_CA": "certificate.pem"}).returncode, 0)
        run = server.pawl("machines")
        self.assert_ends(run, 3, "unreachable")
        self.assertIn("--ca", run.stderr)
        self.assert_ends(server.pawl("machines", "--ca", "missing.pem"), 1, "invalid_argument")
        # The right certificate of another name is the wrong one.
        other = server.url.replace("127.0.0.1", "localhost")
        self.assert_ends(place.run("machines", "--url", other, "--ca", "certificate.pem"), 3, "unreachable")
        self.assert_ends(place.run("machines", "--url", server.url.replace("https", "http")), 3)


class PeerTest(Case):
    """Faults that the real server does not have."""

    def setUp(self):
        self.place = self.make_place()

    def run_on(self, answers, *arguments):
        peer = world.Peer(answers)
        try:
            return self.place.run(*arguments, "--url", peer.url), peer.requests
        finally:
            peer.close()

    def test_nobody_there_is_said_at_once(self):
        url = f"http://127.0.0.1:{world.free_port()}"
        for arguments in (("machines",), ("send", "a", "b", "C"), ("tail",), ("top", "--once"), ("backup",)):
            with self.subTest(arguments=arguments):
                run = self.place.run(*arguments, "--url", url)
                self.assert_ends(run, 3, "unreachable")
                self.assertIn(url, run.stderr)
        self.assert_ends(self.place.run("ls", "--url", "http://no-such-host.invalid"), 3, "unreachable")
        for url in ("ftp://x", "localhost:7420", "http://", "http://h:99999", "http://u:p@h", "http://h/?q"):
            self.assert_ends(self.place.run("ls", "--url", url), 1, "invalid_argument")

    def test_answers_that_are_none_are_refused(self):
        garbage = [b"SSH-2.0-OpenSSH_9.2\r\n", answer("<html>"), answer("[1,2]"), answer('{"machines":'),
                   answer("nope", "502 Bad Gateway", "text/html"), answer('{"code":"made_up"}', "500 Oops"),
                   answer("{" * 10000), b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{",
                   b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20000 + b"\r\n"]
        for one in garbage:
            with self.subTest(answer=one[:40]):
                self.assert_ends(self.run_on([one], "machines")[0], 3, "answer_invalid")
        for one in (b"", b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"):
            with self.subTest(answer=one):
                self.assert_ends(self.run_on([one], "machines")[0], 3, "unreachable")

    def test_documents_of_another_shape_are_shown_as_empty(self):
        for verb in ("machines", "ls", "stats", "timers", "pools"):
            run, _ = self.run_on([answer('{"machines":7,"instances":"x","timers":[3],"pools":null}')], verb)
            self.assert_ends(run, 0)

    def test_what_a_refusal_says_does_not_steer_the_terminal(self):
        problem = json.dumps({"code": "illegal_event", "detail": "\x1b[2J\x9b31m", "fields": {"hint": "\a"}})
        run, _ = self.run_on([answer(problem, "409 Conflict")], "get", "a", "b")
        self.assert_ends(run, 6, "illegal_event")
        self.assertIn(r"\x1b[2J", run.stderr)

    def test_a_write_whose_answer_was_lost_is_asked_again_with_the_same_key(self):
        instance = answer('{"machine":"m","key":"k","state":"s","version":2}')
        run, requests = self.run_on([b"", instance], "send", "m", "k", "Go", '{"n":1}', "--json")
        self.assertEqual(run.returncode, 0, run)
        self.assertIn("same idempotency key", run.stderr)
        keys = [re.search(rb"Idempotency-Key: (\S+)", request)[1] for request in requests]
        self.assertEqual(keys[0], keys[1])
        self.assertTrue(keys[0].startswith(b"pawl-cli-"))

    def test_a_write_that_stays_unanswered_says_how_to_repeat_it(self):
        run, requests = self.run_on([b""] * 4, "send", "m", "k", "Go", "--idempotency-key", "mine")
        self.assert_ends(run, 3, "unreachable")
        self.assertIn("--idempotency-key mine", run.stderr)
        self.assertEqual(len(requests), 4)

    def test_a_stream_of_something_else_is_refused(self):
        self.assert_ends(self.run_on([answer("hello", content_type="text/plain")], "tail")[0], 3, "answer_invalid")

    def test_a_stream_that_was_cut_off_before_its_first_entry_is_resumed_where_it_began(self):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        entry = b'id: abc.6\nevent: fired\ndata: {"machine":"m","key":"k","state":"s"}\n\n'
        run, requests = self.run_on([head + b"id: abc.5\n\n", b"", head + entry], "tail", "-n", 1, "--json")
        self.assertEqual(json.loads(run.stdout)["key"], "k")
        self.assertNotIn(b"Last-Event-ID", requests[0])
        self.assertIn(b"Last-Event-ID: abc.5\r\n", requests[2])
        self.assertEqual(run.stderr.count("lost the server"), 1)

    def test_a_token_is_not_sent_in_clear_without_a_word(self):
        run = self.place.run("ls", "--url", "http://no-such-host.invalid", environment={"PAWL_TOKEN": "pawl_x"})
        self.assertIn("unencrypted", run.stderr)

    def test_a_name_that_begins_like_an_address_of_this_machine_is_not_this_machine(self):
        for host in ("127.0.0.1.invalid", "127.invalid", "localhost.invalid"):
            run = self.place.run("ls", "--url", f"http://{host}", environment={"PAWL_TOKEN": "pawl_x"})
            self.assertIn("unencrypted", run.stderr, host)
        for host in ("127.0.0.1:1", "[::1]:1", "LOCALHOST:1"):
            run = self.place.run("ls", "--url", f"http://{host}", environment={"PAWL_TOKEN": "pawl_x"})
            self.assertNotIn("unencrypted", run.stderr, host)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
