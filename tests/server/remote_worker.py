#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the example of a worker elsewhere against the example of a server with a remote step.

    remote_worker.py <example_flow_remote> <examples/remote_worker.py>
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.request

SERVER, WORKER = map(os.path.abspath, sys.argv[1:3])
PATIENCE = 60


class RemoteWorkerTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.server = subprocess.Popen([SERVER, "stay"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       cwd=directory.name)
        self.addCleanup(self.server.communicate, timeout=PATIENCE)  # the end of its input ends it
        self.url = self.server.stdout.readline().strip()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"} if data else {})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)

    def start(self, run):
        self.call("/v1/flows/thumbnails/runs", {"id": run, "request": {"name": run, "sizes": [64, 128]}})

    def worker(self, pause=0):
        process = subprocess.Popen([sys.executable, WORKER, self.url, "thumbnails", "render", "1"],
                                   stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "WORKER_PAUSE": str(pause)})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def ended(self, run):
        return self.call(f"/v1/flows/thumbnails/runs/{run}/wait?timeout=50s")

    def test_a_worker_does_the_step(self):
        self.start("cat")
        worker = self.worker()
        self.assertEqual(worker.communicate(timeout=PATIENCE)[0], "render cat, attempt 1\n")
        run = self.ended("cat")
        self.assertEqual((run["state"], run["response"]),
                         ("done", {"files": ["cat-64.png", "cat-128.png"], "published": True}))

    def test_heartbeats_keep_a_step_for_longer_than_its_lease(self):
        self.start("owl")
        worker = self.worker(pause=1)  # for each of two pictures; the lease is one second
        self.assertEqual(worker.communicate(timeout=PATIENCE)[0], "render owl, attempt 1\n")
        self.assertEqual(self.ended("owl")["state"], "done")

    def test_the_step_of_a_killed_worker_is_done_by_the_next(self):
        self.start("dog")
        lost = self.worker(pause=3600)
        self.assertEqual(lost.stdout.readline(), "render dog, attempt 1\n")
        lost.kill()
        self.assertEqual(self.worker().communicate(timeout=PATIENCE)[0], "render dog, attempt 2\n")
        self.assertEqual(self.ended("dog")["state"], "done")
        spans = self.call("/v1/flows/thumbnails/runs/dog/timeline")["spans"]
        attempts = [(span["attempt"], span["outcome"]) for span in spans
                    if span["kind"] == "attempt" and span["step"] == "render"]
        self.assertEqual(attempts, [(1, "failed"), (2, "done")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
