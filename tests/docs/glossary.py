#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/glossary.md has at most 60 terms in alphabetical order, each once, in one sentence, with a home that exists.

    glossary.py <root>
"""
import pathlib
import re
import sys

LIMIT = 60
ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \| ([^|]+?) \|$", re.MULTILINE)


def home_of(text):
    """The path below the root that a cell of the third column names."""
    linked = re.fullmatch(r"\[[^\]]+\]\(([^)]+)\)", text)
    return f"docs/{linked[1]}" if linked else text.strip("`")


def problems(text, exists):
    """Everything that is wrong with the page; `exists` says whether a path below the root does."""
    rows = [row for row in ROW.findall(text) if row[0] not in {"term", "---"}]
    terms = [term for term, _, _ in rows]
    if not terms:
        yield "has no terms"
    if len(terms) > LIMIT:
        yield f"has {len(terms)} terms; the limit is {LIMIT}"
    for before, after in zip(terms, terms[1:]):
        if before >= after:
            yield f"'{after}' stands after '{before}'"
    for term, meaning, home in rows:
        if not meaning.endswith(".") or re.search(r"\. [A-Z]", meaning):
            yield f"the meaning of '{term}' is not one sentence"
        if not exists(home_of(home)):
            yield f"the home of '{term}' does not exist: {home_of(home)}"


def main():
    root = pathlib.Path(sys.argv[1])
    found = list(problems((root / "docs/glossary.md").read_text(encoding="utf-8"), lambda path: (root / path).is_file()))
    print("\n".join(f"docs/glossary.md {problem}" for problem in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
