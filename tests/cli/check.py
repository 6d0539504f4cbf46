#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the built command on a real store and checks what it prints and how it ends.

    check.py <pawl> <cli_store>
"""
import contextlib
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PAWL, MAKE_STORE = sys.argv[1:3]


def pawl(*arguments):
    return subprocess.run([PAWL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60)


class CommandTest(unittest.TestCase):
    def test_help_and_version_end_well(self):
        self.assertEqual(pawl("--help").returncode, 0)
        self.assertEqual(pawl("store", "log", "--help").returncode, 0)
        self.assertRegex(pawl("--version").stdout, r"^pawl \d+\.\d+\.\d+\n$")

    def test_wrong_usage_ends_with_2_and_says_why(self):
        wrong = [(), ("stroe",), ("store",), ("store", "info"), ("store", "log", "x", "--limit", "0"),
                 ("store", "log", "x", "--after", "-1"), ("store", "history", "x", "door"), ("explain", "9999")]
        for arguments in wrong:
            with self.subTest(arguments=arguments):
                run = pawl(*arguments)
                self.assertEqual(run.returncode, 2)
                self.assertEqual(run.stdout, "")
                self.assertNotEqual(run.stderr, "")

    def test_explain_knows_a_code_by_number_and_name(self):
        for code in ("PAWL-1001", "1001", "illegal_event"):
            run = pawl("explain", code)
            self.assertEqual(run.returncode, 0)
            self.assertTrue(run.stdout.startswith("PAWL-1001 illegal_event\n"), run.stdout)
        self.assertGreater(len(pawl("explain").stdout.splitlines()), 40)


class StoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.path = pathlib.Path(cls.place.name) / "doors.db"
        subprocess.run([MAKE_STORE, cls.path], check=True, timeout=60)

    def json(self, verb, *arguments):
        run = pawl("store", verb, self.path, *arguments, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count("\n"), 1, "one document on one line")
        return json.loads(run.stdout)

    def lines(self, verb, *arguments):
        run = pawl("store", verb, self.path, *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout.splitlines()

    def assert_refused(self, run, code, status=1):
        self.assertEqual(run.returncode, status)
        self.assertEqual(run.stdout, "")
        self.assertRegex(run.stderr, rf"^pawl: PAWL-\d+ {code}: .*\nhint: `pawl explain \d+`")

    def test_info_shows_the_facts_and_counts_instances_by_state(self):
        info = self.json("info")
        self.assertRegex(info.pop("incarnation"), r"^[0-9a-f]{32}$")
        self.assertRegex(info.pop("last_at"), r"^20\d\d-.*Z$")
        machines = {"door": {"closed": 2, "locked": 1}}
        self.assertEqual(info, {"epoch": 1, "last": 6, "horizon": 0, "instances": 3, "machines": machines})
        lines = self.lines("info")
        self.assertIn("epoch        1", lines)
        self.assertEqual(lines[-3:], ["MACHINE  STATE   INSTANCES", "door     closed  2", "door     locked  1"])

    def test_log_shows_entries_in_order_with_their_keys(self):
        log = self.json("log")
        self.assertEqual([entry["seq"] for entry in log["entries"]], [1, 2, 3, 4, 5, 6])
        self.assertEqual(log["next"], 6)
        third = log["entries"][2]
        self.assertEqual((third["machine"], third["key"], third["kind"]), ("door", "front", "fired"))
        self.assertEqual((third["event"], third["payload"]), ("Push", {"by": "Ada"}))
        self.assertEqual((third["state"], third["data"], third["version"]), ("open", {"opened": 1}, 2))
        self.assertNotIn("payload", log["entries"][0])
        self.assertTrue(log["entries"][3]["finished"])

    def test_log_is_paged(self):
        page = self.json("log", "--after", 2, "--limit", 3)
        self.assertEqual([entry["seq"] for entry in page["entries"]], [3, 4, 5])
        self.assertEqual(self.json("log", "--after", page["next"])["entries"][0]["seq"], 6)
        self.assertEqual(self.json("log", "--after", 6), {"entries": [], "next": 6})

    def test_tables_are_aligned(self):
        head, *rows = self.lines("log")
        self.assertEqual(head.split(), ["SEQ", "TIME", "MACHINE", "KEY", "KIND", "EVENT", "STATE", "VERSION"])
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertEqual(row[head.index("MACHINE"):].split()[0], "door")
        self.assertIn("Push", rows[2])

    def test_control_characters_of_a_key_do_not_reach_the_terminal(self):
        text = "\n".join(self.lines("log"))
        self.assertIn(r"bell\x07\x1b[31m", text)
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text))
        self.assertEqual(self.json("log")["entries"][5]["key"], "bell\a\x1b[31m")

    def test_history_is_newest_first_and_paged(self):
        history = self.json("history", "door", "front", "--limit", 2)
        self.assertEqual([entry["event"] for entry in history["entries"]], ["Pull", "Push"])
        self.assertFalse(history["truncated"])
        rest = self.json("history", "door", "front", "--before", history["next"])
        self.assertEqual([entry["kind"] for entry in rest["entries"]], ["created"])
        self.assertEqual(rest["next"], 0)
        self.assertEqual(self.lines("history", "door", "front", "--limit", 2)[-1], "(more: --before 3)")
        self.assertEqual(len(self.lines("history", "door", "front")), 4)

    def test_an_unknown_instance_or_machine_is_refused(self):
        self.assert_refused(pawl("store", "history", self.path, "door", "side"), "unknown_instance", 5)
        self.assert_refused(pawl("store", "history", self.path, "window", "front"), "unknown_machine", 5)

    def test_a_file_that_is_no_store_is_refused_and_none_is_made(self):
        missing = self.path.parent / "missing.db"
        text = self.path.parent / "text.db"
        text.write_text("This is not a database.\n" * 100, encoding="utf-8")
        for verb in ("info", "log", "check", "repair"):
            with self.subTest(verb=verb):
                self.assert_refused(pawl("store", verb, missing), r"\w+")
                self.assert_refused(pawl("store", verb, text), r"\w+")
        self.assertFalse(missing.exists())

    def test_check_finds_a_sound_store_sound(self):
        self.assertEqual(self.json("check"), {"sound": True, "entries": 6, "heads": 3, "problems": []})
        self.assertEqual(self.lines("check"), ["sound: 6 entries, 3 heads, 0 problems"])

    def test_check_ends_with_1_and_names_the_problems_of_a_damaged_store(self):
        path = self.path.parent / "damaged.db"
        subprocess.run([MAKE_STORE, path], check=True, timeout=60)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE log SET version = 7 WHERE seq = 3")
            database.commit()
        run = pawl("store", "check", path)
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"damaged: 6 entries, 3 heads, [1-9]\d* problems\n$")
        found = pawl("store", "check", path, "--json")
        self.assertEqual(found.returncode, 1)
        self.assertFalse(json.loads(found.stdout)["sound"])
        self.assertIn("3", json.loads(found.stdout)["problems"][0])

    def test_repair_rebuilds_a_missing_head_and_says_so(self):
        path = self.path.parent / "headless.db"
        subprocess.run([MAKE_STORE, path], check=True, timeout=60)
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("DELETE FROM heads WHERE NOT finished")
            database.commit()
        self.assertEqual(pawl("store", "check", path).returncode, 1)
        run = pawl("store", "repair", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"^the head of instance \w{32} was rebuilt from entry \d+\n")
        self.assertRegex(run.stdout, r"\nsound: [1-9] repaired, 0 problems left\n$")
        self.assertEqual(pawl("store", "check", path).returncode, 0)
        again = pawl("store", "repair", path, "--json")
        self.assertEqual(json.loads(again.stdout), {"sound": True, "repaired": [], "problems": []})

    def test_a_store_is_read_beside_its_owner(self):
        path = self.path.parent / "owned.db"
        with subprocess.Popen([MAKE_STORE, path, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
            self.assertEqual(owner.stdout.readline(), b"open\n")
            run = pawl("store", "info", path, "--json")
            owner.communicate(timeout=60)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["last"], 6)
        self.assertEqual(owner.returncode, 0)

    def test_looking_changes_nothing(self):
        before = self.path.read_bytes()
        self.json("log")
        self.lines("info")
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual(self.json("info")["epoch"], 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
