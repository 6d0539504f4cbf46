#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example and compares what it prints with the `// prints: <line>` comments of its source.

    example.py <source> <program>

It runs in an empty directory of its own, so that it may leave files behind. It runs there once more: people try an
example more than once, and the second run must succeed, too, whatever it prints.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile


def check(source, program):
    """Returns what is wrong; empty when the example succeeds and prints exactly what it says."""
    expected = re.findall(r"^// prints:(?: (.*))?$", source, re.MULTILINE)
    if not expected:
        return "the source has no `// prints:` line; say what the example prints"
    with tempfile.TemporaryDirectory() as directory:
        run, again = (subprocess.run(program, capture_output=True, text=True, check=False, timeout=60, cwd=directory,
                                     stdin=subprocess.DEVNULL) for _ in range(2))
    if run.returncode != 0:
        return f"ended with status {run.returncode}\n{run.stdout}{run.stderr}"
    if again.returncode != 0:
        return f"ended with status {again.returncode} when it ran again\n{again.stdout}{again.stderr}"
    printed = run.stdout.splitlines()
    if printed == expected:
        return ""
    return "\n".join(difflib.unified_diff(expected, printed, "expected", "printed", lineterm=""))


def main():
    source = pathlib.Path(sys.argv[1])
    problem = check(source.read_text(encoding="utf-8"), sys.argv[2:])
    if problem:
        print(f"{source.name}: {problem}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
