#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants each violation in a temporary directory and sees it reported, and sees its harmless look-alike pass."""
import pathlib
import subprocess
import tempfile
import unittest

import tidy

CPP = "// SPDX-License-Identifier: Apache-2.0\n"
HASH = "# SPDX-License-Identifier: Apache-2.0\n"
HEADER = CPP + "#pragma once\n\n/// Adds.\n///\n///     add(1, 2);\n\n"


def coroutine(statement):
    return CPP + "task<int> run() {\n  prepare();\n  " + statement + "\n  finish();\n}\n"


def action(statement, head="static pawl::Result<void> run("):
    return CPP + head + "Tools&, const Desired&, const pawl::ActionContext& context) {\n  " + statement + "\n}\n"


# (path, text, part of the one expected message)
VIOLATIONS = [
    ("src/kernel/a.cpp", CPP + "int a;\n" * 600, "the limit is 600"),
    ("scripts/a", "#!/bin/bash\n" + HASH + "a\n" * 600, "the limit is 600"),
    ("include/pawl/a.hpp", HEADER + "int a;  ///< a\n" * 400, "the limit is 400"),
    ("src/kernel/a.cpp", CPP + "// " + "a" * 108 + "\n", "111 columns"),
    ("src/kernel/a.cpp", CPP + "int a() {\n" + "  b();\n" * 79 + "}\n", "a function of 81 lines"),
    ("src/kernel/a.cpp", CPP + "int A::a() const noexcept {\n" + "  b();\n" * 79 + "}\n", "a function of 81 lines"),
    ("src/kernel/a.cpp", CPP + "auto a() -> int {\n" + "  b();\n" * 79 + "}\n", "a function of 81 lines"),
    ("src/kernel/a.cpp", CPP + "struct A {\n  int a() {\n" + "    b();\n" * 79 + "  }\n};\n", "a function of 81 lines"),
    ("tests/kernel/a_test.cpp", CPP + "TEST(A, B) {\n" + "  b();\n" * 79 + "}\n", "a function of 81 lines"),
    ("src/kernel/a.cpp", "int a;\n", "the first line is not"),
    ("src/kernel/a.cpp", "\n" + CPP, "the first line is not"),
    ("tests/kernel/a.py", "a = 1\n", "is not the first line"),
    ("scripts/a", "#!/bin/bash\necho\n", "is not the first line"),
    ("docs/a.md", "# A\n\nb \n", "white space at the end"),
    ("docs/a.md", "# A\r\n", "white space at the end"),
    ("src/kernel/a.cpp", CPP + "\tint a;\n", "a tab"),
    ("docs/a.md", "# A\n\nb", "no newline at the end"),
    ("docs/a.md", "# A\n\n", "an empty line at the end"),
    ("src/kernel/a.cpp", CPP + "// TO" "DO: later\n", "finish it"),
    ("docs/a.md", "# A\n\nFIX" "ME\n", "finish it"),
    ("scripts/a", "#!/bin/bash\n" + HASH + "# XX" "X\n", "finish it"),
    ("docs/a.md", "# A\n\nSee /ro" "ot/a.\n", "path of one machine"),
    ("src/kernel/a.cpp", CPP + 'auto a = "/ho' 'me/me";\n', "path of one machine"),
    ("src/kernel/a.cpp", CPP + "void a() { std::cout << 1; }\n", "std::cout"),
    ("src/kernel/a.cpp", CPP + 'int a = system("ls");\n', "run a shell"),
    ("src/kernel/a.cpp", CPP + 'auto a = ::popen("ls", "r");\n', "run a shell"),
    ("tests/kernel/a_test.cpp", CPP + "using namespace std;\n", "using namespace std"),
    ("bench/a_bench.cpp", CPP + "int a = std::rand();\n", "std::rand"),
    ("src/kernel/a.cpp", CPP + "void a() { assert(true); }\n", "use PAWL_ASSERT"),
    ("tests/kernel/a_test.cpp", CPP + "void a() { std::this_thread::sleep_for(1s); }\n", "tests do not sleep"),
    ("tests/kernel/a_test.cpp", CPP + "void a() { usleep(1); }\n", "tests do not sleep"),
    ("src/kernel/a.cpp", CPP + "void a() { for (auto b : c(1).value()) d(b); }\n", "name the value first"),
    ("tests/kernel/a.py", HASH + "time." "sleep(1)\n", "tests do not sleep"),
    ("include/pawl/a.hpp", HEADER.replace("#pragma once\n", "") + "int a;\n", "without `#pragma once`"),
    ("include/pawl/a.hpp", HEADER.replace("///     add", "/// add") + "int a;\n", "an indented example"),
    ("include/pawl/a.hpp", HEADER.replace("/// Adds", "#include <map>\n\n/// Adds") + "int a;\n", "an indented example"),
    ("include/pawl/a.hpp", HEADER + "int a();\n" * 30, "of the lines have a comment"),
    ("include/pawl/a.hpp", HEADER + "namespace pawl::detail {\nint b();\n}\n" + "int a();\n" * 30, "have a comment"),
    ("src/server/a.cpp", coroutine("co_await f(Options{.name = 1});"), "a `{`"),
    ("src/server/a.cpp", coroutine("co_return Point{1, co_await g()};"), "a `{`"),
    ("src/server/a.cpp", coroutine("co_await f({1, 2}, g());"), "a `{`"),
    ("src/server/a.cpp", coroutine("h({1, 2}, co_await g());"), "a `{`"),
    ("src/server/a.cpp", coroutine("co_await f([&] { g(); });"), "a `{`"),
    ("src/server/a.cpp", coroutine("if (co_await f(A{1})) {\n    g();\n  }"), "a `{`"),
    ("src/server/a.cpp", coroutine("auto a = b ? co_await f() : 0;"), "a `?:`"),
    ("src/server/a.cpp", coroutine("auto a = co_await f(b ? 1 : 0);"), "a `?:`"),
    ("docs/a.md", "Text.\n", "0 headings"),
    ("docs/a.md", "# A\n\n# B\n", "2 headings"),
    ("include/pawl/a.hpp", HEADER + "#include <fmt/format.h>\n", "a public header includes <fmt/format.h>"),
    ("include/pawl/a.hpp", HEADER + "#include <boost/pfr.hpp>\n", "a public header includes <boost/pfr.hpp>"),
    ("include/pawl/codec.hpp", HEADER + "#include <boost/json.hpp>\n", "a public header includes <boost/json"),
    ("include/pawl/a.hpp", HEADER + '#include "kernel/a.hpp"\n', 'a public header includes "kernel/a.hpp"'),
    ("include/pawl/a.hpp", HEADER + '#include "systems/fleet/a.hpp"\n', 'a public header includes "systems'),
    ("src/kernel/a.cpp", CPP + '#include "flow/a.hpp"\n', "kernel must not include"),
    ("src/kernel/a.cpp", CPP + '#include "pawl/flow.hpp"\n', "kernel must not include"),
    ("src/kernel/a.cpp", CPP + '#include "../flow/a.hpp"\n', "by a relative path"),
    ("src/store/sqlite/a.cpp", CPP + '#include "kernel/a.hpp"\n', "store must not include"),
    ("src/store/a.cpp", CPP + '#include "pawl/engine.hpp"\n', "store must not include"),
    ("src/flow/a.cpp", CPP + '#include "roster/a.hpp"\n', "flow must not include"),
    ("src/flow/a.cpp", CPP + '#include "pawl/roster.hpp"\n', "flow must not include"),
    ("src/flow/a.cpp", CPP + '#include "src/server/a.hpp"\n', "flow must not include"),
    ("src/server/a.cpp", CPP + '#include "cli/a.hpp"\n', "server must not include"),
    ("src/server/a.cpp", CPP + '#include "systems/fleet/a.hpp"\n', "server must not include"),
    ("systems/fleet/a.cpp", CPP + '#include "systems/feeds/a.hpp"\n', "system fleet must not include"),
    ("systems/fleet/a.cpp", CPP + '#include "server/a.hpp"\n', "system fleet must not include"),
    ("examples/a.cpp", CPP + '#include "kernel/a.hpp"\n', "examples must not include"),
    ("examples/a.cpp", action("while (!open()) knock();"), "does not try again by itself"),
    ("systems/workers/a.hpp", action("do { knock(); } until(open());"), "does not try again by itself"),
    ("systems/workers/a.hpp", action("for (;;) knock();"), "does not try again by itself"),
    ("src/supervise/a.hpp", action("for (int attempt = 0; attempt < 3; ++attempt) knock();"), "try again by itself"),
    ("systems/workers/a.cpp", action("while (!open()) knock();", "Result<void> A::Open::run("), "try again by itself"),
    ("examples/a.cpp", action("std::this_thread::sleep_for(1s);"), "does not sleep"),
    ("examples/a.cpp", action("usleep(1);"), "does not sleep"),
    ("examples/a.cpp", action("std::thread a(knock);"), "starts no thread"),
    ("examples/a.cpp", action("auto a = std::async(knock);"), "starts no thread"),
    ("examples/a.cpp", action("static int knocks = 0;"), "keeps nothing between its runs"),
    ("src/supervise/a.hpp", CPP + "class Person {};\n", "call it WorkerShared"),
    ("src/supervise/a.hpp", CPP + "std::shared_ptr<Hands> a();\n", "call it ToolHolder"),
    ("src/supervise/a.hpp", CPP + "struct Grip {};\n", "call it BoundTools"),
    ("src/supervise/a.cpp", CPP + "void give_birth();\n", "call it create_child"),
    ("src/supervise/a.cpp", CPP + "void born();\n", "call it child_created"),
    ("src/kernel/a.cpp", CPP + "struct Happening {};\n", "call it Command"),
    ("src/kernel/a.cpp", CPP + "void wait_for_company();\n", "call it linger_for_batch"),
    ("src/kernel/a.hpp", CPP + "class A {\n  int visitors_ = 0;\n};\n", "call it inline_callers_"),
    ("systems/images/a.hpp", CPP + "struct Deeds {};\n", "Deeds: call it"),
    ("systems/images/a.hpp", CPP + "class Workshop {};\n", "Workshop: call it"),
    ("systems/images/a.hpp", CPP + "class Shelf {};\n", "Shelf: call it"),
    ("systems/workers/a.hpp", CPP + "class Strays {};\n", "Strays: call it"),
    ("systems/workers/a.cpp", CPP + "void take_good();\n", "take_good: call it"),
    ("src/kernel/a.cpp", CPP + "auto a = runtime.open_workers();\n", "call it open_thread_pool"),
    ("src/kernel/a.hpp", CPP + "class Workers {\n  int a();\n};\n", "Workers: call it ThreadPool"),
    ("include/pawl/a.hpp", HEADER + "/// A.\nstruct A {\n  int begun = 0;\n};\n", "A::begun: call it what has begun"),
    ("include/pawl/a.hpp", HEADER + "/// A.\nstruct A {\n  std::vector<int> reduced{};\n};\n", "weakened_guarantees"),
    ("include/pawl/a.hpp", HEADER + "/// A.\nstruct A {\n  std::string otherwise;\n};\n", "A::otherwise: call it default_value"),
    ("include/pawl/a.hpp", HEADER + "/// A.\nstruct Run {\n  std::string run;\n};\n", "Run::run: call it ulid"),
    ("src/kernel/a.cpp", CPP + "// Somebody who wants" + " to do work of these names.\n", "A blocked claim() call"),
    ("docs/a.md", "# A\n\nFaster for one" + " who is alone.\n", "Saves a wake-up when the engine is idle"),
    ("src/flow/a.hpp", CPP + "/// What did not\n/// go straight" " on.\n", "Error, cancel and cleanup state"),
    ("src/server/a.cpp", CPP + 'auto a = "workers that "\n    "were built' ' afresh";\n', "Worker restarts"),
    ("docs/a.md", "# A\n\nA tree, kept as\na file" " says.\n", "declared in YAML"),
    ("web/src/a.tsx", "title('No run is" + " unfinished')\n", "No runs in progress"),
]

# What looks like a violation and is none.
HARMLESS = [
    ("src/kernel/a.cpp", CPP + "int a;\n" * 599),
    ("src/kernel/a.cpp", CPP + "// https://example.com/" + "a" * 100 + "\n"),
    ("src/kernel/a.cpp", CPP + "int a() {\n" + "  b();\n" * 78 + "}\n"),
    ("src/kernel/a.cpp", CPP + "namespace a {\n" + "void b() {}\n" * 100 + "}\n"),
    ("src/kernel/a.cpp", CPP + "class A : public B {\n" + "  void b() {}\n" * 100 + "};\n"),
    ("src/kernel/a.cpp", CPP + "constexpr auto a = std::to_array({\n" + "    1,\n" * 100 + "});\n"),
    ("src/kernel/a.cpp", CPP + "#define A(x) \\\n  do {         \\\n  } while (0)\nint a() { return 1; }\n"),
    ("scripts/a", "#!/bin/bash\n" + HASH + "echo\n"),
    ("Makefile", "a:\n\techo\n"),
    ("src/kernel/a.cpp", CPP + '// std::cout, assert(x) and system(x)\nauto a = "std::cout assert(x)";\n'),
    ("src/kernel/a.cpp", CPP + "static_assert(true);\nauto a = my_system(1) + b.system(2);\n"),
    ("src/kernel/a.cpp", CPP + 'auto a = R"(assert(x) " {)";\nauto b = \'"\';\nauto c = 1\'000\'000;\n'),
    ("examples/a.cpp", CPP + "void a() { std::cout << 1; }\n"),
    ("tests/kernel/a_test.cpp", CPP + "using namespace std::chrono_literals;\n"),
    ("docs/a.md", "# A\n\n```sh\n# a comment\n```\n\nSee /usr/share, ~/work/a and a/home/b.\n"),
    ("include/pawl/a.hpp", HEADER + "/// Adds a to b.\nint add(int a, int b);\n"),
    ("include/pawl/a.hpp", HEADER + "#define A(X) \\\n" + "  X(1) \\\n" * 50 + "  X(2)\n"),
    ("include/pawl/a.hpp", HEADER + "namespace pawl::detail {\n" + "int a() { return 1; }\n" * 50 + "}\n"),
    ("include/pawl/detail/a.hpp", CPP + "#pragma once\n" + "int a();\n" * 50),
    ("include/pawl/codec.hpp", HEADER + '#include <boost/pfr.hpp>\n#include <map>\n#include "pawl/error.hpp"\n'),
    ("src/server/a.cpp", coroutine("co_await f(a, b[i]);")),
    ("src/server/a.cpp", coroutine("auto op = f(A{1});\n  co_await op;")),
    ("src/server/a.cpp", coroutine("if (co_await f()) {\n    g(A{1});\n  }")),
    ("src/server/a.cpp", coroutine("if (a) {\n    b();\n  } else if (co_await f()) {\n    g();\n  }")),
    ("src/server/a.cpp", coroutine("while (co_await f()) {\n    a = b ? 1 : 2;\n  }")),
    ("src/server/a.cpp", coroutine("for (;;) {\n    co_await f();\n  }")),
    ("src/server/a.cpp", coroutine("spawn([a]() -> task<void> {\n    co_await f();\n  });")),
    ("src/server/a.cpp", coroutine("a = A{1};\n  co_await f();")),
    ("src/store/a.cpp", CPP + '#include <fmt/format.h>\n#include "pawl/error.hpp"\n#include "store/b.hpp"\n'),
    ("src/kernel/a.cpp", CPP + '#include "kernel/b.hpp"\n#include "pawl/engine.hpp"\n#include "store/b.hpp"\n'),
    ("src/flow/a.cpp", CPP + '#include "flow/b.hpp"\n#include "kernel/b.hpp"\n#include "pawl/flow.hpp"\n'),
    ("src/cli/a.cpp", CPP + '#include "server/b.hpp"\n#include "systems/fleet/b.hpp"\n'),
    ("systems/fleet/a.cpp", CPP + '#include "fleet/b.hpp"\n#include "pawl/roster.hpp"\n'),
    ("tests/flow/a_test.cpp", CPP + '#include "kernel/a.hpp"\n#include "server/a.hpp"\n'),
    ("examples/a.cpp", action("for (const auto& door : desired.doors) knock(door);")),
    ("examples/a.cpp", action("static constexpr int kDoors = 3;")),
    ("examples/a.cpp", action("return {};  // no while (true) here")),
    ("examples/a.cpp", action("return {};") + "void wait() {\n  while (!open()) knock();\n}\n"),
    ("examples/a.cpp", CPP + "Result<void> run(Tools&, const pawl::CollectContext&) {\n  while (more()) read();\n}\n"),
    ("src/kernel/a.cpp", CPP + '// Hands a job to a Person who was born.\nauto a = "Workshop";\n'),
    ("src/kernel/a.cpp", CPP + "auto a() {\n  const auto begun = now();\n  return now() - begun;\n}\n"),
    ("src/flow/a.hpp", CPP + "struct A {\n  bool begun = false;\n};\n"),
    ("tests/supervise/a.hpp", CPP + "struct Shelf {};\n"),
    ("include/pawl/a.hpp", HEADER + "struct A {\n  int a() {\n    int otherwise = 0;\n    return otherwise;\n  }\n};\n"),
    ("include/pawl/a.hpp", HEADER + "struct A {\n  int b = otherwise;\n  int run = 0;\n  bool reduced() const;\n};\n"),
    ("src/kernel/a.hpp", CPP + "struct Shelfful {};\nclass WorkersTest {};\nclass ThreadPool {};\n"),
    ("docs/a.md", "# A\n\nKept as long as a file says, no run is as yet unfinished.\n"),
    ("examples/a.cpp", CPP + "Result<void> run(Tools&, const pawl::ActionContext&);\nvoid a() {\n  while (b()) c();\n}\n"),
]


class TidyTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
        return file

    def test_reports_each_violation_once_and_nothing_else(self):
        for path, text, message in VIOLATIONS:
            with self.subTest(path=path, text=text[-200:], message=message):
                file = self.write(path, text)
                findings, _ = tidy.check_tree(self.root)
                file.unlink()
                self.assertEqual(len(findings), 1, findings)
                self.assertTrue(findings[0].startswith(path + ":"), findings)
                self.assertIn(message, findings[0])

    def test_a_captured_value_in_a_co_await_is_reported_beside_the_brace(self):
        for lambda_ in ("[a] { g(); }", "[=] { g(); }", "[a = b] { g(); }", "[&c, a] { g(); }"):
            self.write("src/server/a.cpp", coroutine(f"co_await f({lambda_});"))
            findings, _ = tidy.check_tree(self.root)
            self.assertEqual(sum("capture by value" in finding for finding in findings), 1, lambda_)

    def test_leaves_the_harmless_alone(self):
        for path, text in HARMLESS:
            with self.subTest(path=path, text=text[-200:]):
                file = self.write(path, text)
                findings, _ = tidy.check_tree(self.root)
                file.unlink()
                self.assertEqual(findings, [])

    def test_names_the_line(self):
        self.write("docs/a.md", "# A\n\nb\nc \n")
        self.assertEqual(tidy.check_tree(self.root)[0], ["docs/a.md:4: white space at the end of the line"])

    def test_every_rule_has_a_violation(self):
        covered = {rule for path, text, _ in VIOLATIONS for rule in tidy.rules.RULES if any(rule(path, text))}
        self.assertEqual(covered, set(tidy.rules.RULES))

    def test_reads_what_git_would_track_and_not_what_it_ignores(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write(".gitignore", "build/\n")
        self.write("build/a.md", "no heading\n")
        self.write("docs/a.md", "no heading\n")
        findings, count = tidy.check_tree(self.root)
        self.assertEqual(count, 2)
        self.assertEqual([finding.split(":")[0] for finding in findings], ["docs/a.md"])

    def test_reads_only_what_git_tracks_where_that_is_asked(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write("docs/a.md", "no heading\n")
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        self.write("docs/b.md", "no heading\n")
        findings, count = tidy.check_tree(self.root, also_new=False)
        self.assertEqual(count, 1)
        self.assertEqual([finding.split(":")[0] for finding in findings], ["docs/a.md"])


if __name__ == "__main__":
    unittest.main()
