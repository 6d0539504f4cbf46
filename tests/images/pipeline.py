#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs images through the built `pawl serve` and `pawl images`, as people do.

    pipeline.py <pawl> files|swift|reflink|btrfs

The second word says where images come from and go to: files into directories, objects of a real Swift into
directories, or files into a pool of that kind. Ends with 77, and says why, where that cannot be had.
"""
import http.client
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import images_world as world
from images_world import PATIENCE

PAWL = os.path.abspath(sys.argv[1])
KIND = sys.argv[2]


class ImagesCase(unittest.TestCase):
    """One server for all tests of a class: each has images of its own."""

    backend = "dir"
    settings = ""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.addClassCleanup(world.release_mounts, directory.name)
        cls.place = world.Place(PAWL, directory.name)
        cls.top = pathlib.Path(directory.name)
        (cls.top / "in").mkdir()
        cls.server = cls.serve(cls.settings)
        cls.addClassCleanup(cls.server.kill)

    @classmethod
    def serve(cls, settings="", data="data", backend=None):
        config = (f"data: {data}\nsystems: [images]\nimages:\n  backend: {backend or cls.backend}\n"
                  f"  files: {cls.top}/in\n"
                  f"  volume_size: 256MiB\n  pool_size: 1GiB\n{settings}")
        return world.Server(cls.place, config)

    def image(self, name, **how):
        """An archive to take and its URL."""
        return world.make_image(self.top / "in" / f"{name}.tar", **how), f"file://{self.top}/in/{name}.tar"

    def images(self, *arguments):
        return self.server.pawl("images", *arguments)

    def json(self, *arguments):
        return self.server.json("images", *arguments)

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        text = body if isinstance(body, (str, bytes, type(None))) else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"} if text is not None else {})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, json.loads(content) if content else None

    def good(self, run, printed=None):
        self.assertEqual(run.returncode, 0, run)
        if printed is not None:
            self.assertRegex(run.stdout, printed)
        return run.stdout

    def assert_tree(self, archive, place):
        expected = world.unpack_with_tar(archive, tempfile.mkdtemp(dir=self.top) + "/tree")
        self.assertEqual(world.tree_difference(expected, place), [])
        compared = subprocess.run(["diff", "-r", "--no-dereference", "-x", "lost+found", expected, place],
                                  capture_output=True, text=True, check=False, timeout=PATIENCE)
        self.assertEqual((compared.returncode, compared.stdout), (0, ""), compared.stderr)

    def tree_at(self, path):
        """Where the files of an active snapshot are, until the test ends."""
        return self.enterContext(world.tree_at(path, self.top))

    def states(self, image):
        return {run["flow"]: run["state"] for run in self.json("show", image)["runs"]}

    def assert_clean(self, garbage=()):
        self.assertEqual(self.json("gc")["garbage"], list(garbage))


class FilesTest(ImagesCase):
    def test_an_image_becomes_a_snapshot_with_the_tree_of_its_archive(self):
        archive, url = self.image("whole")
        run = self.images("process", url, "--image-id", "whole")
        path = self.good(run, r"^/.*\n$").strip()
        self.assert_tree(archive, path)
        again = self.images("process", url, "--image-id", "whole")
        self.assertEqual(self.good(again).strip(), path)
        self.assertEqual(self.states("whole"), {"process-image": "done", "download-image": "handed_off",
                                                "unpack-image": "handed_off", "activate-image": "handed_off"})

    def test_an_image_without_an_id_gets_one_that_the_object_keeps(self):
        _, url = self.image("unlisted")
        made = self.json("process", url)
        self.assertRegex(made["image_id"], "^img_[0-9a-f]{64}$")
        self.assertEqual(self.json("process", url)["image_id"], made["image_id"])
        refused = self.images("process", url, "--image-id", "other")
        self.assertEqual(refused.returncode, 6, refused)
        self.assertIn(made["image_id"], refused.stderr)

    def test_an_image_is_listed_and_shown(self):
        archive, url = self.image("shown")
        made = self.json("process", url, "--image-id", "shown")
        self.assertEqual((made["downloaded"], made["unpacked"], made["activated"]), (True, True, True))
        self.good(self.images("ls"), r"(?m)^IMAGE +DOWNLOAD +ACTIVATION .*\n(.*\n)*shown +completed +active +\S+ \S+ ")
        mine = next(one for one in self.json("ls")["images"] if one["image_id"] == "shown")
        self.assertEqual((mine["download_status"], mine["activation_status"], mine["size_bytes"]),
                         ("completed", "active", archive.stat().st_size))
        shown = self.good(self.images("show", "shown"), r"(?m)^image +shown$")
        self.assertRegex(shown, rf"(?m)^object +{url}$")
        self.assertRegex(shown, r"(?m)^snapshot +snap-shown /")
        with tarfile.open(archive) as tar:
            files = sum(entry.isreg() for entry in tar)
        self.assertEqual(self.json("show", "shown")["unpacked"]["file_count"], files)

    def test_snapshots_are_separate_and_can_be_taken_out_of_use(self):
        archive, url = self.image("several")
        first = self.good(self.images("process", url, "--image-id", "several")).strip()
        second = self.good(self.images("activate", "several", "--snapshot-name", "second")).strip()
        self.assertNotEqual(first, second)
        (pathlib.Path(second) / "rootfs/etc/hostname").write_text("changed", encoding="utf-8")
        self.assert_tree(archive, first)
        self.good(self.images("deactivate", "several", "--snapshot-name", "second"), "^deactivated second\n$")
        active = {one["snapshot_name"]: one["active"] for one in self.json("show", "several")["snapshots"]}
        self.assertEqual(active, {"snap-several": True, "second": False})
        self.good(self.images("deactivate", "several"))
        self.assertEqual(self.json("show", "several")["activation_status"], "inactive")
        again = self.good(self.images("activate", "several", "--snapshot-name", "second")).strip()
        self.assertEqual((pathlib.Path(again) / "rootfs/etc/hostname").read_text(encoding="utf-8"), "changed")
        unknown = self.images("deactivate", "several", "--snapshot-name", "third")
        self.assertEqual(unknown.returncode, 7, unknown)
        self.assertIn("third", unknown.stderr)

    def test_a_removed_image_leaves_nothing(self):
        _, url = self.image("brief")
        path = self.good(self.images("process", url, "--image-id", "brief")).strip()
        self.good(self.images("activate", "brief", "--snapshot-name", "brief-2"))
        removed = self.good(self.images("rm", "brief"))
        self.assertEqual(len(removed.splitlines()), 4, removed)  # two snapshots, what they are of, the archive
        self.assertFalse(os.path.exists(path))
        self.assertFalse((self.top / "data/images/archives/brief.tar").exists())
        self.assertEqual(self.images("show", "brief").returncode, 5)
        self.assertEqual(self.images("rm", "brief").returncode, 5)
        self.assert_clean()
        self.good(self.images("process", url, "--image-id", "brief"))

    def test_garbage_is_shown_and_removed_only_when_told_so(self):
        _, url = self.image("lost")
        self.good(self.images("process", url, "--image-id", "lost"))
        self.assert_clean()
        orphan = self.top / "data/images/archives/nobody.tar"
        orphan.write_bytes(b"x")
        volume = self.json("show", "lost")["snapshots"][0]
        shutil.rmtree(pathlib.Path(volume["device_path"]).parent)
        listed = self.images("gc")
        self.good(listed, r"(?m)^lost_snapshot +\d+ +lost +snap-lost$")
        self.assertRegex(listed.stdout, rf"(?m)^orphan_file +nobody +{orphan}$")
        self.assertIn("--force", listed.stderr)
        self.assertTrue(orphan.exists())
        done = self.good(self.images("gc", "--force"))
        self.assertIn(f"removed the file {orphan}\n", done)
        self.assertRegex(done, "forgot snap-lost, which is not in the pool\n")
        self.assertFalse(orphan.exists())
        self.assert_clean()
        self.assertEqual(self.json("gc", "--force"), {"actions": []})
        self.good(self.images("process", url, "--image-id", "lost"), "^/")

    def test_an_archive_with_a_way_out_is_refused_and_leaves_nothing(self):
        path = self.top / "in/hostile.tar"
        with tarfile.open(path, "w") as tar:
            for name in ("rootfs", "rootfs/../../way-out"):
                entry = tarfile.TarInfo(name)
                entry.type = tarfile.DIRTYPE if name == "rootfs" else tarfile.REGTYPE
                entry.mode = 0o755
                tar.addfile(entry, io.BytesIO())
        run = self.images("process", f"file://{path}", "--image-id", "hostile")
        self.assertEqual((run.returncode, run.stdout), (7, ""), run)
        self.assertRegex(run.stderr, r"pawl: process-image hostile aborted at .*archive_hostile")
        self.assertEqual(self.json("show", "hostile")["download_status"], "failed")
        self.assert_clean()

    def test_what_is_not_there_or_not_allowed_ends_the_run(self):
        for url, code in ((f"file://{self.top}/in/none.tar", "source_missing"),
                          ("file:///etc/passwd", "invalid_argument")):
            run = self.images("process", url)
            self.assertEqual((run.returncode, run.stdout), (7, ""), run)
            self.assertIn(code, run.stderr)
        self.assert_clean()

    def test_fifty_images_at_once_all_arrive_each_in_its_own_volume(self):
        before = self.json("setup-pool")["volumes"]
        names = [f"fifty-{number}" for number in range(50)]
        for name in names:
            with tarfile.open(self.top / f"in/{name}.tar", "w") as tar:
                for inside in ("rootfs", "rootfs/etc", "rootfs/usr", "rootfs/var", "rootfs/etc/hostname"):
                    entry = tarfile.TarInfo(inside)
                    entry.type = tarfile.REGTYPE if inside.endswith("hostname") else tarfile.DIRTYPE
                    entry.mode = 0o644 if entry.isreg() else 0o755
                    entry.size = len(name) if entry.isreg() else 0
                    tar.addfile(entry, io.BytesIO(name.encode()))
        for name in names:
            answer, begun = self.call("POST", "/v1/images", {"url": f"file://{self.top}/in/{name}.tar", "image_id": name})
            self.assertEqual((answer.status, begun["attached"]), (202, False), begun)
        paths = set()
        for name in names:
            run = self.call("GET", f"/v1/flows/process-image/runs/{name}/wait?timeout={PATIENCE}s")[1]
            self.assertEqual(run["state"], "done", run)
            path = pathlib.Path(run["response"]["device_path"])
            self.assertEqual((path / "rootfs/etc/hostname").read_text(encoding="utf-8"), name)
            paths.add(path)
        self.assertEqual(len(paths), 50)
        self.assertEqual(self.json("setup-pool")["volumes"], before + 100)
        self.assert_clean()

    def test_every_change_is_answered_as_accepted(self):
        _, url = self.image("accepted")
        for method, path, body in (("POST", "/v1/images", {"url": url, "image_id": "accepted"}),
                                   ("POST", "/v1/image-garbage", None)):
            answer, _ = self.call(method, path, body)
            self.assertEqual((answer.status, answer.reason), (202, "Accepted"))
        self.good(self.images("process", url, "--image-id", "accepted"))

    def test_a_detached_pool_is_given_back_until_it_is_set_up_again(self):
        _, url = self.image("detached")
        path = self.good(self.images("process", url, "--image-id", "detached")).strip()
        self.good(self.images("detach-pool"), "^detached the dir pool in /")
        self.assertIn("setup-pool", self.images("process", url, "--image-id", "detached").stderr)
        self.good(self.images("setup-pool"))
        self.assertEqual(self.good(self.images("process", url, "--image-id", "detached")).strip(), path)

    def test_a_pool_can_be_named(self):
        _, url = self.image("pooled")
        path = self.good(self.images("process", url, "--image-id", "pooled", "--pool-name", "pawl"), "^/")
        self.assertEqual(self.good(self.images("activate", "pooled", "--pool-name", "pawl")), path)
        for command in (("process", url, "--image-id", "pooled"), ("activate", "pooled")):
            refused = self.images(*command, "--pool-name", "other")
            self.assertEqual(refused.returncode, 1, refused)
            self.assertIn('there is no pool "other"', refused.stderr)

    def test_a_request_chooses_one_of_several_pools(self):
        settings = f"  pools: fast=dir:{self.top}/fast, broken=dir:{self.top}/in/broken\n"
        (self.top / "in" / "broken").write_text("no directory")
        server = self.serve(settings, data="several")
        self.addCleanup(server.kill)
        _, url = self.image("chosen")
        process = ("images", "process", url, "--image-id", "chosen")
        path = self.good(server.pawl(*process, "--pool-name", "fast"), f"^{self.top}/fast/").strip()
        self.assertEqual(self.good(server.pawl(*process)).strip(), path)
        self.assertIn('is in the pool "fast"', server.pawl(*process, "--pool-name", "pawl").stderr)
        self.good(server.pawl("images", "detach-pool", "--pool-name", "fast"), f"pool in {self.top}/fast$")
        self.good(server.pawl("images", "setup-pool", "--pool-name", "fast"), f"{self.top}/fast")
        self.assertEqual(server.pawl("images", "setup-pool", "--pool-name", "broken").returncode, 1)
        self.good(server.pawl("images", "rm", "chosen"))
        self.assertEqual(server.json("images", "gc")["garbage"], [])
        self.good(server.pawl(*process), f"^{self.top}/.*/images/pool/")

    def test_no_wait_returns_the_run(self):
        _, url = self.image("patient")
        self.good(self.images("process", url, "--image-id", "patient", "--no-wait"), "^process-image patient was started\n$")
        self.good(self.images("process", url, "--image-id", "patient"), "^/")

    def test_the_pool_is_shown_and_the_doctor_is_content(self):
        self.good(self.images("setup-pool"), r"^BACK END +ROOT +SIZE +USED +VOLUMES\ndir +/\S+/images/pool +\d")
        pool = self.json("setup-pool")
        self.assertEqual((pool["backend"], pool["problems"]), ("dir", []))
        refused = self.images("setup-pool", "--extend", "2GiB")
        self.assertEqual(refused.returncode, 1, refused)
        self.assertIn("invalid_argument", refused.stderr)
        self.assertIn("is no size", self.images("setup-pool", "--extend", "lots").stderr)
        printed = self.good(self.images("doctor"))
        for name in ("archives", "source", r"back end dir \(in use\)", "pool"):
            self.assertRegex(printed, rf"(?m)^good +{name} ")
        self.assertTrue(self.json("doctor")["healthy"])

    def test_metrics_count_images_and_the_pool(self):
        _, url = self.image("counted")
        self.good(self.images("process", url))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        text = "\n".join(line for line in lines if line.startswith("images_"))
        self.assertRegex(text, r'(?m)^images_total\{status="completed"\} [1-9]')
        self.assertRegex(text, r'(?m)^images_pool_up\{pool="pawl"\} 1$')

    def test_bad_requests_are_told_what_is_wrong_and_change_nothing(self):
        _, url = self.image("good")
        self.good(self.images("process", url, "--image-id", "good"))

        def world_now():
            return self.call("GET", "/v1/images")[1], self.call("GET", "/v1/runs?limit=1000")[1]

        before = world_now()
        for method, path, body, status, code in (
                ("POST", "/v1/images", "", 400, "invalid_argument"),
                ("POST", "/v1/images", "{", 400, "malformed_json"),
                ("POST", "/v1/images", [], 400, "wrong_type"),
                ("POST", "/v1/images", {}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": url, "colour": "red"}, 400, "unknown_name"),
                ("POST", "/v1/images", {"url": 7}, 400, "wrong_type"),
                ("POST", "/v1/images", {"url": url, "s3_key": "a"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "http://bucket/key"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://bucket"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3:///key"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/../key"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/a/./key"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/key", "bucket": "c"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/" + "k" * 1025}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/key\0with NUL"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"s3_key": "no/bucket"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"s3_key": url, "bucket": "b"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "image_id": "a/b"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "image_id": "i" * 248}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": url, "image_id": "another"}, 409, "volume_exists"),
                ("POST", "/v1/images", {"url": "s3://b/k", "snapshot_name": "a b"}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "snapshot_name": "s" * 128}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "device_size": "10GiB"}, 400, "wrong_type"),
                ("POST", "/v1/images", {"url": "s3://b/k", "device_size": -1}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "device_size": 1 << 40}, 400, "invalid_argument"),
                ("POST", "/v1/images", {"url": "s3://b/k", "image_id": "good"}, 409, "volume_exists"),
                ("GET", "/v1/images/none", None, 404, "unknown_instance"),
                ("GET", "/v1/images/a%2Fb", None, 400, "invalid_argument"),
                ("GET", "/v1/images?colour=red", None, 400, "unknown_name"),
                ("POST", "/v1/images/none/activate", {}, 404, "unknown_instance"),
                ("POST", "/v1/images/good/activate", {"snapshot_name": 1}, 400, "wrong_type"),
                ("POST", "/v1/images/good/activate", {"snapshot_name": "a/b"}, 400, "invalid_argument"),
                ("POST", "/v1/images/good/activate", {"snapshot": "a"}, 400, "unknown_name"),
                ("POST", "/v1/images/good/deactivate", {"snapshot_name": "a/b"}, 400, "invalid_argument"),
                ("DELETE", "/v1/images/none", None, 404, "unknown_instance"),
                ("DELETE", "/v1/images", None, 405, "method_not_allowed"),
                ("POST", "/v1/image-pool", {"extend": -1}, 400, "invalid_argument"),
                ("POST", "/v1/image-pool", {"extend": "much"}, 400, "wrong_type"),
                ("POST", "/v1/image-pool", {"shrink": 1}, 400, "unknown_name")):
            with self.subTest(method=method, path=path, body=str(body)[:80]):
                answer, problem = self.call(method, path, body)
                self.assertEqual((answer.status, problem.get("code")), (status, code), problem)
                self.assertEqual(answer.getheader("Content-Type"), "application/problem+json")
                self.assertTrue(problem.get("detail"), problem)
        self.assertEqual(world_now(), before)


class SwiftTest(ImagesCase):
    @classmethod
    def setUpClass(cls):
        store = tempfile.TemporaryDirectory()
        cls.addClassCleanup(store.cleanup)
        cls.swift = world.Swift(store.name)
        cls.addClassCleanup(cls.swift.close)
        cls.relay = world.Relay(cls.swift.port)
        cls.addClassCleanup(cls.relay.close)
        (pathlib.Path(store.name) / "secret").write_text(world.SWIFT_SECRET + "\n", encoding="utf-8")
        cls.settings = (f"  s3_endpoint: http://127.0.0.1:{cls.relay.port}\n  s3_key_id: {world.SWIFT_KEY}\n"
                        f"  s3_secret_file: {store.name}/secret\n")
        super().setUpClass()

    def put(self, name, **how):
        archive, _ = self.image(name, **how)
        self.swift.put("bucket", f"{name}.tar", archive.read_bytes())
        return archive, f"s3://bucket/{name}.tar"

    def test_an_object_becomes_a_snapshot_and_is_not_fetched_again(self):
        archive, url = self.put("object")
        path = self.good(self.images("process", url), "^/").strip()
        self.assert_tree(archive, path)
        fetched = self.relay.count("GET /bucket/object.tar")
        self.assertGreaterEqual(fetched, 1)
        self.assertEqual(self.good(self.images("process", url)).strip(), path)
        self.assertEqual(self.relay.count("/bucket/object.tar"), fetched)
        image = self.json("process", url)["image_id"]
        self.assertEqual(self.states(image)["download-image"], "handed_off")

    def assert_arrives_on(self, backend):
        if world.pool_obstacle(backend):
            self.skipTest(f"{backend}: {world.pool_obstacle(backend)}")
        archive, url = self.put(f"on-{backend}")
        server = self.serve(self.settings, data=backend, backend=backend)
        self.addCleanup(server.kill)
        path = self.good(server.pawl("images", "process", url), "^/").strip()
        self.assert_tree(archive, self.tree_at(path))
        self.assertEqual(server.json("images", "setup-pool")["backend"], backend)
        self.assertEqual(server.json("images", "gc")["garbage"], [])

    def test_an_object_becomes_a_snapshot_in_a_pool_of_reflinks(self):
        self.assert_arrives_on("reflink")

    def test_an_object_becomes_a_snapshot_in_a_pool_of_btrfs(self):
        self.assert_arrives_on("btrfs")

    def test_a_missing_object_ends_the_run(self):
        run = self.images("process", "s3://bucket/none.tar")
        self.assertEqual((run.returncode, run.stdout), (7, ""), run)
        self.assertRegex(run.stderr, "process-image .* aborted at .*source_missing")

    def test_a_wrong_secret_ends_the_run(self):
        _, url = self.put("secret")
        wrong = pathlib.Path(self.top) / "wrong"
        wrong.write_text("guessed\n", encoding="utf-8")
        lines = self.settings.splitlines(keepends=True)
        other = self.serve("".join(lines[:2]) + f"  s3_secret_file: {wrong}\n", data="other")
        self.addCleanup(other.kill)
        run = other.pawl("images", "process", url)
        self.assertEqual((run.returncode, run.stdout), (7, ""), run)
        self.assertRegex(run.stderr, "process-image .* aborted at .*source_denied")
        self.assertNotIn("guessed", run.stderr)
        self.assertEqual(other.json("images", "gc")["garbage"], [])

    def test_two_at_once_are_one_run(self):
        _, url = self.put("shared", files=100)
        self.relay.flowing.clear()  # it is under way when the second one comes
        self.addCleanup(self.relay.flowing.set)
        first = self.json("process", url, "--image-id", "shared", "--no-wait")
        second = self.json("process", url, "--image-id", "shared", "--no-wait")
        self.assertEqual((first["attached"], second["attached"]), (False, True))
        self.assertEqual(first["run_ulid"], second["run_ulid"])
        answer, problem = self.call("POST", "/v1/images", {"url": "s3://bucket/none.tar", "image_id": "shared"})
        self.assertEqual((answer.status, problem["code"]), (409, "volume_exists"), problem)
        answer, problem = self.call("POST", "/v1/images", {"url": url, "snapshot_name": "other"})
        self.assertEqual((answer.status, problem["code"]), (409, "volume_busy"), problem)
        self.relay.flowing.set()
        self.good(self.images("process", url), "^/")
        self.assertEqual(self.relay.count("GET /bucket/shared.tar"), 1)


class PoolTest(ImagesCase):
    """A pool that needs the superuser, in a file."""

    backend = KIND

    def test_an_image_goes_in_and_comes_out_again(self):
        before = self.json("setup-pool")["volumes"]
        archive, url = self.image("pooled", files=200)
        path = self.good(self.images("process", url, "--image-id", "pooled"), "^/").strip()
        with world.tree_at(path, self.top) as point:
            self.assert_tree(archive, point)
            shown = self.json("show", "pooled")
            self.assertGreater(shown["unpacked"]["shared_bytes"] + shown["unpacked"]["exclusive_bytes"], 0)
            if point != path:
                busy = self.images("rm", "pooled")
                self.assertEqual(busy.returncode, 7, busy)
                self.assertIn("volume_busy", busy.stderr)
        self.good(self.images("rm", "pooled"), "removed snap-pooled")
        self.assert_clean()
        self.assertEqual(self.json("setup-pool")["volumes"], before)

    def test_the_pool_is_extended_while_it_is_in_use(self):
        before = self.json("setup-pool")["bytes"]
        self.assertGreater(self.json("setup-pool", "--extend", "2GiB")["bytes"], before)
        refused = self.images("setup-pool", "--extend", "512MiB")
        self.assertEqual(refused.returncode, 1, refused)

    def restart(self, meanwhile=lambda: None):
        """Kills the server and starts it again."""
        self.server.kill()
        meanwhile()
        type(self).server = self.serve()
        self.addClassCleanup(self.server.kill)

    def snapshots(self, image):
        return self.json("show", image)["snapshots"]

    def is_usable(self, snapshot):
        """Whether its path leads to it, and not to another one or nowhere."""
        path, inside = snapshot["device_path"], f"/volumes/{snapshot['snapshot_id']}/"
        return inside in world.devices_below(self.top).get(path, "") or (inside in path and os.path.isdir(path))

    def taken_up(self, image):
        """The snapshots, once the server has made those usable that are active."""
        end = time.monotonic() + PATIENCE
        while not all(self.is_usable(one) for one in self.snapshots(image) if one["active"]):
            self.assertLess(time.monotonic(), end, (self.snapshots(image), world.devices_below(self.top)))
            world.let_pass(0.05)
        return self.snapshots(image)

    def machine_restarts(self):
        world.release_mounts(self.top)
        self.assertEqual((world.mounts_below(self.top), world.devices_below(self.top)), ([], {}))

    def test_what_was_active_is_still_active_after_a_kill(self):
        archive, url = self.image("kept")
        path = self.good(self.images("process", url, "--image-id", "kept"), "^/").strip()
        self.restart()
        (kept,) = self.snapshots("kept")
        self.assertEqual((kept["active"], kept["device_path"]), (True, path))
        self.assert_tree(archive, self.tree_at(path))
        self.assert_clean()

    def test_what_was_active_is_active_again_after_the_machine_has_restarted(self):
        archive, url = self.image("again")
        self.good(self.images("process", url, "--image-id", "again"))
        self.good(self.images("process", self.image("resting")[1], "--image-id", "resting"))
        self.good(self.images("deactivate", "resting"))
        self.restart(self.machine_restarts)
        (again,) = self.taken_up("again")
        self.assertTrue(again["active"])
        self.assert_tree(archive, self.tree_at(again["device_path"]))
        self.assertEqual([one["active"] for one in self.taken_up("resting")], [False])
        self.assertEqual(self.json("show", "resting")["activation_status"], "inactive")
        self.assert_clean()

    def test_all_snapshots_of_an_image_are_active_again_after_the_machine_has_restarted(self):
        archive, url = self.image("many")
        self.good(self.images("process", url, "--image-id", "many"))
        for number in range(2):
            self.good(self.images("activate", "many", "--snapshot-name", f"many-{number}"))
        self.restart(self.machine_restarts)
        found = self.taken_up("many")
        self.assertEqual({one["snapshot_name"]: one["active"] for one in found},
                         {"snap-many": True, "many-0": True, "many-1": True})
        for one in found:
            self.assert_tree(archive, self.tree_at(one["device_path"]))
        self.assert_clean()


def obstacle():
    return world.Swift.obstacle() if KIND == "swift" else world.pool_obstacle(KIND)


if __name__ == "__main__":
    if obstacle():
        print(f"SKIPPED: {obstacle()}; scripts/setup installs what is needed")
        sys.exit(world.SKIPPED)
    CASE = {"files": "FilesTest", "swift": "SwiftTest"}.get(KIND, "PoolTest")
    unittest.main(argv=[sys.argv[0], *(sys.argv[3:] or [CASE])])
