# SPDX-License-Identifier: Apache-2.0
"""Tidy's rules. Each takes a path (relative, with /) and the file's text, and yields (line, message)."""
import re

import actions
import cpp
import rooms
import words

MAX_COLUMNS = 110
MAX_SOURCE_LINES = 600
MAX_PUBLIC_HEADER_LINES = 400
MAX_FUNCTION_LINES = 80
MIN_COMMENT_SHARE = 0.20

# Spelt in two parts, so that tidy does not find them here.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "XX" "X"]) + r")\b")
MACHINE_PATHS = re.compile(r"(?<![\w.~}\])-])/(work/|root/|home/|tmp" r"/wt)")

# (paths, pattern in code, what to do instead)
BANNED = [
    (r".*", r"\busing\s+namespace\s+std\s*;", "name what is used instead of `using namespace std`"),
    (r".*", r"\bstd::rand\b|\bsrand\s*\(", "take randomness from the Runtime instead of std::rand"),
    (r".*", r"(?<!\w)assert\s*\(", "use PAWL_ASSERT, which stays on in release builds, instead of assert"),
    (r"(src|include|systems)/", r"\bstd::cout\b", "only the command prints, with fmt::print; std::cout is not used"),
    (r"(src|include|systems)/", r"(?<![\w.>])(system|popen)\s*\(", "system and popen run a shell; spawn the program"),
    (r"tests/", r"\b(sleep_for|sleep_until|usleep|nanosleep)\b|(?<![\w.>])sleep\s*\(",
     "tests do not sleep; use the virtual clock or a Gate"),
    (r".*", r"\bfor \([^;{}]*[^:]:[^:][^;{}]*\)\s*\.value\(\)\) ",
     "g++ 12 destroys the result before the loop runs over its value; name the value first"),
]


def is_cpp(path):
    return path.endswith((".cpp", ".hpp"))


def is_public_header(path):
    return path.startswith("include/pawl/") and path.endswith(".hpp")


def is_script(path, text):
    return path.endswith((".py", ".sh")) or text.startswith("#!")


def check_size(path, text):
    lines = text.count("\n")
    limit = MAX_PUBLIC_HEADER_LINES if is_public_header(path) else MAX_SOURCE_LINES
    if (is_cpp(path) or is_script(path, text)) and lines > limit:
        yield lines, f"{lines} lines; the limit is {limit}: split the file by idea"


def check_columns(path, text):
    if is_cpp(path):
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > MAX_COLUMNS and "://" not in line:
                yield number, f"{len(line)} columns; the limit is {MAX_COLUMNS}"


def check_functions(path, text):
    if is_cpp(path):
        for first, last in cpp.functions(cpp.code_only(text)):
            if last - first + 1 > MAX_FUNCTION_LINES:
                yield first, f"a function of {last - first + 1} lines; the limit is {MAX_FUNCTION_LINES}"


def check_licence(path, text):
    lines = text.splitlines()
    if is_cpp(path) and lines[:1] != ["// SPDX-License-Identifier: Apache-2.0"]:
        yield 1, "the first line is not `// SPDX-License-Identifier: Apache-2.0`"
    if is_script(path, text) and "# SPDX-License-Identifier: Apache-2.0" not in lines[:2]:
        yield 1, "`# SPDX-License-Identifier: Apache-2.0` is not the first line (or the second, after #!)"


def check_whitespace(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith((" ", "\t", "\r")):
            yield number, "white space at the end of the line"
        elif "\t" in line and not path.endswith("Makefile"):
            yield number, "a tab; indent with spaces and write \\t in literals"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end of the file"
    elif text.endswith("\n\n"):
        yield text.count("\n"), "an empty line at the end of the file"


def check_unfinished(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := UNFINISHED.search(line):
            yield number, f"{match[0]}: finish it, or say in plain words what the limits are"


def check_machine_paths(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if match := MACHINE_PATHS.search(line):
            yield number, f"{match[0]} is a path of one machine"


def check_banned(path, text):
    if not is_cpp(path):
        return
    code = cpp.code_only(text)
    line = cpp.line_of(code)
    for paths, pattern, message in BANNED:
        if re.match(paths, path):
            for match in re.finditer(pattern, code):
                yield line(match.start()), message


def check_python_sleep(path, text):
    if path.startswith("tests/") and path.endswith(".py"):
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\btime\." r"sleep\(", line):
                yield number, "tests do not sleep; wait for the event itself"


def check_public_header(path, text):
    # What stands in detail/ is there for the compiler, not for readers.
    if not is_public_header(path) or path.startswith("include/pawl/detail/"):
        return
    after_pragma = re.search(r"^#pragma once\n\s*(.*)", text, re.MULTILINE | re.DOTALL)
    if not after_pragma:
        yield 1, "a public header without `#pragma once`"
        return
    opening = re.match(r"(?:///[^\n]*\n)*", after_pragma[1])[0]
    if not re.search(r"^/// {5,}\S", opening, re.MULTILINE):
        yield 3, "a public header begins, after `#pragma once`, with a /// comment that has an indented example"
    # Macro tables are data and `detail` is not for users; both are left out of the count.
    body, detail = cpp.without_directives(text).splitlines(), cpp.detail_lines(text)
    counted = [number for number, line in enumerate(body, 1) if line.strip() and number not in detail]
    commented = cpp.comment_lines(text)
    share = sum(number in commented for number in counted) / max(1, len(counted))
    if share < MIN_COMMENT_SHARE:
        yield 1, f"{share:.0%} of the lines have a comment; a public header explains itself with {MIN_COMMENT_SHARE:.0%}"


def check_coroutines(path, text):
    if not is_cpp(path) or "co_await" not in text:
        return
    code = cpp.code_only(text)
    line = cpp.line_of(code)
    advice = "g++ 12 miscompiles it; build the operand in a named variable first"
    for position, statement in cpp.awaiting_statements(code):
        number = line(position)
        if "{" in statement:
            yield number, f"a `{{` in a statement with co_await: {advice}"
        if "?" in statement:
            yield number, f"a `?:` in a statement with co_await: {advice}"
        if cpp.captures_by_value(statement):
            yield number, f"a capture by value in a statement with co_await: {advice}"


def check_markdown(path, text):
    if not path.endswith(".md"):
        return
    prose = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    count = len(re.findall(r"^# ", prose, re.MULTILINE))
    if count != 1:
        yield 1, f"{count} headings of the first level; a page has exactly one"


def check_includes(path, text):
    return rooms.check_includes(path, text) if is_cpp(path) else ()


# LICENSE is somebody else's text.
UNTOUCHED = re.compile(r"LICENSE$|fuzz/corpus/|tests/.*/(data|golden)/")

RULES = [
    check_size, check_columns, check_functions, check_licence, check_whitespace, check_unfinished,
    check_machine_paths, check_banned, check_python_sleep, check_public_header, check_coroutines, check_markdown,
    check_includes, actions.check_actions, words.check_words,
]
