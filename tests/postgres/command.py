#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the built `pawl` with a store in PostgreSQL: a whole server that is killed, and `pawl migrate` there and back.

    command.py <pawl> <cli_store>

Starts a PostgreSQL of its own; without one installed it is skipped, with 77.
"""
import contextlib
import glob
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PAWL, MAKE_STORE = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 60
DELIVERIES = "/v1/flows/demo_delivery/runs"


def programs():
    """The newest PostgreSQL that is installed and new enough, or None."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.path.exists(path + "/initdb")]
    return max((path for path in found if int(path.split("/")[4]) >= 15), key=lambda path: int(path.split("/")[4]),
               default=None)


class Cluster:
    """A PostgreSQL of the test's own. It ends with the test, however that ends."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="pawl_pg_")
        if os.geteuid() == 0:
            shutil.chown(self.place, "postgres", "postgres")
        data = self.place + "/data"
        subprocess.run([*self.role(), programs() + "/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8",
                        "--locale=C.UTF-8", "--no-sync"], check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        with open(self.place + "/log", "wb") as log:
            self.process = subprocess.Popen(
                [*self.role(), programs() + "/postgres", "-D", data, "-k", self.place, "-c", "listen_addresses=", "-c",
                 "dynamic_shared_memory_type=mmap"], stdout=log, stderr=log)
        ready = [programs() + "/pg_isready", "-q", "-h", self.place, "-t", str(PATIENCE)]
        while subprocess.run(ready, check=False, timeout=PATIENCE).returncode != 0:
            if self.process.poll() is not None:
                raise RuntimeError(pathlib.Path(self.place, "log").read_text(encoding="utf-8"))

    @staticmethod
    def role():
        user = ["--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
        return ["setpriv", *user, "--pdeathsig", "QUIT", "--"]

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE)
        shutil.rmtree(self.place)

    def sql(self, text, database="postgres"):
        return subprocess.run(
            [programs() + "/psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.place, "-U", "postgres",
             "-c", text, database], check=True, capture_output=True, text=True, timeout=PATIENCE).stdout.strip()

    def new_database(self, name):
        """The URL of a store in it. Who was killed is followed soon."""
        self.sql(f"CREATE DATABASE {name}")
        return f"postgresql://postgres@/{name}?host={self.place}&pawl_lease=1s"


CLUSTER = None


def setUpModule():
    global CLUSTER
    CLUSTER = Cluster()


def tearDownModule():
    CLUSTER.stop()


class Server:
    def __init__(self, place, store):
        pathlib.Path(place, "pawl.yaml").write_text(
            f"listen: 127.0.0.1:0\nauth: {{enabled: false}}\nsystems: [all]\ndemo: true\nstore: \"{store}\"\n",
            encoding="utf-8")
        self.process = subprocess.Popen([PAWL, "serve"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        ready = self.process.stdout.readline()
        found = re.fullmatch(r"Pawl is ready: http://127\.0\.0\.1:(\d+)\n", ready)
        if not found:
            raise AssertionError(f"{ready!r}, {self.process.communicate(timeout=PATIENCE)}")
        self.port = int(found[1])

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)


def pawl(*arguments):
    return subprocess.run([PAWL, *arguments], capture_output=True, text=True, check=False, timeout=PATIENCE)


class CommandTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def serve(self, store):
        server = Server(self.place, store)
        self.addCleanup(server.kill)
        return server

    def ended_run(self, server):
        run = server.call("GET", DELIVERIES + "/mine/wait?timeout=50s")[1]
        self.assertTrue(run["finished"], run)
        return run

    def test_a_server_with_every_system_that_is_killed_has_everything_again(self):
        store = CLUSTER.new_database("serving")
        server = self.serve(store)
        systems = sorted(system["name"] for system in server.call("GET", "/v1/systems")[1]["systems"])
        self.assertIn("demo", systems)
        self.assertEqual(server.call("POST", "/v1/instances/demo_order",
                                     {"key": "mine", "data": {"item": "lamp", "cents": 700}})[0], 201)
        self.assertEqual(server.call("POST", "/v1/instances/demo_order/mine/events", {"event": "Cancel"})[0], 200)
        order = server.call("GET", "/v1/instances/demo_order/mine")
        body = {"id": "mine", "request": {"item": "lamp", "city": "Atlantis"}}
        self.assertEqual(server.call("POST", DELIVERIES, body)[0], 201)
        self.assertEqual(self.ended_run(server)["state"], "aborted")
        # Another generation, whose beginning the store has to keep as well.
        self.assertEqual(server.call("POST", DELIVERIES + "/mine/retry", {})[0], 200)
        run = self.ended_run(server)
        self.assertEqual((run["state"], run["generation"]), ("aborted", 2))
        history = server.call("GET", "/v1/instances/demo_delivery/mine/history")
        server.kill()

        again = self.serve(store)
        self.assertEqual(sorted(system["name"] for system in again.call("GET", "/v1/systems")[1]["systems"]), systems)
        self.assertEqual(again.call("GET", "/v1/instances/demo_order/mine"), order)
        self.assertEqual(again.call("GET", DELIVERIES + "/mine"), (200, run))
        self.assertEqual(again.call("GET", f"/v1/runs/{run['ulid']}"), (200, run))
        self.assertEqual(again.call("GET", "/v1/instances/demo_delivery/mine/history"), history)
        self.assertEqual(again.call("POST", DELIVERIES, {**body, "id": "next"})[0], 201)

    def migrate(self, source, target, *arguments):
        return pawl("migrate", "--from", source, "--to", target, *arguments)

    def copied(self, source, target):
        run = self.migrate(source, target)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, "copied: 6 entries, counts and checksums agree\n")
        listed = pawl("ls", "--store", target, "--json")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual(json.loads(listed.stdout), json.loads(pawl("ls", "--store", source, "--json").stdout))

    def log_of(self, path):
        with contextlib.closing(sqlite3.connect(path)) as database:
            return database.execute("SELECT * FROM log ORDER BY seq").fetchall()

    def test_a_store_moves_to_postgresql_and_back(self):
        first, last = self.place / "doors.db", self.place / "back.db"
        subprocess.run([MAKE_STORE, first], check=True, timeout=PATIENCE)
        between = CLUSTER.new_database("moving")
        self.copied(f"sqlite:{first}", between)
        self.copied(between, f"sqlite:{last}")
        self.assertEqual(self.log_of(first), self.log_of(last))

    def test_tables_of_the_application_are_not_left_behind_silently(self):
        first = self.place / "doors.db"
        subprocess.run([MAKE_STORE, first], check=True, timeout=PATIENCE)
        between = CLUSTER.new_database("shelves")
        self.copied(f"sqlite:{first}", between)
        CLUSTER.sql("CREATE TABLE shelf(x int); INSERT INTO shelf VALUES(1)", "shelves")
        back = f"sqlite:{self.place / 'back.db'}"
        refused = self.migrate(between, back)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("which are not copied: shelf.", refused.stderr)
        self.assertEqual(self.migrate(between, back, "--without-application-tables").returncode, 0)


if __name__ == "__main__":
    if not programs():
        print("PostgreSQL 15 is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
