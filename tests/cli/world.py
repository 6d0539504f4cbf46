# SPDX-License-Identifier: Apache-2.0
"""What the command's tests share: running it, a server in a directory of its own, a peer that misbehaves."""
import json
import os
import pathlib
import random
import re
import socket
import subprocess
import threading

PATIENCE = 60


class Place:
    """The built command in an environment of its own: no configuration or credentials of whoever runs the tests."""

    def __init__(self, pawl, directory):
        self.pawl = os.path.abspath(pawl)
        self.directory = pathlib.Path(directory)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith("PAWL_") and name not in ("NO_COLOR", "COLUMNS", "LINES")}
        self.environment = {**kept, "HOME": str(directory), "XDG_CONFIG_HOME": str(self.directory / "config"),
                            "TERM": "xterm-256color"}

    def start(self, *arguments, environment=None, **options):
        return subprocess.Popen([self.pawl, *map(str, arguments)], cwd=self.directory,
                                env={**self.environment, **(environment or {})}, **options)

    def run(self, *arguments, text="", environment=None):
        with self.start(*arguments, environment=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
            out, err = process.communicate(text, timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)


class Server:
    """A running `pawl serve`."""

    def __init__(self, place, config="demo: true\n", port=0, auth=False, first_login=True):
        self.place = place
        path = place.directory / "serve.yaml"
        path.write_text(f"listen: 127.0.0.1:{port}\nauth: {{enabled: {str(auth).lower()}}}\n" + config,
                        encoding="utf-8")
        self.process = place.start("serve", "--config", path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True)
        ready = self.process.stdout.readline()
        self.url = re.fullmatch(r"Pawl is ready: (\S+)\n", ready)[1]
        self.port = int(self.url.rpartition(":")[2])
        self.password = self.process.stdout.readline().split()[-1] if auth and first_login else None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=PATIENCE)

    def pawl(self, *arguments, **options):
        return self.place.run(*arguments, "--url", self.url, **options)

    def json(self, *arguments, **options):
        run = self.pawl(*arguments, "--json", **options)
        if run.returncode != 0 or run.stdout.count("\n") != 1:
            raise AssertionError(f"{arguments}: {run}")
        return json.loads(run.stdout)


def free_port():
    """A port nobody has, below those the system gives to connections, so that none of them takes it meanwhile."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue  # somebody has it


class Peer:
    """Listens and answers each connection with the next of these bytes, or by closing it."""

    def __init__(self, answers):
        self.requests = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve, args=(list(answers),))
        self.thread.start()

    def serve(self, answers):
        for answer in answers:
            connection, _ = self.socket.accept()
            with connection:
                connection.settimeout(PATIENCE)
                self.requests.append(connection.recv(65536))
                try:
                    connection.sendall(answer)
                except OSError:
                    pass  # the command had enough of it

    def close(self):
        self.thread.join(PATIENCE)
        self.socket.close()


def answer(body, status="200 OK", content_type="application/json"):
    """A whole HTTP answer, as bytes."""
    body = body if isinstance(body, bytes) else body.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
