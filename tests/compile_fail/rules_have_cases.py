#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every rule of workers says why it is one, that a worker_*.cpp shows that it is enforced, and that the
documentation explains it.

    rules_have_cases.py <root>
"""
import pathlib
import re
import sys

RULE = re.compile(r'^PAWL_DETAIL_RULE\(\s*(\w+),\s*((?:"[^"\n]*"\s*)+)\);', re.MULTILINE)


def read_rules(header):
    """The rules' texts by their names."""
    return {name: "".join(re.findall(r'"([^"]*)"', text)) for name, text in RULE.findall(header)}


def main():
    root = pathlib.Path(sys.argv[1])
    header = (root / "include/pawl/detail/worker_rules.hpp").read_text(encoding="utf-8")
    rules = read_rules(header)
    expected = []
    for path in (root / "tests/compile_fail").glob("worker_*.cpp"):
        expected += re.findall(r"^// expect: (.+?)\s*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    problems = [f"{name}: no tests/compile_fail/worker_*.cpp expects its message" for name, text in rules.items()
                if not any(re.search(regex, text) for regex in expected if len(regex) > 20)]
    # What stands behind the colon is the reason, or how it is written instead.
    problems += [f"{name}: the message does not say why" for name, text in rules.items() if ":" not in text]
    page = (root / "docs/concepts/supervise.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))))
    problems += [f"{name}: docs/concepts/supervise.md does not explain it" for name in rules if name not in explained]
    if len(rules) != header.count("\nPAWL_DETAIL_RULE(") or not rules:
        problems.append(f"only {len(rules)} of the rules can be read; each is a name and literals")
    print("\n".join(problems) or f"{len(rules)} rules, each with a case")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
