#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a server that processes images, again and again, and looks at what is there afterwards.

    kill.py <pawl> [kills] [seed]

Images come from files and, where Swift is installed, through a slow line from a real object store. Half of the kills
wait until a run downloads or extracts; the others come at any time. An attempt that is cut off counts, so no image is
let through more than two kills. In the end every image has to be there as its archive says, and nothing else.
"""
import collections
import http.client
import json
import os
import pathlib
import random
import sqlite3
import sys
import tempfile
import time

import images_world as world
from images_world import PATIENCE

PAWL = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(1 << 32)
SLOW = 3_000_000  # bytes per second
LONGEST = 1.5  # seconds, for a kill at any time
PARTS = ("download-image", "unpack-image", "activate-image")


class Driver:
    def __init__(self, top, swift):
        self.top = pathlib.Path(top)
        self.numbers = random.Random(SEED)
        self.place = world.Place(PAWL, top)
        self.swift = swift
        self.relay = world.Relay(swift.port) if swift else None
        self.archives = {}  # by image
        self.kills_of = collections.Counter()  # how many an image has lived through
        self.moments = collections.Counter()  # steps that were under way at a kill
        (self.top / "in").mkdir()
        self.serve()

    def serve(self):
        store = ""
        if self.relay:
            self.relay.bytes_per_second = SLOW
            (self.top / "secret").write_text(world.SWIFT_SECRET, encoding="utf-8")
            store = (f"  s3_endpoint: http://127.0.0.1:{self.relay.port}\n  s3_key_id: {world.SWIFT_KEY}\n"
                     f"  s3_secret_file: {self.top}/secret\n")
        self.server = world.Server(
            self.place, f"data: data\nsystems: [images]\nimages:\n  files: {self.top}/in\n  volume_size: 1GiB\n{store}")

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        if answer.status >= 400 and answer.status != 404:
            raise AssertionError(f"{method} {path}: {answer.status} {content}")
        return content

    def begin(self, number):
        """Two more images, one from each kind of source."""
        for kind in ("file", "s3") if self.swift else ("file", "file"):
            name = f"{kind}-{number}-{len(self.archives)}"
            archive = world.make_image(self.top / "in" / f"{name}.tar", seed=self.numbers.randrange(1 << 30), files=1500,
                                       file_bytes=4000)
            url = f"file://{archive}"
            if kind == "s3":
                self.swift.put("bucket", f"{name}.tar", archive.read_bytes())
                url = f"s3://bucket/{name}.tar"
            self.archives[name] = archive
            self.call("POST", "/v1/images", {"url": url, "image_id": name})

    def steps(self):
        """The step of each part that is under way."""
        found = []
        for image in self.call("GET", "/v1/images")["images"]:
            found += [run["step"] for run in image["runs"] if run["flow"] in PARTS and run["state"] == "running"]
        return found

    def kill(self, number):
        wanted = {0: "download" if self.swift else "validate", 2: "extract-layers"}.get(number % 4)
        if not wanted:
            world.let_pass(self.numbers.uniform(0, LONGEST))
        end = time.monotonic() + PATIENCE
        while True:
            # What is under way is looked at last, right before the kill.
            unfinished = self.unfinished()
            seen = self.steps()
            if wanted in seen:
                world.let_pass(self.numbers.uniform(0, 0.05))
                seen = self.steps()
            if not wanted or wanted in seen or time.monotonic() > end:
                break
            if not unfinished:
                self.begin(number)  # all were faster than one could look
        self.server.kill()
        self.moments.update(seen or ["nothing"])
        self.kills_of.update(unfinished)

    def unfinished(self):
        return [name for name in self.archives if not self.run_of(name).get("finished")]

    def run_of(self, name):
        return self.call("GET", f"/v1/flows/process-image/runs/{name}")

    def wait(self, name):
        end = time.monotonic() + 3 * PATIENCE
        while not (run := self.run_of(name)).get("finished") and time.monotonic() < end:
            self.call("GET", f"/v1/flows/process-image/runs/{name}/wait?timeout=30s")
        return run

    def spare(self):
        """Lets those end that have lived through two kills."""
        for name, count in self.kills_of.items():
            if count > 1:
                self.wait(name)

    def finish(self):
        """Waits for all; gives what did not end well."""
        if self.relay:
            self.relay.bytes_per_second = 0
        runs = {name: self.wait(name) for name in self.archives}
        return [f"{name}: {run}" for name, run in runs.items() if run.get("state") not in ("done", "handed_off")]

    def compare(self):
        """Images whose tree is another one than GNU tar's."""
        different = []
        for name, archive in self.archives.items():
            image = self.call("GET", f"/v1/images/{name}")
            active = [one for one in image.get("snapshots", []) if one["active"]]
            if len(active) != 1:
                different.append(f"{name}: {image}")
                continue
            expected = world.unpack_with_tar(archive, self.top / f"expected-{name}")
            wrong = world.tree_difference(expected, active[0]["device_path"])
            different += [f"{name}: {line}" for line in wrong[:5]]
        return different

    def audit(self):
        """What is in the pool or in the tables only, or half there. The server has ended."""
        wrong = []
        database = sqlite3.connect(self.top / "data/pawl.db")

        def rows(text):
            return database.execute(text).fetchall()

        volumes = rows("SELECT id, state, kind, image_id FROM images_volumes")
        wrong += [f"volume {row} is not made" for row in volumes if row[1] != "made"]
        wrong += [f"image {row} is not complete" for row in rows("SELECT image_id, download_status, activation_status FROM images")
                  if row[1:] != ("completed", "active")]
        known = {row[0] for row in rows("SELECT device_id FROM images_unpacked UNION SELECT snapshot_id FROM images_snapshots")}
        wrong += [f"volume {number} belongs to nothing" for number in {row[0] for row in volumes} ^ known]
        if len(volumes) != 2 * len(self.archives):
            wrong.append(f"{len(volumes)} volumes of {len(self.archives)} images")
        database.close()
        places = sorted(os.listdir(self.top / "data/images/pool/volumes"))
        if len(places) != len(volumes):
            wrong.append(f"the pool has {places}, the tables {sorted(row[0] for row in volumes)}")
        archives = sorted(os.listdir(self.top / "data/images/archives"))
        if archives != sorted(f"{name}.tar" for name in self.archives):
            wrong.append(f"archives: {archives}")
        return wrong


def drive(top, swift):
    driver = Driver(top, swift)
    try:
        for number in range(KILLS):
            driver.spare()
            driver.begin(number)
            driver.kill(number)
            driver.serve()
        lost = driver.finish()
        garbage = driver.call("GET", "/v1/image-garbage")["garbage"]
        different = driver.compare()
    finally:
        driver.server.kill()
        if driver.relay:
            driver.relay.close()
    orphans = [str(one) for one in garbage] + driver.audit()
    print("killed during " + ", ".join(f"{step} ({count})" for step, count in sorted(driver.moments.items())))
    for line in lost + different + orphans:
        print(line)
    missed = {"extract-layers", "download"} - driver.moments.keys() if swift and KILLS >= 3 else set()
    if missed:
        print(f"no kill came during {', '.join(missed)}")
    bad = bool(lost or different or orphans or missed)
    if bad:
        print(f"seed={SEED}")
    print(f"kills={KILLS} images={len(driver.archives)} lost={len(lost) + len(different)} orphans={len(orphans)}")
    return 1 if bad else 0


def main():
    with tempfile.TemporaryDirectory() as top:
        if world.Swift.obstacle():
            print(f"without an object store: {world.Swift.obstacle()}")
            return drive(top, None)
        with tempfile.TemporaryDirectory() as store:
            swift = world.Swift(store)
            try:
                return drive(top, swift)
            finally:
                swift.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BaseException as problem:
        if not isinstance(problem, SystemExit):
            print(f"seed={SEED}")
        raise
