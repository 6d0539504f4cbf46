# SPDX-License-Identifier: Apache-2.0
"""What the whole system's tests share: a server with workers, and waiting for what it does by itself."""
import http.client
import json
import pathlib
import select
import sys
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from world import PATIENCE, Place, Server, free_port  # noqa: E402,F401 (the path has to be known first)


def let_pass(seconds):
    """For what time itself is the matter of: a kill at any moment, the pause between two looks."""
    select.select([], [], [], seconds)


def wait_until(holds, what, patience=PATIENCE):
    """The first true value of `holds`."""
    end = time.monotonic() + patience
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what() if callable(what) else what}")
        let_pass(0.05)


class Workers:
    """A server with workers, and what it says of them."""

    def __init__(self, place, settings="", port=0):
        self.server = Server(place, "data: data\nallow_programs_without_auth: true\nsystems: [workers]\n"
                             f"workers:\n  tick: 50ms\n{settings}", port=port)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"} if text is not None else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)

    def show(self, path):
        status, found = self.call("GET", "/v1/workers/" + urllib.parse.quote(path, safe=""))
        return found if status == 200 else None

    def state(self, path):
        found = self.show(path)
        return found["worker"]["state"] if found else None

    def states(self):
        return {worker["path"]: worker["state"] for worker in self.call("GET", "/v1/workers")[1]["workers"]}

    def wait_for(self, path, state):
        wait_until(lambda: self.state(path) == state, lambda: f"{path} is {state}: {self.show(path)}")

    def apply(self, yaml, **more):
        return self.call("PUT", "/v1/worker-tree", {"yaml": yaml, **more})
