#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages of a build, looks into them with dpkg-deb, and uses what they contain.

    packages.py <build directory> <version>
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
VERSION = sys.argv[2]
SOVERSION = VERSION.rpartition(".")[0]
LIBRARY = f"libpawl{SOVERSION}"
ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = BUILD / "packages-test"


def run(*command, **options):
    command = [str(part) for part in command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"failed: {' '.join(command)}\n{done.stdout}")
    return done.stdout


def make_packages():
    shutil.rmtree(SCRATCH, ignore_errors=True)
    SCRATCH.mkdir()
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", SCRATCH, cwd=BUILD)
    made = {}
    for file in SCRATCH.glob("*.deb"):
        made[run("dpkg-deb", "--field", file, "Package").strip()] = file
    return made


class PackagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.packages = make_packages()
        cls.tree = SCRATCH / "tree"
        for file in cls.packages.values():
            run("dpkg-deb", "--extract", file, cls.tree)
        run("dpkg-deb", "--control", cls.packages["pawl"], SCRATCH / "control")

    def field(self, package, name):
        return run("dpkg-deb", "--field", self.packages[package], name).strip()

    def files(self, package):
        """Path → (mode, owner) of what a package contains."""
        listed = run("dpkg-deb", "--contents", self.packages[package])
        lines = (line.split(None, 5) for line in listed.splitlines())
        return {path.partition(" -> ")[0].removeprefix("."): (mode, owner) for mode, owner, _, _, _, path in lines}

    def test_there_are_three_packages_of_this_version(self):
        self.assertEqual(set(self.packages), {LIBRARY, "libpawl-dev", "pawl"})
        for package in self.packages:
            self.assertEqual(self.field(package, "Version"), VERSION)
            self.assertGreater(len(self.field(package, "Description").splitlines()), 1)

    def test_everything_belongs_to_root_and_only_root_may_write(self):
        for package in self.packages:
            for path, (mode, owner) in self.files(package).items():
                self.assertEqual(owner, "root/root", path)
                if not mode.startswith("l"):
                    self.assertEqual((mode[5], mode[8]), ("-", "-"), f"{mode} {path}")

    def test_no_file_is_in_two_packages(self):
        seen = {}
        for package in self.packages:
            for path, (mode, _) in self.files(package).items():
                if not mode.startswith("d"):
                    self.assertNotIn(path, seen, f"{package} and {seen.get(path)}")
                    seen[path] = package

    def test_the_command_comes_with_what_a_server_needs(self):
        files = self.files("pawl")
        for path in ("/usr/bin/pawl", "/usr/libexec/pawl/pawl-shim", "/lib/systemd/system/pawl.service",
                     "/etc/pawl/pawl.yaml",
                     "/usr/share/man/man1/pawl.1", "/usr/share/bash-completion/completions/pawl",
                     "/usr/share/zsh/site-functions/_pawl", "/usr/share/fish/vendor_completions.d/pawl.fish",
                     "/usr/share/pawl/prometheus/alerts.yml", "/usr/share/pawl/grafana/pawl.json",
                     "/usr/share/doc/pawl/copyright"):
            self.assertIn(path, files)
        self.assertEqual((SCRATCH / "control" / "conffiles").read_text(), "/etc/pawl/pawl.yaml\n")
        depends = self.field("pawl", "Depends")
        for package in ("adduser", "init-system-helpers", "libc6", "libsodium", "libsqlite3", "libpq5", "libarchive13",
                        "libcurl4", "libmosquitto1"):
            self.assertIn(package, depends)
        self.assertNotIn("libpawl", depends)

    def test_the_unpacked_command_runs(self):
        command = self.tree / "usr" / "bin" / "pawl"
        self.assertIn(VERSION, run(command, "--version"))
        run(command, "config", "check", self.tree / "etc" / "pawl" / "pawl.yaml")

    def test_programs_are_built_against_the_shared_library(self):
        self.assertIn(f"{LIBRARY} (= {VERSION})", self.field("libpawl-dev", "Depends"))
        self.assertIn(f"libpawl.so.{VERSION}", " ".join(self.files(LIBRARY)))
        [description] = (self.tree / "usr").glob("lib*/**/pkgconfig/pawl.pc")
        libraries = description.parent.parent
        environment = {**os.environ, "PKG_CONFIG_PATH": str(description.parent), "LD_LIBRARY_PATH": str(libraries)}
        flags = run("pkg-config", "--cflags", "--libs", "pawl", env=environment).split()
        program = SCRATCH / "consumer"
        run("g++", "-std=c++23", ROOT / "tests" / "install" / "consumer" / "main.cpp", "-o", program, *flags)
        self.assertRegex(run("objdump", "-p", program), rf"NEEDED +libpawl\.so\.{re.escape(SOVERSION)}\n")
        self.assertEqual(run(program, env=environment), "PAWL-1001 illegal_event\n")

    def test_the_installation_makes_the_user_and_enables_the_service(self):
        """The script runs with programs that only note how they were called."""
        programs = SCRATCH / "noted"
        programs.mkdir()
        log = SCRATCH / "calls"
        for name in ("adduser", "deb-systemd-helper", "deb-systemd-invoke", "systemctl"):
            program = programs / name
            program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{log}"\n', encoding="utf-8")
            program.chmod(0o755)
        environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
        run(SCRATCH / "control" / "postinst", "configure", env=environment)
        calls = log.read_text()
        self.assertRegex(calls, r"(?m)^adduser .*--system .*pawl$")
        self.assertIn("deb-systemd-helper enable pawl.service\n", calls)
        run(SCRATCH / "control" / "prerm", "remove", env=environment)
        run(SCRATCH / "control" / "postrm", "purge", env=environment)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
