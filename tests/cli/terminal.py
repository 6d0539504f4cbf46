#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the built command does only where a terminal is: colours, widths, the screen of top, hidden passwords.

    terminal.py <pawl> <cli_store>
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import world

PAWL, MAKE_STORE = map(os.path.abspath, sys.argv[1:3])
PAINT = re.compile(r"\x1b\[\d+m")


class Terminal:
    """The command on a pseudo-terminal of this size."""

    def __init__(self, place, *arguments, rows=24, columns=80, environment=None):
        self.main, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.inner = inner
        self.before = termios.tcgetattr(inner)
        self.text = ""

        def own_terminal():
            os.setsid()
            fcntl.ioctl(inner, termios.TIOCSCTTY, 0)

        self.process = place.start(*arguments, environment=environment, stdin=inner, stdout=inner, stderr=inner,
                                   preexec_fn=own_terminal)

    def read(self):
        """What comes next; nothing where nothing came within the patience."""
        ready, _, _ = select.select([self.main], [], [], world.PATIENCE)
        piece = os.read(self.main, 65536).decode("utf-8", "replace") if ready else ""
        self.text += piece
        return piece

    def wait_for(self, pattern):
        while not re.search(pattern, self.text):
            if not self.read():
                raise AssertionError(f"{pattern} did not come: {self.text!r}")

    def type(self, text):
        os.write(self.main, text.encode())

    def end(self):
        """The exit code, once everything was read."""
        while self.process.poll() is None:
            ready, _, _ = select.select([self.main], [], [], 0.05)
            if ready:
                self.read()
        while select.select([self.main], [], [], 0)[0]:
            self.read()
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(world.PATIENCE)
        os.close(self.inner)
        os.close(self.main)


class TerminalTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.place = world.Place(PAWL, directory.name)
        cls.store = cls.place.directory / "doors.db"
        subprocess.run([MAKE_STORE, cls.store], check=True, timeout=world.PATIENCE)
        cls.server = world.Server(cls.place)
        cls.addClassCleanup(cls.server.kill)

    def terminal(self, *arguments, **options):
        made = Terminal(self.place, *arguments, **options)
        self.addCleanup(made.close)
        return made

    def shown(self, *arguments, **options):
        terminal = self.terminal(*arguments, **options)
        self.assertEqual(terminal.end(), 0, terminal.text)
        return terminal.text

    def test_colours_are_for_terminals_that_want_them(self):
        ls = ("ls", "--store", self.store)
        self.assertRegex(self.shown(*ls), PAINT)
        self.assertNotRegex(self.shown(*ls, environment={"NO_COLOR": "1"}), r"\x1b")
        self.assertNotRegex(self.shown(*ls, environment={"TERM": "dumb"}), r"\x1b")
        self.assertNotIn("\x1b", self.place.run(*ls).stdout)

    def test_lines_end_at_the_width_of_the_terminal(self):
        for columns in (40, 60):
            lines = PAINT.sub("", self.shown("ls", "--store", self.store, columns=columns)).splitlines()
            self.assertEqual(max(map(len, lines)), columns)
            self.assertTrue(any(line.endswith("…") for line in lines))

    def test_hostile_keys_do_not_steer_the_terminal(self):
        text = PAINT.sub("", self.shown("ls", "--store", self.store, columns=200))
        self.assertIn(r"bell\x07\x1b[31m", text)
        self.assertNotRegex(text, r"[\x00-\x09\x0b\x0c\x0e-\x1f]")
        self.assertNotIn("\a", self.shown("ls", "--store", self.store, "--json"))

    def test_wide_characters_keep_columns_aligned(self):
        for key in ("日本語", "émigré", "e\u0301", "plain"):
            self.server.json("create", "demo_order", key)
        lines = PAINT.sub("", self.shown("ls", "demo_order", "-n", 1000, "--url", self.server.url, columns=200))
        [wide] = [line for line in lines.splitlines() if "日本語" in line]
        [plain] = [line for line in lines.splitlines() if " plain " in line]
        [composed] = [line for line in lines.splitlines() if "e\u0301 " in line]
        self.assertEqual(wide.index("placed") + 3, plain.index("placed"))
        self.assertEqual(composed.index("placed") - 1, plain.index("placed"))

    def test_top_draws_until_q_and_leaves_the_terminal_as_it_was(self):
        top = self.terminal("top", "--url", self.server.url, rows=12)
        top.wait_for(r"\x1b\[\?1049h")
        top.wait_for(r"entries/s")
        top.wait_for(r"BUSIEST|scroll \(1 of")
        self.assertFalse(termios.tcgetattr(top.inner)[3] & termios.ECHO)
        top.type("\x1b[B")
        top.wait_for(r"scroll \(2 of")
        top.type("q")
        self.assertEqual(top.end(), 0)
        self.assertTrue(top.text.endswith("\x1b[?25h\x1b[?1049l"), top.text[-40:])
        self.assertEqual(termios.tcgetattr(top.inner), top.before)

    def test_top_restores_the_terminal_when_a_signal_ends_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                top = self.terminal("top", "--url", self.server.url)
                top.wait_for("q quit")
                top.process.send_signal(number)
                self.assertEqual(top.end(), -number)
                self.assertTrue(top.text.endswith("\x1b[?25h\x1b[?1049l"), top.text[-40:])
                self.assertEqual(termios.tcgetattr(top.inner), top.before)

    def test_top_outlives_its_server(self):
        place = world.Place(PAWL, tempfile.mkdtemp(dir=self.place.directory))
        port = world.free_port()
        server = world.Server(place, port=port)
        top = self.terminal("top", "--url", server.url)
        top.wait_for("q quit")
        server.kill()
        top.wait_for("nothing listens there")
        again = world.Server(place, port=port)
        self.addCleanup(again.kill)
        top.text = ""
        top.wait_for("q quit")
        top.type("q")
        self.assertEqual(top.end(), 0)

    def test_top_once_prints_a_frame_and_no_screen(self):
        text = self.shown("top", "--once", "--url", self.server.url)
        self.assertNotIn("\x1b[?1049h", text)
        self.assertIn("INSTANCES", text)

    def test_a_backup_shows_a_bar_and_clears_it(self):
        text = self.shown("backup", "bar.db", "--store", self.store)
        self.assertRegex(text, r"backup [█░]{30} +\d+ %")
        self.assertTrue(text.endswith("\r\x1b[Kbar.db\r\n"), text[-40:])

    def test_passwords_are_not_shown(self):
        place = world.Place(PAWL, tempfile.mkdtemp(dir=self.place.directory))
        server = world.Server(place, auth=True)
        self.addCleanup(server.kill)
        login = Terminal(place, "login", "--url", server.url)
        self.addCleanup(login.close)
        login.wait_for("password of admin: ")
        login.type(server.password + "\n")
        login.wait_for("new password: ")
        login.type("correct horse battery\n")
        login.wait_for("once more: ")
        login.type("correct horse battery\n")
        self.assertEqual(login.end(), 0, login.text)
        self.assertNotIn("horse", login.text)
        self.assertNotIn(server.password, login.text)
        self.assertEqual(termios.tcgetattr(login.inner), login.before)
        self.assertIn("machines", json.loads(place.run("machines", "--url", server.url, "--json").stdout))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
