#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the browser tests against the built `pawl`. Ends with 77, and says why, where they cannot run.

    run.py <pawl> <example_hello_system> <build directory>
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
INSTALLING = 240
PATIENCE = 1200  # with that above, below the TIMEOUT in tests/CMakeLists.txt
UNREACHABLE = r"ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|ENETUNREACH|ERR_SOCKET"


def skip(why):
    print(f"SKIPPED: {why}; scripts/setup installs what is needed")
    sys.exit(SKIPPED)


def install(place):
    """playwright-core below the build directory, once for each version."""
    place.mkdir(parents=True, exist_ok=True)
    names = ("package.json", "package-lock.json", ".npmrc")
    current = all((place / name).is_file() and (place / name).read_bytes() == (HERE / name).read_bytes() for name in names)
    if not (current and (place / "node_modules" / "playwright-core").is_dir()):
        for name in names:
            shutil.copy(HERE / name, place / name)
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, check=False,
                              capture_output=True, text=True, timeout=INSTALLING)
        if done.returncode != 0:
            (place / "package-lock.json").unlink()  # so that the next run tries again
            print(done.stdout + done.stderr)
            if re.search(UNREACHABLE, done.stderr):
                skip("npm does not reach its registry")
            sys.exit(1)


def main():
    pawl, hello, build = (os.path.abspath(argument) for argument in sys.argv[1:4])
    browser = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    for name, found in {"node": shutil.which("node"), "npm": shutil.which("npm"), "chromium": browser}.items():
        if not found:
            skip(f"{name} is not installed")
    place = pathlib.Path(build) / "browser"
    install(place)
    # Node looks for packages beside the files that use them.
    for file in HERE.glob("*.js"):
        shutil.copy(file, place / file.name)
    environment = {**os.environ, "PAWL": pawl, "HELLO": hello, "CHROMIUM": browser,
                   "SCREENSHOTS": str(pathlib.Path(build) / "screenshots")}
    # One after the other: each has a server and a browser of its own.
    end = time.monotonic() + PATIENCE
    failed = [file.name for file in sorted(HERE.glob("*.test.js"))
              if subprocess.run(["node", "--test", "--test-reporter=spec", file.name], cwd=place, env=environment,
                                check=False, timeout=max(1, end - time.monotonic())).returncode != 0]
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
