#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the built `pawl serve` as a whole process: start, signals, reload, crash, refusals.

    serve.py <pawl>
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

PAWL = os.path.abspath(sys.argv[1])
PATIENCE = 60


class Server:
    """A running server in a directory of its own."""

    def __init__(self, place, config="demo: true\n", environment=None):
        self.config = pathlib.Path(place) / "pawl.yaml"
        self.config.write_text("listen: 127.0.0.1:0\n" + ("" if "auth:" in config else "auth: {enabled: false}\n") + config, encoding="utf-8")
        self.process = subprocess.Popen(
            [PAWL, "serve"], cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self.ready = self.process.stdout.readline()
        found = re.fullmatch(r"Pawl is ready: https?://127\.0\.0\.1:(\d+)\n", self.ready)
        self.port = int(found[1]) if found else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def call(self, method, path, body=None):
        connection = self.connect()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self):
        """Waits for the end; gives the exit code and what was logged."""
        _, logged = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, logged

    def log_line(self, text):
        """Reads the log until a line has this text."""
        for line in self.process.stderr:
            if text in line:
                return line
        return ""


def follow(server, query=""):
    """An open event stream, as (connection, lines)."""
    connection = server.connect()
    connection.request("GET", "/v1/events" + query)
    return connection, connection.getresponse()


def next_event(stream):
    event = {}
    while True:
        line = stream.readline().decode().rstrip("\n")
        if not line and event.get("data"):
            return event
        name, _, value = line.partition(": ")
        if name in ("id", "event", "data"):
            event[name] = value


class ServeTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = place.name

    def test_the_demo_moves_by_itself_and_is_seen_live(self):
        with Server(self.place) as server:
            _, stream = follow(server, "?machine=demo_order&state=delivered")
            event = next_event(stream)
            entry = json.loads(event["data"])
            self.assertEqual(entry["state"], "delivered")
            status, instance = server.call("GET", f"/v1/instances/demo_order/{entry['key']}")
            self.assertEqual((status, instance["finished"]), (200, True))

    def test_sigterm_drains_and_ends_with_0(self):
        with Server(self.place) as server:
            _, stream = follow(server)
            server.signal(signal.SIGTERM)
            while (event := next_event(stream))["event"] != "end":
                pass
            self.assertEqual(json.loads(event["data"])["code"], "stopped")
            code, logged = server.end()
            self.assertEqual(code, 0, logged)
            self.assertIn("stopping", logged)

    def test_a_second_signal_ends_it_at_once(self):
        with Server(self.place, "drain_timeout: 1h\nlimits: {body_timeout: 1h}\n") as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as held:
                held.sendall(b"POST /v1/instances/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n{")
                self.assertIn(b"100 Continue", held.recv(100))
                server.signal(signal.SIGTERM)
                self.assertIn("stopping", server.log_line("stopping"))
                server.signal(signal.SIGTERM)
                self.assertEqual(server.end()[0], -signal.SIGTERM)

    def test_after_a_kill_everything_answered_is_there(self):
        with Server(self.place) as server:
            body = {"key": "mine", "data": {"item": "lamp", "cents": 700}}
            self.assertEqual(server.call("POST", "/v1/instances/demo_order", body)[0], 201)
            self.assertEqual(
                server.call("POST", "/v1/instances/demo_order/mine/events", {"event": "Cancel"})[0], 200)
            server.signal(signal.SIGKILL)
            server.end()
        with Server(self.place, "") as again:
            # The demo is off, so its machine is not known; the store is, and says so.
            self.assertEqual(again.call("GET", "/v1/instances/demo_order/mine")[0], 404)
        with Server(self.place) as again:
            status, mine = again.call("GET", "/v1/instances/demo_order/mine")
            self.assertEqual((status, mine["state"], mine["version"]), (200, "cancelled", 2))

    def test_after_a_kill_runs_of_flows_go_on(self):
        run = "/v1/flows/demo_delivery/runs/mine"
        with Server(self.place) as server:
            body = {"id": "mine", "request": {"item": "lamp", "city": "Atlantis"}, "delay": "1h"}
            self.assertEqual(server.call("POST", "/v1/flows/demo_delivery/runs", body)[0], 201)
            server.signal(signal.SIGKILL)
            server.end()
        with Server(self.place) as again:
            self.assertRegex(again.log_line("runs go on"), "demo_delivery.*pick")
            self.assertEqual(again.call("GET", run)[1]["state"], "delayed")
            self.assertEqual(again.call("POST", run + "/cancel", {"reason": "enough"})[0], 200)
            self.assertEqual(again.call("GET", run + "/wait?timeout=30s")[1]["state"], "cancelled")

    def test_after_a_kill_interrupted_work_is_run_again(self):
        with Server(self.place) as server:
            server.call("POST", "/v1/instances/demo_order", {"key": "mine", "data": {"item": "lamp", "cents": 700}})
            self.assertEqual(
                server.call("POST", "/v1/instances/demo_order/mine/events", {"event": "Checkout"})[0], 200)
            server.signal(signal.SIGKILL)
            server.end()
        with Server(self.place) as again:
            _, stream = follow(again, "?machine=demo_order&key=mine&after=begin")
            while not next_event(stream)["data"].count('"event":"Charge'):
                pass

    def test_a_login_link_is_printed_where_it_is_asked_for(self):
        with Server(self.place, "auth: {login_link: true}\n") as server:
            self.assertRegex(server.process.stdout.readline(), "^First login: ")
            code = re.fullmatch(r"Dashboard, logs you in once: http://127\.0\.0\.1:\d+/login#(\S+)\n",
                                server.process.stdout.readline())[1]
            self.assertEqual(server.call("POST", "/v1/login/code", {"code": code})[0], 200)

    def test_all_names_every_system(self):
        with Server(self.place, "systems: [all]\n") as server:
            self.assertIn("demo", [system["name"] for system in server.call("GET", "/v1/systems")[1]["systems"]])

    def test_sighup_reloads_what_can_be_reloaded_and_survives_a_wrong_file(self):
        with Server(self.place) as server:
            server.config.write_text("listen: 127.0.0.1:0\nlog: {level: trace}\n", encoding="utf-8")
            server.signal(signal.SIGHUP)
            self.assertIn("reloaded", server.log_line("reloaded"))
            server.config.write_text("lisen: x\n", encoding="utf-8")
            server.signal(signal.SIGHUP)
            self.assertIn("did you mean", server.log_line("was not reloaded"))
            self.assertEqual(server.call("GET", "/healthz")[0], 200)

    def test_sighup_names_what_needs_a_restart(self):
        with Server(self.place) as server:
            text = server.config.read_text(encoding="utf-8")
            server.config.write_text(text + "drain_timeout: 1h\nlimits: {streams: 7}\n", encoding="utf-8")
            server.signal(signal.SIGHUP)
            line = server.log_line("need a restart")
            self.assertIn("drain_timeout, limits.streams", line)
            self.assertNotIn("demo", line)

    def test_sighup_while_it_drains_is_ignored(self):
        with Server(self.place, "drain_timeout: 1h\nlimits: {body_timeout: 1h}\n") as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as held:
                held.sendall(b"POST /v1/instances/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n"
                             b"Content-Type: application/json\r\n\r\n")
                self.assertIn(b"100 Continue", held.recv(100))
                server.signal(signal.SIGTERM)
                self.assertIn("stopping", server.log_line("stopping"))
                server.signal(signal.SIGHUP)
                held.sendall(b"{}")
                self.assertIn(b"HTTP/1.1 400", held.recv(100))
            self.assertEqual(server.end()[0], 0)

    def test_nobody_else_can_read_its_files(self):
        before = os.umask(0o022)
        try:
            with Server(self.place, "auth: {enabled: true}\n") as server:
                data = pathlib.Path(self.place) / "pawl-data"
                self.assertEqual(data.stat().st_mode & 0o777, 0o700)
                for file in data.iterdir():
                    self.assertEqual(file.stat().st_mode & 0o077, 0, file)
                server.signal(signal.SIGTERM)
                self.assertNotIn("can read the server's data directory", server.end()[1])
        finally:
            os.umask(before)

    def test_a_directory_that_others_can_read_is_told_of(self):
        data = pathlib.Path(self.place) / "pawl-data"
        data.mkdir()
        data.chmod(0o755)
        with Server(self.place) as server:
            self.assertIn("pawl-data", server.log_line("can read the server's data directory"))

    def test_a_service_manager_is_told(self):
        path = pathlib.Path(self.place) / "notify"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(str(path))
            manager.settimeout(PATIENCE)
            environment = {"NOTIFY_SOCKET": str(path), "WATCHDOG_USEC": "20000"}
            with Server(self.place, environment=environment) as server:
                self.assertEqual(manager.recv(100), b"READY=1")
                self.assertEqual(manager.recv(100), b"WATCHDOG=1")
                server.signal(signal.SIGTERM)
                while (state := manager.recv(100)) == b"WATCHDOG=1":
                    pass
                self.assertEqual(state, b"STOPPING=1")
                self.assertEqual(server.end()[0], 0)

    def test_the_first_start_prints_a_login(self):
        with Server(self.place, "auth: {enabled: true}\n") as server:
            first = re.fullmatch(r"First login: user (\w+), one-time password (\S+)\n", server.process.stdout.readline())
            self.assertEqual(server.call("GET", "/v1/machines")[0], 401)
            status, body = server.call("POST", "/v1/login", {"user": first[1], "password": first[2]})
            self.assertEqual((status, body["role"], body["must_change_password"]), (200, "admin", True))

    def test_writes_are_audited_whatever_the_level_of_the_log(self):
        with Server(self.place, "demo: true\nlog: {level: error}\n") as server:
            server.call("POST", "/v1/instances/demo_order/none/events", {"event": "Cancel"})
            line = server.log_line("audit")
            for part in ("user=anonymous", "from=127.0.0.1", "did=send_event", "status=404", "/none/events"):
                self.assertIn(part, line)

    def make_certificate(self, name, key=("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")):
        subprocess.run(
            ["openssl", "req", "-x509", *key, "-nodes", "-days",
             "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out",
             "certificate.pem"], cwd=self.place, check=True, capture_output=True, timeout=PATIENCE)

    def tls_suite(self, port, suites):
        """What is agreed upon with a client that offers only these of TLS 1.2."""
        context = ssl.create_default_context(cafile=str(pathlib.Path(self.place) / "certificate.pem"))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suites)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as secured:
                return secured.cipher()[0]

    def test_tls_without_forward_secrecy_is_refused(self):
        self.make_certificate("first", key=("-newkey", "rsa:2048"))
        with Server(self.place, "tls: {certificate: certificate.pem, key: key.pem}\n") as server:
            for suites in ("AES128-GCM-SHA256", "AES256-SHA256", "ECDHE-RSA-AES128-SHA256"):
                with self.assertRaises(ssl.SSLError, msg=suites):
                    self.tls_suite(server.port, suites)
            for suite in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"):
                self.assertEqual(self.tls_suite(server.port, suite), suite)

    def test_a_private_key_that_others_may_read_is_warned_of(self):
        self.make_certificate("first")
        for mode, warned in ((0o600, False), (0o640, True), (0o604, True)):
            (pathlib.Path(self.place) / "key.pem").chmod(mode)
            with Server(self.place, "tls: {certificate: certificate.pem, key: key.pem}\n") as server:
                server.signal(signal.SIGTERM)
                code, logged = server.end()
                self.assertEqual((code, "can read the private key" in logged), (0, warned), logged)

    def tls_call(self, port):
        """Calls over TLS, trusting only the certificate that lies there now."""
        context = ssl.create_default_context(cafile=str(pathlib.Path(self.place) / "certificate.pem"))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer

    def test_tls_is_served_and_its_certificate_reloaded(self):
        self.make_certificate("first")
        with Server(self.place, "tls: {certificate: certificate.pem, key: key.pem}\n") as server:
            answer = self.tls_call(server.port)
            self.assertEqual(answer.status, 200)
            self.assertIn("max-age", answer.getheader("Strict-Transport-Security"))
            self.make_certificate("second")
            with self.assertRaises(ssl.SSLCertVerificationError):
                self.tls_call(server.port)
            server.signal(signal.SIGHUP)
            self.assertIn("reloaded", server.log_line("reloaded"))
            self.assertEqual(self.tls_call(server.port).status, 200)
            # Plain HTTP on this port is no request, and does not disturb it.
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as plain:
                plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertNotIn(b"200 OK", plain.recv(1000))
            server.signal(signal.SIGTERM)
            self.assertEqual(server.end()[0], 0)

    def assert_refused(self, config, code, text):
        with Server(self.place, config) as server:
            self.assertEqual(server.ready, "")
            status, logged = server.end()
            self.assertEqual(status, 1, logged)
            self.assertIn(code, logged)
            self.assertIn(text, logged)

    def test_a_store_that_another_process_owns_is_refused(self):
        with Server(self.place):
            self.assert_refused("demo: true\n", "store_locked", "pawl.db")

    def test_a_wrong_configuration_is_refused(self):
        self.assert_refused("demmo: true\n", "config_invalid", "pawl.yaml:3")
        self.assert_refused("systems: [demmo]\n", "config_invalid", 'did you mean "demo"')
        self.assert_refused("tls: {certificate: no.pem, key: no.pem}\n", "invalid_argument", "no.pem")

    def test_an_address_that_others_reach_is_refused(self):
        run = subprocess.run([PAWL, "serve", "--listen", "0.0.0.0:0"], cwd=self.place, capture_output=True, text=True,
                             check=False, timeout=PATIENCE)
        self.assertEqual(run.returncode, 1)
        self.assertIn("unsafe_address", run.stderr)


class ConfigTest(unittest.TestCase):
    def check(self, text):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "pawl.yaml"
            path.write_text(text, encoding="utf-8")
            return subprocess.run([PAWL, "config", "check", str(path)], capture_output=True, text=True, check=False,
                                  timeout=PATIENCE)

    def test_the_printed_defaults_are_right(self):
        defaults = subprocess.run([PAWL, "config", "default"], capture_output=True, text=True, check=True,
                                  timeout=PATIENCE).stdout
        run = self.check(defaults)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("is right", run.stdout)

    def test_what_serve_would_refuse_is_refused(self):
        for text, said in (("systems: [demmo]\n", 'did you mean "demo"'), ("listen: nowhere\n", "not an address"),
                           ("listen: 0.0.0.0:7420\n", "unsafe_address"),
                           ("tls: {certificate: no.pem, key: no.pem}\n", "no.pem")):
            run = self.check(text)
            self.assertEqual(run.returncode, 1, text)
            self.assertIn(said, run.stderr)

    def test_a_wrong_file_is_refused_with_its_line(self):
        run = self.check("demo: true\nlimits:\n  conections: 5\n")
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r'pawl\.yaml:3: there is no key "limits\.conections" \(did you mean "limits\.connections"')


class SystemTest(unittest.TestCase):
    def test_a_system_brings_verbs(self):
        run = subprocess.run([PAWL, "demo", "diagram"], capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("stateDiagram-v2\n"), run.stdout)
        self.assertEqual(subprocess.run([PAWL, "demo", "dance"], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
