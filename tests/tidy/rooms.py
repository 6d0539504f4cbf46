# SPDX-License-Identifier: Apache-2.0
"""Which room may include which: systems → patterns → kernel → store, and the public headers above nothing."""
import re

import cpp

PATTERNS = {"flow", "supervise", "orchestrate", "roster", "loops"}
SYSTEMS = {"feeds", "fleet", "workers", "images", "sentinel"}
ROOMS = {"kernel", "store", "server", "cli"} | PATTERNS

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_STANDARD = re.compile(r"[a-z][a-z0-9_]*")


def _room(path):
    """The room of a file: "public", the name of a room under src, "system <name>", or None for the rest."""
    parts = path.split("/")
    if path.startswith("include/pawl/"):
        return "public"
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[0] == "systems" and len(parts) > 2:
        return f"system {parts[1]}"
    return "examples" if parts[0] == "examples" else None


def _target(included, own):
    """The room an include leads to: "public <stem>", a room, a system, or None for a third party."""
    parts = included.split("/")
    if parts[0] == "src":
        parts = parts[1:]
    if parts[0] == "pawl" and len(parts) > 1:
        return "public " + parts[1].removesuffix(".hpp")
    if parts[0] == "systems" and len(parts) > 1:
        return f"system {parts[1]}"
    if parts[0] in ROOMS and len(parts) > 1:
        return parts[0]
    if parts[0] in SYSTEMS and len(parts) > 1:
        return f"system {parts[0]}"
    return own


def _allowed(own, target):
    if target == own:
        return True
    if target.startswith("public "):
        # A pattern's public headers belong to the pattern.
        pattern = target.removeprefix("public ")
        if pattern not in PATTERNS:
            return not (own == "store" and pattern == "engine")
        return own not in {"store", "kernel"} and (own not in PATTERNS or own == pattern)
    if own in {"public", "examples", "store"}:
        return False
    if target in {"server", "cli"} or target.startswith("system "):
        return own == "cli"
    if own == "kernel":
        return target == "store"
    if own in PATTERNS:
        return target in {"kernel", "store"}
    return target in ROOMS


def check_includes(path, text):
    own = _room(path)
    code = cpp.without_comments(text)
    line = cpp.line_of(text)
    for match in _INCLUDE.finditer(code):
        number, quote, included = line(match.start(1)), match[1], match[2]
        if included.startswith("."):
            yield number, f"includes {included} by a relative path; write it from src/ or include/"
        elif own == "public" and quote == "<":
            if not _STANDARD.fullmatch(included) and not (path.endswith(("/codec.hpp", "/detail/codec_struct.hpp")) and included.startswith("boost/pfr")):
                yield number, f"a public header includes <{included}>; only the standard library and pawl/ are allowed"
        elif quote == '"' and own is not None:
            if own == "public" and not included.startswith("pawl/"):
                yield number, f'a public header includes "{included}"; only pawl/ headers are allowed'
            elif not _allowed(own, _target(included, own)):
                yield number, f'{own} must not include "{included}": includes point systems → patterns → kernel → store'
