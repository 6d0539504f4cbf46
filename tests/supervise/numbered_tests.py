#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each defect that must not be here (D01 to D17) and each ruling on what the specification leaves open
(C01 to C30) has a test whose name begins with its number.

    numbered_tests.py <root>
"""
import pathlib
import re
import sys

NUMBERED = {"defects_test.cpp": ("Defects", "D", 17), "rulings_test.cpp": ("Rulings", "C", 30)}


def main():
    folder = pathlib.Path(sys.argv[1]) / "tests/supervise"
    problems = []
    total = 0
    for file, (suite, letter, last) in NUMBERED.items():
        text = (folder / file).read_text(encoding="utf-8")
        found = re.findall(rf"^TEST\({suite}, ({letter}\d\d)_[A-Z]\w+\)", text, re.MULTILINE)
        expected = [f"{letter}{number:02}" for number in range(1, last + 1)]
        problems += [f"{file}: no TEST({suite}, {number}_…)" for number in expected if number not in found]
        problems += [f"{file}: {number} is not a known number" for number in sorted(set(found) - set(expected))]
        if found != sorted(found):
            problems.append(f"{file}: the tests are not in the order of their numbers")
        total += len(expected)
    print("\n".join(problems) or f"{total} numbers, each with a test")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
