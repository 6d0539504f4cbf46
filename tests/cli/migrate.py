#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `pawl migrate` on real stores; what it copies is tested with the stores (tests/postgres/transfer_test.cpp),
and to PostgreSQL and back in tests/postgres/command.py.

    migrate.py <pawl> <cli_store>
"""
import contextlib
import json
import os
import pathlib
import pty
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PAWL, MAKE_STORE = sys.argv[1:3]


class MigrateTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        self.source = self.make("doors.db")

    def make(self, name):
        subprocess.run([MAKE_STORE, self.place / name], check=True, timeout=60)
        return f"sqlite:{self.place / name}"

    def migrate(self, target, *arguments, stderr=subprocess.PIPE):
        return subprocess.run([PAWL, "migrate", "--from", self.source, "--to", target, *arguments],
                              stdout=subprocess.PIPE, stderr=stderr, text=True, check=False, timeout=60)

    def test_it_copies_and_says_so(self):
        target = f"sqlite:{self.place / 'new.db'}"
        run = self.migrate(target)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, "copied: 6 entries, counts and checksums agree\n")
        again = self.migrate(target, "--json")
        self.assertEqual(json.loads(again.stdout), {"entries": 6, "instances": 3, "was_there": True})

    def test_tables_of_the_application_are_not_left_behind_silently(self):
        with contextlib.closing(sqlite3.connect(self.place / "doors.db")) as database:
            database.executescript("CREATE TABLE shelf(x); INSERT INTO shelf VALUES(1); CREATE TABLE bare(x)")
        target = f"sqlite:{self.place / 'new.db'}"
        run = self.migrate(target)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, "which are not copied: shelf. .* --without-application-tables")
        self.assertFalse((self.place / "new.db").exists())
        self.assertEqual(self.migrate(target, "--without-application-tables").returncode, 0)

    def test_a_target_with_another_store_is_refused(self):
        run = self.migrate(self.make("other.db"))
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertRegex(run.stderr, r"^pawl: PAWL-\d+ invalid_argument: the target holds another store")

    def test_a_store_that_is_neither_kind_is_refused(self):
        self.assertEqual(self.migrate("mysql://somewhere").returncode, 1)

    def test_progress_is_drawn_on_a_terminal(self):
        ours, theirs = pty.openpty()
        run = self.migrate(f"sqlite:{self.place / 'new.db'}", stderr=theirs)
        os.close(theirs)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"] 100%", os.read(ours, 10_000))
        os.close(ours)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
