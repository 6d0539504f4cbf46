#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a file fails to compile for the reason it states.

    check.py <file> <compiler> [flag…]

Each line `// expect: <regex>` of the file must match somewhere in the compiler's errors. A file named
positive_*.cpp must compile instead. Warnings never count: what is tested is refused by the language.
"""
import pathlib
import re
import subprocess
import sys


def check(path, compiler):
    """Returns what is wrong, as a list of sentences; empty when all is well."""
    text = path.read_text(encoding="utf-8")
    expected = re.findall(r"^// expect: (.+?)\s*$", text, re.MULTILINE)
    positive = path.name.startswith("positive_")
    if positive and expected:
        return ["a positive control has `// expect:` lines; it must compile and expects no error"]
    if not positive and not expected:
        return ["no `// expect: <regex>` line says why this must fail to compile"]

    command = [*compiler, "-std=c++23", "-fsyntax-only", "-fdiagnostics-color=never", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if positive:
        return [] if run.returncode == 0 else [f"does not compile, but must:\n{run.stderr}"]
    if run.returncode == 0:
        return ["compiles, but must not"]
    missing = [regex for regex in expected if not re.search(regex, run.stderr)]
    return [f"the errors do not match /{regex}/:\n{run.stderr}" for regex in missing]


def main():
    path = pathlib.Path(sys.argv[1])
    problems = check(path, sys.argv[2:])
    for problem in problems:
        print(f"{path.name}: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
