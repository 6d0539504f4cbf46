#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a server that works on images, again and again, and looks at what is there afterwards.

    kill.py <pawl> [kills] [seed] [--backend dir|reflink|btrfs]

Images come from files and, where Swift is installed, through a slow line from a real object store. While they are
processed, others are deactivated, activated, given a second snapshot, removed, and garbage is collected. Most kills
wait for a step and come while it runs; the others come at any time. What was under way is read from the store after
the kill, so a step counts as hit only if it really was. An attempt that is cut off counts, so no run is let through
more than two kills. In the end every image has to be there as its archive says, and nothing else. Ends with 77, and
says why, where the back end cannot be had.
"""
import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import images_world as world
from images_world import PATIENCE

SLOW = 3_000_000  # bytes per second
LONGEST = 1.5  # seconds, for a kill at any time
MOST_KILLS_OF_A_RUN = 2
ANY = "any time"
# In this order, then again from the start: a few kills hit those that matter most, many hit all.
WANTED = ("extract-layers", "remove-volumes", "create-snapshot", "deactivate", "download", "collect", ANY, "remove-archive",
          "create-device", "validate", "register", "update-db", "verify-layout", "store-metadata", ANY)
# Steps of what somebody asks for, and what to ask for. The others are steps of processing an image.
ASKED = {"deactivate": "deactivate", "remove-volumes": "rm", "remove-archive": "rm", "collect": "gc"}


class Driver:
    def __init__(self, top, swift, options):
        self.top = pathlib.Path(top)
        self.numbers = random.Random(options.seed)
        self.place = world.Place(os.path.abspath(options.pawl), top)
        self.backend = options.backend
        self.swift = swift
        self.relay = world.Relay(swift.port) if swift else None
        self.archives = {}  # by image; of those that were not removed
        self.removed = []
        self.refusals = []
        self.asked = []  # threads that ask the server for something
        self.made = 0  # archives
        self.orphans = 0
        self.kills_of = collections.Counter()  # how many an unfinished run has lived through, by flow and image
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
            self.place, f"data: data\nsystems: [images]\nimages:\n  backend: {self.backend}\n  files: {self.top}/in\n"
                        f"  volume_size: 256MiB\n  pool_size: 8GiB\n{store}")

    def call(self, method, path, body=None, refusals=(404,)):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        if answer.status >= 400 and answer.status not in refusals:
            raise AssertionError(f"{method} {path}: {answer.status} {content}")
        return content

    def rows(self, statement):
        """Asks the store itself, whether the server lives or not."""
        database = sqlite3.connect(f"file:{self.top}/data/pawl.db?mode=ro", uri=True, timeout=PATIENCE)
        try:
            return database.execute(statement).fetchall()
        finally:
            database.close()

    def unfinished(self):
        """What is under way: flow, image and step."""
        return [(flow, image, json.loads(data)["step"] if state == "running" else state)
                for flow, image, state, data in
                self.rows("SELECT machine, key, state, data FROM pawl_instances WHERE NOT finished")]

    def begin(self):
        """Two more images, one from each kind of source."""
        for kind in ("file", "s3") if self.swift else ("file", "file"):
            self.made += 1
            name = f"{kind}-{self.made}"
            archive = world.make_image(self.top / "in" / f"{name}.tar", seed=self.numbers.randrange(1 << 30), files=700,
                                       file_bytes=4000)
            url = f"file://{archive}"
            if kind == "s3":
                self.swift.put("bucket", f"{name}.tar", archive.read_bytes())
                url = f"s3://bucket/{name}.tar"
            self.archives[name] = archive
            self.call("POST", "/v1/images", {"url": url, "image_id": name})

    def idle(self, table="unpacked_images"):
        """An image that is in this table, and that no run works on."""
        busy = {image for _, image, _ in self.unfinished()}
        known = {row[0] for row in self.rows(f"SELECT image_id FROM {table}")}
        found = sorted((self.archives.keys() & known) - busy)
        return self.numbers.choice(found) if found else None

    def litter(self):
        """What belongs to nothing: files among the archives, and what an interrupted making would leave."""
        for _ in range(20):
            self.orphans += 1
            (self.top / f"data/images/archives/orphan-{self.orphans}.tar.part").write_bytes(b"x")
        place = self.volumes() / f"{1_000_000 + self.orphans}.making"
        for number in range(300):
            (place / "junk" / str(number)).mkdir(parents=True)

    def ask(self, what):
        """Has something done with an image on which no run works, where there is one. The kill may come before the
        answer."""
        self.join()  # what was asked before is seen as under way
        image = self.idle("snapshots WHERE active" if what == "deactivate" else "unpacked_images")
        if what == "gc":
            self.litter()
            self.in_thread("POST", "/v1/image-garbage")
        elif what == "deactivate" and image is None:
            self.ask("activate")
        elif image is None:
            return
        elif what == "rm":
            self.archives.pop(image).unlink()
            self.removed.append(image)
            self.in_thread("DELETE", f"/v1/images/{image}")
        elif what == "second":
            self.in_thread("POST", f"/v1/images/{image}/activate", {"snapshot_name": f"second-{image}"})
        else:
            self.in_thread("POST", f"/v1/images/{image}/{what}", {})

    def in_thread(self, method, path, body=None):
        def ask():
            try:
                self.call(method, path, body)
            except (OSError, http.client.HTTPException):
                pass  # killed before it could answer; what it had made durable goes on
            except AssertionError as refusal:
                self.refusals.append(str(refusal))

        self.asked.append(threading.Thread(target=ask))
        self.asked[-1].start()

    def join(self):
        for one in self.asked:
            one.join(PATIENCE)
        self.asked.clear()

    def kill(self, wanted):
        """One kill; whether it came during the step that was wanted."""
        if wanted == ANY:
            self.ask(self.numbers.choice(("activate", "deactivate", "second", "rm", "gc")))
            world.let_pass(self.numbers.uniform(0, LONGEST))
        else:
            self.catch(wanted)
        self.server.kill()
        self.join()
        seen = self.unfinished()
        steps = {step for _, _, step in seen} - {"joining", "waiting"}
        self.moments.update(steps or {"nothing"})
        self.kills_of = collections.Counter({(flow, image): self.kills_of[flow, image] + 1 for flow, image, _ in seen})
        if wanted == ANY:
            world.release_mounts(self.top)  # the whole machine goes down
        return wanted == ANY or wanted in steps

    def catch(self, wanted):
        """Waits until this step runs, and sees to it that it does."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            seen = self.unfinished()
            if any(step == wanted for _, _, step in seen):
                break
            if wanted in ASKED:
                # Again where the last one was faster than one could look.
                if not any(one.is_alive() for one in self.asked):
                    self.ask(ASKED[wanted])
            elif not seen:
                self.begin()
            world.let_pass(0.001)
        if wanted in ("download", "extract-layers"):  # long enough to be hit somewhere inside
            world.let_pass(self.numbers.uniform(0, 0.03))

    def wait(self, flow, image):
        end = time.monotonic() + 3 * PATIENCE
        path = f"/v1/flows/{flow}/runs/{image}"
        while not (run := self.call("GET", path)).get("finished") and time.monotonic() < end:
            self.call("GET", f"{path}/wait?timeout=30s")
        return run

    def spare(self):
        """Lets those end that have lived through enough."""
        for (flow, image), count in self.kills_of.items():
            if count >= MOST_KILLS_OF_A_RUN:
                self.wait(flow, image)

    def finish(self):
        """Waits for all; gives what did not end well. A collection leaves nothing of what was littered."""
        if self.relay:
            self.relay.bytes_per_second = 0
        self.join()
        for flow, image, _ in self.unfinished():
            self.wait(flow, image)
        for image in self.removed:  # whose removal was not durable when the kill came
            if self.call("DELETE", f"/v1/images/{image}").get("flow"):
                self.wait("remove-image", image)
        self.call("POST", "/v1/image-garbage")
        self.wait("collect-image-garbage", "all")
        ended = self.rows("SELECT machine, key, state, data FROM pawl_instances")
        return [f"{flow} {image} {state}: {data}" for flow, image, state, data in ended
                if state not in ("done", "handed_off")]

    def activate_all(self):
        """Every snapshot is taken into use; what could not be."""
        lost = []
        for image, name in self.rows("SELECT image_id, snapshot_name FROM snapshots"):
            self.call("POST", f"/v1/images/{image}/activate", {"snapshot_name": name})
            run = self.wait("activate-image", image)
            if run.get("state") not in ("done", "handed_off"):
                lost.append(f"{name}: {run}")
        return lost

    def compare(self):
        """Snapshots whose tree is another one than GNU tar's, and images without one."""
        different = []
        for name, archive in self.archives.items():
            image = self.call("GET", f"/v1/images/{name}")
            if not image.get("snapshots"):
                different.append(f"{name}: {image}")
                continue
            expected = world.unpack_with_tar(archive, self.top / f"expected-{name}")
            for snapshot in image["snapshots"]:
                with world.tree_at(snapshot["device_path"], self.top) as tree:
                    wrong = world.tree_difference(expected, tree)
                different += [f"{name} {snapshot['snapshot_name']}: {line}" for line in wrong[:5]]
        return different

    def volumes(self):
        pool = self.top / "data/images/pool"
        return pool / "volumes" if self.backend == "dir" else pool / "pool/volumes"

    def active_in_the_pool(self):
        """The volumes that can be used: those that have a device, or are noted as active."""
        if self.backend == "reflink":
            listed = subprocess.run(["losetup", "-l", "-n", "-O", "BACK-FILE"], check=True, capture_output=True, text=True,
                                    timeout=PATIENCE).stdout
            places = [pathlib.Path(line.strip()).parent for line in listed.splitlines()]
            return {int(place.name) for place in places if place.parent == self.volumes()}
        records = [json.loads(record.read_text(encoding="utf-8")) for record in self.volumes().glob("*/volume.json")]
        return {record["id"] for record in records if record["active"] or record["mounted"]}

    def audit(self):
        """What is in the pool or in the tables only, or half there. Nothing is under way."""
        wrong = []
        volumes = self.rows("SELECT id, state, kind, image_id FROM images_volumes")
        wrong += [f"volume {row} is not made" for row in volumes if row[1] != "made"]
        images = self.rows("SELECT image_id, download_status FROM images")
        wrong += [f"image {row} is not complete" for row in images if row[1] != "completed"]
        if {row[0] for row in images} != self.archives.keys():
            wrong.append(f"images {sorted(images)} of {sorted(self.archives)}")
        known = {row[0] for row in
                 self.rows("SELECT device_id FROM unpacked_images UNION SELECT snapshot_id FROM snapshots")}
        wrong += [f"volume {number} belongs to nothing" for number in {row[0] for row in volumes} ^ known]
        places = sorted(os.listdir(self.volumes()))
        if places != sorted(str(row[0]) for row in volumes):
            wrong.append(f"the pool has {places}, the tables {sorted(row[0] for row in volumes)}")
        active = {row[0] for row in self.rows("SELECT snapshot_id FROM snapshots WHERE active")}
        if active != self.active_in_the_pool():
            wrong.append(f"active are {sorted(self.active_in_the_pool())}, should be {sorted(active)}")
        used = {row[0] for row in self.rows("SELECT image_id FROM snapshots WHERE active")}
        shown = {row[0] for row in self.rows("SELECT image_id FROM images WHERE activation_status = 'active'")}
        if used != shown:
            wrong.append(f"shown as active are {sorted(shown)}, snapshots are of {sorted(used)}")
        archives = sorted(os.listdir(self.top / "data/images/archives"))
        if archives != sorted(f"{name}.tar" for name in self.archives):
            wrong.append(f"archives: {archives}")
        return wrong


def drive(top, swift, options):
    driver = Driver(top, swift, options)
    try:
        wanted = collections.deque(WANTED[number % len(WANTED)] for number in range(options.kills))
        kills = 0
        while wanted and kills < 2 * options.kills + 4:
            driver.spare()
            driver.begin()
            driver.ask(driver.numbers.choice(("activate", "deactivate", "second")))
            if driver.kill(wanted[0]):
                wanted.popleft()
            else:
                wanted.rotate(-1)  # it was over; again, after the others
            kills += 1
            driver.serve()
        lost = driver.finish()
        garbage = driver.call("GET", "/v1/image-garbage")["garbage"]
        orphans = [str(one) for one in garbage] + driver.audit()
        lost += driver.refusals + driver.activate_all() + driver.compare()
    finally:
        driver.server.kill()
        if driver.relay:
            driver.relay.close()
    orphans += driver.audit()
    print("killed during " + ", ".join(f"{step} ({count})" for step, count in sorted(driver.moments.items())))
    for line in lost + orphans:
        print(line)
    if wanted:
        print(f"no kill came during {', '.join(sorted(set(wanted)))}")
    bad = bool(lost or orphans or wanted)
    if bad:
        print(f"seed={options.seed}")
    print(f"backend={options.backend} kills={kills} images={driver.made} lost={len(lost)} orphans={len(orphans)}")
    return 1 if bad else 0


def run(options):
    with tempfile.TemporaryDirectory() as top, world.released(top):
        if world.Swift.obstacle():
            print(f"without an object store: {world.Swift.obstacle()}")
            return drive(top, None, options)
        with tempfile.TemporaryDirectory() as store:
            swift = world.Swift(store)
            try:
                return drive(top, swift, options)
            finally:
                swift.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pawl")
    parser.add_argument("kills", type=int, nargs="?", default=6)
    parser.add_argument("seed", type=int, nargs="?", default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--backend", choices=("dir", "reflink", "btrfs"), default="dir")
    options = parser.parse_args()
    if world.pool_obstacle(options.backend):
        print(f"SKIPPED: {world.pool_obstacle(options.backend)}; scripts/setup installs what is needed")
        return world.SKIPPED
    try:
        return run(options)
    except BaseException:
        print(f"seed={options.seed}")
        raise


if __name__ == "__main__":
    sys.exit(main())
