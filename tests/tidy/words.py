# SPDX-License-Identifier: Apache-2.0
"""Words that were replaced by plain technical English and must not come back; docs/glossary.md has the right ones."""
import re

import cpp

# What it was called, and what it is called now. Whole words in C++ code; prose may use them.
IDENTIFIERS = {
    "Person": "WorkerShared",
    "Hands": "ToolHolder",
    "Grip": "BoundTools",
    "give_birth": "create_child",
    "born": "child_created",
    "Happening": "Command",
    "wait_for_company": "linger_for_batch",
    "visitors_": "inline_callers_",
    "open_workers": "open_thread_pool",
}

# The same in the systems and their tests alone: elsewhere a shelf may be a shelf.
SYSTEMS = ("systems/", "tests/images/", "tests/workers/", "bench/images", "fuzz/images")
SYSTEM_IDENTIFIERS = {
    "Deeds": "ActionReport, or what it is",
    "Workshop": "what it is",
    "Shelf": "what it is",
    "Strays": "what it is",
    "take_good": "what it does",
}

# Of structs and classes in public headers: inside, a flag may say that a step has begun. None: any struct.
MEMBERS = {
    (None, "begun"): "what has begun, such as max_started_attempts, or started",
    (None, "reduced"): "what is reduced, such as weakened_guarantees",
    (None, "otherwise"): "default_value",
    ("Run", "run"): "ulid",
}

# Spelt in two parts, so that tidy does not find them here.
PHRASES = {
    "Somebody who wants " "to do work of these names": "A blocked claim() call",
    "Faster for one " "who is alone": "Saves a wake-up when the engine is idle",
    "What did not go " "straight on": "Error, cancel and cleanup state",
    "Workers that were " "built afresh": "Worker restarts",
    "kept as " "a file says": "Supervises processes and connections declared in YAML",
    "No run is " "unfinished": "No runs in progress",
}

_IDENTIFIER = re.compile(r"\b(" + "|".join([*IDENTIFIERS, *SYSTEM_IDENTIFIERS]) + r")\b")
# A type of this name is a supervised thing; threads that run jobs are a ThreadPool.
_POOL = re.compile(r"\b(?:class|struct)\s+Workers\b")
# A phrase may go on in the next line of a comment or of a literal.
_GAP = r"(?:[\s/*#]+|\s*\"\s*\n\s*\")"
_PHRASE = {re.compile(_GAP.join(map(re.escape, phrase.split())), re.IGNORECASE): phrase for phrase in PHRASES}
_TYPE = re.compile(r"\b(?:class|struct|union)\s+(?:\[\[\w+\]\]\s*)?(\w+)[^();{}]*$")
_MEMBER = re.compile(r"[\w>&*\]]\s+(\w+)\s*(?:[;={]|$)")


def _members(code):
    """Yields (type, member, position) of the data members that stand in a type's own scope."""
    code = cpp.without_directives(code)
    scopes, begin = [], 0
    for match in re.finditer(r"[{};]", code):
        text = code[begin : match.start()]
        inside = scopes[-1] if scopes else None
        if match[0] != "}" and inside and "(" not in text and (found := _MEMBER.search(text.partition("=")[0])):
            yield inside, found[1], begin + found.start(1)
        if match[0] == "{":
            opened = _TYPE.search(text)
            scopes.append(opened[1] if opened else None)
        elif match[0] == "}" and scopes:
            scopes.pop()
        begin = match.end()


def _check_code(path, text):
    code = cpp.code_only(text)
    line = cpp.line_of(code)
    known = {**IDENTIFIERS, **(SYSTEM_IDENTIFIERS if path.startswith(SYSTEMS) else {})}
    for match in _IDENTIFIER.finditer(code):
        if match[0] in known:
            yield line(match.start()), f"{match[0]}: call it {known[match[0]]}"
    for match in _POOL.finditer(code):
        yield line(match.start()), "Workers: call it ThreadPool; a worker is a supervised thing"
    for owner, member, position in _members(code) if path.startswith("include/") else ():
        for names in ((None, member), (owner, member)):
            if names in MEMBERS:
                yield line(position), f"{owner}::{member}: call it {MEMBERS[names]}"


def check_words(path, text):
    if path.endswith((".cpp", ".hpp")):
        yield from _check_code(path, text)
    line = cpp.line_of(text)
    for pattern, phrase in _PHRASE.items():
        for match in pattern.finditer(text):
            yield line(match.start()), f'"{phrase}": write "{PHRASES[phrase]}"'
