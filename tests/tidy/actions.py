# SPDX-License-Identifier: Apache-2.0
"""What the actions of workers must not do; the compiler cannot see it."""
import re

import cpp

PATHS = re.compile(r"(examples|systems|src/supervise)/.*\.[ch]pp$")
# The function itself, inside its class or outside of it.
_RUN = re.compile(r"\brun\([^;{}()]*\bActionContext\b[^;{}()]*\)\s*(?:noexcept\s*)?\{")

FORBIDDEN = [
    (r"\bwhile\s*\(|\bdo\s*\{|\bfor\s*\(\s*;|\bfor\s*\([^;()]*\b(?:attempt|retr|tr[iy])\w*[^()]*;",
     "an action does not try again by itself, because the supervisor does, with a back-off that is counted and seen: "
     "return the error"),
    (r"\bstd::(?:this_thread::)?(?:sleep_for|sleep_until)\b|\b(?:u|nano)?sleep\s*\(|\bsleep_(?:for|until)\s*\(",
     "an action does not sleep, because a worker that is to stop would wait for it: return, and let the next "
     "observation decide"),
    (r"\bstd::(?:jthread|thread|async)\b|\bpthread_create\b|\.detach\(\)",
     "an action starts no thread, because it would go on unseen after the action has ended: do the work here, or "
     "make it a worker"),
    (r"\bstatic\s+(?!const\b|constexpr\b)",
     "an action keeps nothing between its runs, because after a crash it would be lost: observe it instead"),
]


def _body_end(code, begin):
    depth = 1
    for at in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return len(code)


def check_actions(path, text):
    if not PATHS.match(path) or "ActionContext" not in text:
        return
    code = cpp.without_directives(cpp.code_only(text))
    line = cpp.line_of(code)
    for action in _RUN.finditer(code):
        end = _body_end(code, action.end())
        for pattern, message in FORBIDDEN:
            for match in re.compile(pattern).finditer(code, action.end(), end):
                yield line(match.start()), message
