#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does what docs/getting-started.md says, step by step, in an empty directory, and compares what is printed.

    getting_started.py <root> <build directory> <compiler> [<compiler's flags>]

Pawl itself is not built again: of the block that does so, only the installation is run, from the given build directory.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"(?:^<!-- from examples/start_(\w+)\.cpp -->\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OWN_BUILD = "cmake --install build/release "


def steps(text):
    """The page's blocks in their order, as (kind, name, content); the name is that of a program to be saved."""
    return [(match[2], match[1], match[3]) for match in BLOCK.finditer(text)]


def installation(commands):
    """What is left of the block that builds Pawl itself; None for all other blocks."""
    return next((line for line in commands.splitlines() if line.startswith(OWN_BUILD)), None)


def same(expected, printed):
    """Whether the lines are as the page shows them; there, … stands for anything."""
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in expected.splitlines()]
    lines = printed.splitlines()
    return len(patterns) == len(lines) and all(map(re.fullmatch, patterns, lines))


class Walk:
    def __init__(self, root, build, environment):
        self.root, self.build, self.environment = root, build, environment
        self.project = pathlib.Path(environment["HOME"]) / "bakery"
        self.project.mkdir()
        self.printed = ""

    def shell(self, commands, directory):
        done = subprocess.run(["bash", "-euc", commands], cwd=directory, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"failed:\n{commands}{done.stdout}{done.stderr}")
        self.printed = done.stdout

    def run(self, kind, name, content):
        if kind == "cpp":
            (self.project / f"{name}.cpp").write_text(content, encoding="utf-8")
        elif kind == "cmake":
            with (self.project / "CMakeLists.txt").open("a", encoding="utf-8") as file:
                file.write(content)
        elif kind == "sh" and (install := installation(content)):
            self.shell(install.replace("build/release", f"'{self.build}'"), self.root)
        elif kind == "sh":
            self.shell(content, self.project)
        elif kind == "text" and not same(content, self.printed):
            sys.exit(f"the page shows:\n{content}but this was printed:\n{self.printed}")


def main():
    root, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    home = build / "getting-started"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    walk = Walk(root, build, {**os.environ, "HOME": str(home), "CXX": sys.argv[3],
                              "CXXFLAGS": sys.argv[4] if len(sys.argv) > 4 else ""})
    found = steps((root / "docs/getting-started.md").read_text(encoding="utf-8"))
    for step in found:
        walk.run(*step)
    kinds = [kind for kind, _, _ in found]
    print(f"{len(found)} blocks: {', '.join(f'{kinds.count(kind)} {kind}' for kind in sorted(set(kinds)))}")
    # A page without programs and outputs was not understood.
    return 0 if kinds.count("cpp") >= 4 and kinds.count("text") >= 4 else 1


if __name__ == "__main__":
    sys.exit(main())
