# SPDX-License-Identifier: Apache-2.0
"""Just enough understanding of C++ text for tidy's rules. Not a parser: it relies on the code compiling and
on clang-format having laid it out."""
import bisect
import re

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>\b(?:u8|[uUL])?R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE,
)
_OPENING, _CLOSING = "([{", ")]}"
_BODY_FOLLOWS = re.compile(r"(\)|\b(?:const|noexcept|override|final|mutable|try)|->[^;{}()]+|\brequires\b[^;{}]+)\s*$")
_BLOCK_FOLLOWS = re.compile(_BODY_FOLLOWS.pattern + r"|(^|[;{}:]|\b(?:else|do))\s*$")
_SCOPE = re.compile(r"\b(namespace|class|struct|union|enum)\b[^()]*$|\bextern\s*\"[^\"]*\"\s*$")
_CONTROL = re.compile(r"\s*(?:else\s+)?(?:if|for|while|switch)\b")


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The text with comments blanked; positions and lines stay."""
    return _TOKEN.sub(lambda m: _blank(m[0]) if m["comment"] else m[0], text)


def code_only(text):
    """The text with comments and the content of literals blanked; positions and lines stay."""

    def replace(match):
        if match["comment"]:
            return _blank(match[0])
        quote = '"' if match["char"] is None else "'"
        return quote + _blank(match[0][1:-1]) + quote

    return _TOKEN.sub(replace, text)


def without_directives(code):
    """Blanks preprocessor lines with their continuations: braces in macros need not balance."""
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: _blank(m[0]), code, flags=re.MULTILINE)


def line_of(text):
    """A function that gives the line (from 1) of a position in the text."""
    starts = [0] + [match.end() for match in re.finditer("\n", text)]
    return lambda position: bisect.bisect_right(starts, position)


def comment_lines(text):
    """The numbers of the lines that hold a comment."""
    line = line_of(text)
    found = set()
    for match in _TOKEN.finditer(text):
        if match["comment"]:
            found.update(range(line(match.start()), line(match.end() - 1) + 1))
    return found


def functions(code):
    """Yields (first line, last line) of every function body, the line of its opening brace being the first.
    Bodies inside a body (lambdas, loops) are left out."""
    code = without_directives(code)
    line = line_of(code)
    open_braces = []
    inside = 0
    for match in re.finditer(r"[{}]", code):
        if match[0] == "{":
            head = code[max(0, match.start() - 2000) : match.start()]
            is_body = inside == 0 and bool(_BODY_FOLLOWS.search(head)) and not _SCOPE.search(head)
            inside += is_body
            open_braces.append((match.start(), is_body))
        elif open_braces:
            begin, is_body = open_braces.pop()
            inside -= is_body
            if is_body:
                yield line(begin), line(match.start())


def detail_lines(text):
    """The numbers of the lines inside a `detail` namespace: what templates force into a header."""
    code = without_directives(code_only(text))
    line = line_of(text)
    found = set()
    for match in re.finditer(r"\bnamespace [\w:]*\bdetail \{", code):
        depth, at = 1, match.end()
        while depth > 0 and at < len(code):
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        found.update(range(line(match.start()), line(at - 1) + 1))
    return found


def _statement_begin(code, position):
    """Where the statement around a position begins."""
    depth = 0
    for at in range(position - 1, -1, -1):
        char = code[at]
        if char == ";" and depth == 0:
            return at + 1
        if char == "}" and depth == 0 and re.match(r"\s*(?:[\w~*&:(\[]|$)", code[at + 1 : position + 1]):
            return at + 1
        if char in _CLOSING:
            depth += 1
        elif char in _OPENING and depth > 0:
            depth -= 1
        elif char == "{" and _BLOCK_FOLLOWS.search(code[max(0, at - 500) : at]):
            return at + 1
    return 0


def _statement_end(code, begin, position):
    """Where it ends: at its semicolon, or at the block of an `if` or a loop."""
    depth = 0
    is_control = bool(_CONTROL.match(code[begin:position]))
    for at in range(position, len(code)):
        char = code[at]
        if char == ";" and depth <= 0:
            return at
        if char == "{" and depth < 0 and is_control:
            return at
        if char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
    return len(code)


def awaiting_statements(code):
    """Yields (position, text) of every statement with a co_await, without the block it may govern."""
    code = without_directives(code)
    seen = set()
    for match in re.finditer(r"\bco_await\b", code):
        begin = _statement_begin(code, match.start())
        if begin not in seen:
            seen.add(begin)
            yield match.start(), code[begin : _statement_end(code, begin, match.start())]


def captures_by_value(text):
    """Whether the text has a lambda with a capture by value; `this` and references are harmless."""
    for match in re.finditer(r"(?<![\w)\]\[])\s*\[(?!\[)([^\[\]]*)\]", text):
        before = text[: match.start()].rstrip()
        if before and (before[-1].isalnum() or before[-1] in "_)]") and not before.endswith(("return", "co_await")):
            continue  # a subscript
        names = [name.strip() for name in match[1].split(",") if name.strip()]
        if any(not name.startswith("&") and name != "this" for name in names):
            return True
    return False
