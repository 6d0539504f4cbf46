#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs Pawl, moves the installed tree, and builds the consumer project against it in both usual ways."""
import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

CONSUMER = pathlib.Path(__file__).parent / "consumer"
EXPECTED = "PAWL-1001 illegal_event\n"


def run(*command, **options):
    """Runs a command; shows its output and ends the test when it fails."""
    command = [str(part) for part in command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"failed: {shlex.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(program, libraries, expected=EXPECTED):
    # Only a shared library needs the path; users set it, or install where the loader looks.
    printed = run(program, env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})
    if printed != expected:
        sys.exit(f"{program} printed {printed!r}, expected {expected!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--flags", default="")
    options = parser.parse_args()

    scratch = options.build / "install-test"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()

    # The prefix is moved so that a path baked in at install time cannot go unnoticed.
    run("cmake", "--install", options.build, "--prefix", scratch / "before")
    prefix = (scratch / "before").rename(scratch / "after moving")

    [description] = prefix.glob("lib*/**/pkgconfig")
    libraries = description.parent

    # What the page tells users to write is what the consumer writes.
    page = (CONSUMER.parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    lines = re.findall(r"^find_package\(pawl.*\)$", page, re.MULTILINE)
    if not lines or not set(lines) <= set((CONSUMER / "CMakeLists.txt").read_text(encoding="utf-8").splitlines()):
        sys.exit(f"docs/server.md says {lines}, which the consumer does not use")

    build = scratch / "by-cmake"
    run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_CXX_FLAGS={options.flags}")
    run("cmake", "--build", build)
    expect(build / "consumer", libraries)
    expect(build / "server_consumer", libraries, "users, tokens and roles\n")

    environment = {**os.environ, "PKG_CONFIG_PATH": str(description)}
    flags = shlex.split(run("pkg-config", "--cflags", "--libs", "pawl", env=environment))
    program = scratch / "by-pkg-config"
    run(options.compiler, *shlex.split(options.flags), CONSUMER / "main.cpp", "-o", program, *flags)
    expect(program, libraries)

    command = prefix / "bin" / "pawl"
    if command.exists():
        run(command, "--version")
        for file in ("man/man1/pawl.1", "bash-completion/completions/pawl", "zsh/site-functions/_pawl",
                     "fish/vendor_completions.d/pawl.fish"):
            if not (prefix / "share" / file).stat().st_size:
                sys.exit(f"share/{file} is empty")


if __name__ == "__main__":
    main()
