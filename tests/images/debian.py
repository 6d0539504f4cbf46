#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The root file system of a Debian, as debootstrap makes it, passes with one setting and is unpacked as GNU tar unpacks it.

    tests/images/debian.py <pawl>

It comes from the mirror that apt is configured for; without root, debootstrap or that mirror the test is skipped."""
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import images_world as world
from images_world import Place, Server

FORMATS = {"gnu.tar": ["--format=gnu"], "pax.tar": ["--format=pax", "--xattrs", "--xattrs-include=*", "--acls"],
           "zstd": ["--format=gnu", "--zstd"]}
MINUTES = 60
TOP = pathlib.Path(tempfile.gettempdir())


def mirror():
    """The URL and the suite of apt's first archive, or nothing."""
    if shutil.which("apt-get") is None:
        return None
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)",
                             "Created-By: Packages"], capture_output=True, text=True, check=False, timeout=MINUTES)
    for line in listed.stdout.splitlines():
        url, suite, component = line.split()
        # Updates of a suite are no suite that debootstrap knows.
        if component == "main" and "-" not in suite:
            return url, suite
    return None


def add_rarities(root):
    """What the root file systems of distributions have now and then, and this one does not."""
    rare = root / "var/rare"
    rare.mkdir()
    for name in ("listed", "capable", "attributed"):
        (rare / name).write_text(name, encoding="utf-8")
    (rare / "shared").mkdir()
    subprocess.run(["setfacl", "-m", "u:1234:r", rare / "listed"], check=True, timeout=MINUTES)
    subprocess.run(["setfacl", "-m", "d:u:1234:rwx", rare / "shared"], check=True, timeout=MINUTES)
    # CAP_NET_RAW, as ping has it.
    os.setxattr(rare / "capable", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))
    os.setxattr(rare / "attributed", "user.comment", b"kept")
    os.mkfifo(rare / "fifo", 0o640)
    (rare / "link").symlink_to("../nowhere")
    os.utime(rare / "link", (1_500_000_000, 1_500_000_000), follow_symlinks=False)
    os.mknod(root / "dev/rare-disk", 0o660 | stat.S_IFBLK, os.makedev(254, 17))


def make_root(directory):
    """Why there is none; nothing where it was made."""
    if os.geteuid() != 0:
        return "debootstrap needs root"
    if shutil.which("debootstrap") is None:
        return "debootstrap is not installed"
    found = mirror()
    if found is None:
        return "apt has no archive of a suite"
    url, suite = found
    made = subprocess.run(["debootstrap", "--variant=minbase", suite, directory, url], capture_output=True, text=True,
                          check=False, timeout=20 * MINUTES)
    if made.returncode != 0:
        return f"debootstrap failed: {made.stdout.splitlines()[-1:]}"
    add_rarities(directory)
    return None


class DebianTest(unittest.TestCase):
    def process(self, server, archive):
        with server.place.start("images", "process", f"file://{archive}", "--image-id", archive.name.replace(".", "-"),
                                "--url", server.url, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            printed, notes = run.communicate(timeout=10 * MINUTES)
        self.assertEqual((run.returncode, notes), (0, ""))
        return printed.strip()

    def test_its_tree_is_that_of_gnu_tar(self):
        images = TOP / "archives"
        images.mkdir()
        place = Place(sys.argv[1], TOP / "server")
        config = f"systems: [images]\nimages: {{files: {images}, policy: distribution}}\n"
        server = Server(place, config)
        self.addCleanup(server.kill)
        for name, options in FORMATS.items():
            with self.subTest(name):
                archive = images / name
                subprocess.run(["tar", "--numeric-owner", "-C", TOP / "root", *options, "-cf", archive, "."], check=True,
                               timeout=5 * MINUTES)
                path = self.process(server, archive)
                expected = TOP / f"{name}.tree"
                expected.mkdir()
                subprocess.run(["tar", "--numeric-owner", "--xattrs", "--xattrs-include=*", "--acls", "-C", expected, "-xpf",
                                archive], check=True, timeout=5 * MINUTES)
                tree = world.tree_of(expected)
                self.assertGreater(len(tree), 1000)
                if name == "pax.tar":
                    kept = {key for fact in tree.values() for key in fact[4]}
                    self.assertEqual(kept, {"security.capability", "system.posix_acl_access", "system.posix_acl_default",
                                            "user.comment"})
                self.assertEqual(world.tree_difference(expected, path), [])
                shutil.rmtree(expected)

    def test_it_is_refused_without_the_setting_which_the_refusal_names(self):
        place = Place(sys.argv[1], TOP / "strict")
        archive = TOP / "strict.tar"
        subprocess.run(["tar", "--numeric-owner", "-C", TOP / "root", "-cf", archive, "."], check=True, timeout=5 * MINUTES)
        server = Server(place, f"systems: [images]\nimages: {{files: {TOP}}}\n")
        self.addCleanup(server.kill)
        run = server.pawl("images", "process", f"file://{archive}", "--image-id", "strict")
        self.assertEqual(run.returncode, 7, run)
        self.assertIn("images.policy: distribution", run.stderr)


if __name__ == "__main__":
    TOP = pathlib.Path(tempfile.mkdtemp(prefix="pawl-debian-"))
    try:
        for directory in ("root", "server", "strict"):
            (TOP / directory).mkdir()
        OBSTACLE = make_root(TOP / "root")
        if OBSTACLE:
            print(f"SKIPPED: {OBSTACLE}")
            sys.exit(world.SKIPPED)
        unittest.main(argv=[sys.argv[0], "-v"])
    finally:
        shutil.rmtree(TOP)
