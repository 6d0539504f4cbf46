#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that a whole worker, with all its types, fits on one screen: what is tedious to write is copied
instead of understood.

    worker_size.py <root>
"""
import pathlib
import re
import sys

LIMIT = 60


def measure(source):
    """The lines of the worker: from the first struct of the part `worker` to the last closing brace in it."""
    part = re.search(r"^// excerpt: worker\n(.*?)^// excerpt end$", source, re.DOTALL | re.MULTILINE)
    whole = part and re.search(r"^struct .*^\};$", part[1], re.DOTALL | re.MULTILINE)
    return whole[0].count("\n") + 1 if whole else 0


def main():
    lines = measure((pathlib.Path(sys.argv[1]) / "examples/worker.cpp").read_text(encoding="utf-8"))
    print(f"examples/worker.cpp: the worker has {lines} lines; the limit is {LIMIT}")
    # A worker of a few lines was not found, but something else.
    return 0 if LIMIT // 2 < lines <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
