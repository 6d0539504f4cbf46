#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scenarios of workers in real time: with real processes, and with a broker that goes away under load.

    realtime.py <pawl>
"""
import datetime
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import workers_world as world
from workers_world import PATIENCE, free_port, let_pass, wait_until

PAWL = os.path.abspath(sys.argv[1])
MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
CLIENTS = 10
EXPECT_EVERY = 1  # seconds
LINE = """\
  - name: line
    workerType: parent
    userSpec:
      config: |
        children_count: 2
        child_worker_type: process
        child_config: |
          command: [/bin/sh, -c, exec sleep 100000]
          environment: {DEVICE: '{{ .DEVICE_ID }}'}
          backoff_first: 300ms
          stop_grace: 2s
"""
CHILDREN = ("line/child-0", "line/child-1")


def is_there(pid):
    return os.path.exists(f"/proc/{pid}")


class RealCase(unittest.TestCase):
    settings = ""

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = pathlib.Path(directory.name)
        self.workers = world.Workers(world.Place(PAWL, directory.name), self.settings)
        self.addCleanup(self.clear)

    def clear(self):
        """No process is left behind, whatever became of the test."""
        if self.workers.server.process.poll() is None:
            self.workers.apply("children: []")
            wait_until(lambda: not self.workers.states(), self.workers.states)
        self.workers.server.kill()

    def apply(self, children):
        status, answer = self.workers.apply("children:\n" + children)
        self.assertEqual(status, 200, answer)

    def pid(self, path):
        return self.workers.show(path)["observed"]["pid"]

    def moves(self, path):
        """The states that a worker has entered, oldest first."""
        history = self.workers.show(path)["history"]
        return [event["state"] for event in reversed(history) if event["event"] == "Moved"]


class ProcessScenarios(RealCase):
    def test_simple(self):
        self.apply(LINE)
        self.workers.wait_for("line", "Running")
        pids = [self.pid(path) for path in CHILDREN]
        self.assertEqual(len(set(pids)), 2)
        for number, pid in enumerate(pids):
            self.assertIn(f"DEVICE=device-{number}".encode(), pathlib.Path(f"/proc/{pid}/environ").read_bytes())
        self.assertEqual(self.workers.call("POST", "/v1/workers/line/park", {})[0], 200)
        self.workers.wait_for("line", "Stopped")
        self.assertFalse([pid for pid in pids if is_there(pid)])
        self.assertEqual(self.moves("line"), ["TryingToStart", "Running", "TryingToStop", "Stopped"])
        self.assertEqual(self.workers.call("POST", "/v1/workers/line/run", {})[0], 200)
        self.workers.wait_for("line", "Running")
        self.assertTrue(all(is_there(self.pid(path)) for path in CHILDREN))

    def test_cascade(self):
        self.apply(LINE)
        self.workers.wait_for("line", "Running")
        for path in CHILDREN:
            os.kill(self.pid(path), signal.SIGKILL)
        wait_until(lambda: self.moves("line")[-2:] == ["Degraded", "Running"], lambda: self.moves("line"))
        for path in CHILDREN:
            shown = self.workers.show(path)
            self.assertEqual((shown["worker"]["state"], shown["observed"]["restarts"]), ("Running", 1), shown)

    def test_panic(self):
        self.apply(LINE + "  - {name: wild, workerType: panic, userSpec: {config: {should_panic: true}}}\n")
        self.workers.wait_for("line", "Running")
        pids = [self.pid(path) for path in CHILDREN]
        wait_until(lambda: self.workers.show("wild")["worker"]["failures"] >= 2, lambda: self.workers.show("wild"))
        self.assertIn("threw", self.workers.show("wild")["worker"]["problem"])
        self.assertEqual(self.workers.state("wild"), "TryingToConnect")
        self.assertEqual([self.pid(path) for path in CHILDREN], pids)
        self.assertEqual(self.workers.state("line"), "Running")


class DrainScenario(RealCase):
    settings = "  on_stop: drain\n  drain_base: 20s\n"

    def test_drain(self):
        self.apply(LINE)
        self.workers.wait_for("line", "Running")
        pids = [self.pid(path) for path in CHILDREN]
        self.workers.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.workers.server.process.wait(PATIENCE), 0)
        self.assertFalse([pid for pid in pids if is_there(pid)])


class Broker:
    """A real mosquitto."""

    def __init__(self, top):
        self.port = free_port()
        self.config = top / "mosquitto.conf"
        self.config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\n",
                               encoding="utf-8")
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.config], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until(self.answers, "mosquitto answers")

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), PATIENCE).close()
            return True
        except OSError:
            return False

    def stop(self):
        self.process.kill()
        self.process.wait(PATIENCE)


class Publisher:
    """Sends messages all the time, and connects again when the broker is back. Remembers when it sent each of them."""

    def __init__(self, port):
        self.port = port
        self.sent = []
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        # Packets of MQTT 3.1.1: CONNECT with the client id "load"; PUBLISH of "x" to the topic "t" without acknowledgement.
        connect = b"\x10\x10\x00\x04MQTT\x04\x02\x00\x00\x00\x04load"
        publish = b"\x30\x04\x00\x01tx"
        while not self.ends.is_set():
            try:
                with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as line:
                    line.sendall(connect)
                    if not line.recv(4):
                        continue
                    while not self.ends.wait(0.005):
                        at = time.time()
                        line.sendall(publish)
                        self.sent.append(at)
            except OSError:
                self.ends.wait(0.05)  # the broker is away

    def silences(self, longer_than):
        """When messages came again after nobody had sent any for so long."""
        sent = list(self.sent)
        return [after for before, after in zip(sent, sent[1:]) if after - before > longer_than]

    def close(self):
        self.ends.set()
        self.thread.join(PATIENCE)


def gap_of(observed):
    """When the last gap began and when it was over, which is told in whole seconds."""
    gap = observed["last_gap"]
    begun = datetime.datetime.fromisoformat(gap["from"].replace("Z", "+00:00")).timestamp()
    return begun, begun + float(gap["lasted"].removesuffix("s")) + 1


@unittest.skipUnless(MOSQUITTO, "mosquitto is not installed; scripts/setup installs it")
class BrokerScenario(RealCase):
    def test_every_client_is_back_and_every_gap_is_reported(self):
        broker = Broker(self.top)
        self.addCleanup(broker.stop)
        publisher = Publisher(broker.port)
        self.addCleanup(publisher.close)
        names = [f"client-{number}" for number in range(CLIENTS)]
        self.apply("".join(f"  - name: {name}\n    workerType: mqtt_client\n    userSpec:\n      config:\n"
                           f"        url: mqtt://127.0.0.1:{broker.port}\n        topics: [{{topic: t}}]\n"
                           f"        expect_every: {EXPECT_EVERY}s\n" for name in names))
        seen = lambda name: (self.workers.show(name) or {}).get("observed")  # noqa: E731
        for name in names:
            wait_until(lambda name=name: seen(name) and seen(name).get("receiving"), lambda name=name: seen(name))
        for gaps in (1, 2):
            broker.stop()
            for name in names:
                wait_until(lambda name=name: not seen(name)["connected"], lambda name=name: seen(name))
            let_pass(1.5 * EXPECT_EVERY)  # so that it is a gap for everybody
            broker.start()
            for name in names:
                wait_until(lambda name=name: seen(name)["receiving"] and self.workers.state(name) == "Connected",
                           lambda name=name: self.workers.show(name)["worker"])
                wait_until(lambda name=name, gaps=gaps: seen(name)["gaps"] >= gaps and "lasted" in seen(name)["last_gap"],
                           lambda name=name: seen(name))
            # Nobody gets a message before it is sent: who was told of all has a gap that reaches to where it was over.
            silences = publisher.silences(EXPECT_EVERY)
            self.assertGreaterEqual(len(silences), gaps)
            for name in names:
                found = seen(name)
                self.assertGreaterEqual(found["gaps"], len(silences), found)
                begun, over = gap_of(found)
                self.assertLess(begun, silences[-1], found)
                self.assertGreaterEqual(over, silences[-1], found)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[2:]])
