#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the sources of the repository against the house rules; a new rule goes into rules.py, with a case in
self_test.py.

    tidy.py <root>
"""
import os
import pathlib
import subprocess
import sys

import rules


def tracked_files(root, also_new=True):
    """What git tracks (also_new: or would track), as paths relative to the root; without git, what is there."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached"]
    if also_new:
        command += ["--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return sorted(set(filter(None, listed.stdout.split("\0"))))
    found = []
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if name not in {".git", "build", "node_modules", "__pycache__"}]
        found += [pathlib.Path(directory, file).relative_to(root).as_posix() for file in files]
    return sorted(found)


def check_file(path, text):
    """All findings of one file, as (line, message)."""
    return sorted(finding for rule in rules.RULES for finding in rule(path, text))


def check_tree(root, also_new=True):
    """All findings as lines of text, and the number of files that were read."""
    findings, count = [], 0
    for path in tracked_files(root, also_new):
        file = root / path
        if not file.is_file() or file.is_symlink() or rules.UNTOUCHED.search(path):
            continue
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            continue  # pictures and the like
        count += 1
        findings += [f"{path}:{line}: {message}" for line, message in check_file(path, text)]
    return findings, count


def main():
    # What is new in a clone of continuous integration was left there by other tests, which run meanwhile.
    findings, count = check_tree(pathlib.Path(sys.argv[1]), also_new="CI" not in os.environ)
    print("\n".join(findings))
    print(f"tidy: {count} files, {len(findings)} findings")
    # Reading nothing is not the same as finding nothing.
    return 1 if findings or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
