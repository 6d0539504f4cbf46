#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the unit of the service and the configurations that come along, with systemd's own tools and the command.

    service.py <pawl> <deploy directory>
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PAWL = os.path.abspath(sys.argv[1])
DEPLOY = pathlib.Path(sys.argv[2])
UNIT = DEPLOY / "systemd" / "pawl.service"
# Tenths of systemd's scale from 0 (closed) to 10 (open): a hardening that is taken away is noticed.
MOST_EXPOSED = 15


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def settings(unit):
    return dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))


class ServiceTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_systemd_accepts_the_unit(self):
        with tempfile.TemporaryDirectory() as place:
            unit = pathlib.Path(place, "pawl.service")
            # The command is not installed while it is tested.
            unit.write_text(UNIT.read_text().replace("/usr/bin/pawl", PAWL), encoding="utf-8")
            code, said = run("systemd-analyze", "verify", "--man=no", unit)
            self.assertEqual((code, said), (0, ""))

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd is not installed")
    def test_the_service_is_closed_off(self):
        code, said = run("systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", UNIT)
        self.assertEqual(code, 0, said)

    def test_systemd_waits_longer_than_the_server_drains(self):
        _, defaults = run(PAWL, "config", "default")
        drain = int(re.search(r"^drain_timeout: (\d+)s", defaults, re.MULTILINE)[1])
        stop = int(settings(UNIT.read_text())["TimeoutStopSec"].removesuffix("s"))
        self.assertGreater(stop, drain)

    def test_there_are_descriptors_for_all_connections(self):
        _, defaults = run(PAWL, "config", "default")
        connections = int(re.search(r"^ +connections: (\d+)", defaults, re.MULTILINE)[1])
        self.assertGreater(int(settings(UNIT.read_text())["LimitNOFILE"]), connections)

    def test_the_configurations_are_valid_and_keep_their_data_where_the_service_may_write(self):
        for name in ("systemd", "container"):
            with self.subTest(name):
                file = DEPLOY / name / "pawl.yaml"
                code, said = run(PAWL, "config", "check", file)
                self.assertEqual(code, 0, said)
                self.assertRegex(file.read_text(), r"(?m)^data: /var/lib/pawl$")
        self.assertEqual(settings(UNIT.read_text())["StateDirectory"], "pawl")

    def test_the_health_check_of_the_container_tells_a_server_from_none(self):
        check = re.search(r"^HEALTHCHECK .*?CMD (.*)$", (DEPLOY / "container" / "Containerfile").read_text(),
                          re.MULTILINE)[1]
        with tempfile.TemporaryDirectory() as place:
            environment = {"PATH": f"{os.path.dirname(PAWL)}:{os.environ['PATH']}", "HOME": place}
            server = subprocess.Popen([PAWL, "serve", "--data", place, "--listen", "127.0.0.1:0"], cwd=place, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                environment["PAWL_URL"] = server.stdout.readline().strip().rpartition(" ")[2]
                self.assertEqual(subprocess.run(["sh", "-c", check], env=environment, check=False).returncode, 0)
            finally:
                server.terminate()
                server.communicate(timeout=60)
            self.assertEqual(subprocess.run(["sh", "-c", check], env=environment, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
