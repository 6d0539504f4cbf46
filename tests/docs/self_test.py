#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that the checks of examples and documentation notice what they are for."""
import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

import example
import getting_started
import glossary

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "docs-sync"
sys.dont_write_bytecode = True
LOADER = importlib.machinery.SourceFileLoader("docs_sync", str(SCRIPT))
docs_sync = importlib.util.module_from_spec(importlib.util.spec_from_loader("docs_sync", LOADER))
LOADER.exec_module(docs_sync)

SOURCE = "// SPDX-License-Identifier: Apache-2.0\n// One idea.\nint main() {}\n\n// prints: hello\n"


class ExampleTest(unittest.TestCase):
    def check(self, source, code):
        return example.check(source, [sys.executable, "-c", code])

    def test_accepts_exactly_the_stated_lines(self):
        self.assertEqual(self.check("// prints: a  b\n// prints:\n// prints: c\n", "print('a  b\\n\\nc')"), "")

    def test_reports_another_line(self):
        self.assertIn("-hello\n+hullo", self.check(SOURCE, "print('hullo')"))

    def test_reports_a_line_too_many(self):
        self.assertIn("+more", self.check(SOURCE, "print('hello\\nmore')"))

    def test_reports_a_missing_line(self):
        self.assertIn("-hello", self.check(SOURCE, ""))

    def test_reports_failure_even_with_the_right_output(self):
        self.assertIn("status 3", self.check(SOURCE, "print('hello'); raise SystemExit(3)"))

    def test_reports_an_example_that_states_no_output(self):
        self.assertIn("no `// prints:`", self.check("int main() {}\n", ""))

    def test_reports_an_example_that_fails_when_it_runs_again(self):
        code = "print('hello'); open('left', 'x').close()"
        self.assertIn("when it ran again", self.check(SOURCE, code))

    def test_runs_the_example_in_a_directory_of_its_own(self):
        code = "import os; print(os.listdir('.')); open('left', 'w').close()"
        self.assertEqual(self.check("// prints: []\n", code), "")
        self.assertEqual(self.check("// prints: []\n", code), "")


class DocsSyncTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)
        (self.root / "examples").mkdir()
        (self.root / "examples" / "one.cpp").write_text(SOURCE, encoding="utf-8")

    def readme(self, block, marker="examples/one.cpp"):
        path = self.root / "README.md"
        path.write_text(f"# T\n\n<!-- from {marker} -->\n{block}\nAfter.\n", encoding="utf-8")
        return path

    def test_rewrites_the_block_without_licence_and_prints_lines(self):
        path = self.readme("```cpp\nold\n```")
        self.assertEqual(docs_sync.main(self.root, check=False), 0)
        self.assertIn("-->\n```cpp\n// One idea.\nint main() {}\n```\nAfter.", path.read_text(encoding="utf-8"))
        self.assertEqual(docs_sync.main(self.root, check=True), 0)

    def test_reports_a_block_that_differs_and_leaves_it(self):
        path = self.readme("```cpp\nold\n```")
        before = path.read_text(encoding="utf-8")
        self.assertEqual(docs_sync.main(self.root, check=True), 1)
        self.assertEqual(path.read_text(encoding="utf-8"), before)

    def test_takes_only_the_named_part_without_its_indentation(self):
        source = "int a;\n  // excerpt: b\n  int b {\n    1};\n  // excerpt end\nint c;\n"
        (self.root / "examples" / "one.cpp").write_text(source, encoding="utf-8")
        path = self.readme("```cpp\nold\n```", "examples/one.cpp: b")
        self.assertEqual(docs_sync.main(self.root, check=False), 0)
        self.assertIn(": b -->\n```cpp\nint b {\n  1};\n```\nAfter.", path.read_text(encoding="utf-8"))

    def test_leaves_the_marks_of_parts_out_of_the_whole(self):
        (self.root / "examples" / "one.cpp").write_text("// excerpt: b\nint b;\n// excerpt end\n", encoding="utf-8")
        path = self.readme("```cpp\nold\n```")
        self.assertEqual(docs_sync.main(self.root, check=False), 0)
        self.assertIn("-->\n```cpp\nint b;\n```\nAfter.", path.read_text(encoding="utf-8"))

    def test_reports_a_marker_for_an_absent_part(self):
        self.readme("```cpp\nint main() {}\n```", "examples/one.cpp: b")
        self.assertEqual(docs_sync.main(self.root, check=True), 1)

    def test_reports_a_marker_without_a_block(self):
        self.readme("no block")
        self.assertEqual(docs_sync.main(self.root, check=True), 1)

    def test_reports_a_marker_for_an_absent_example(self):
        self.readme("```cpp\nold\n```")
        (self.root / "examples" / "one.cpp").unlink()
        self.assertEqual(docs_sync.main(self.root, check=True), 1)


class GlossaryTest(unittest.TestCase):
    def problems(self, *rows):
        text = "# Glossary\n\n| term | meaning | home |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        return list(glossary.problems(text, lambda path: path in {"docs/a.md", "include/pawl/a.hpp"}))

    def test_accepts_sorted_terms_of_one_sentence_with_a_home(self):
        self.assertEqual(self.problems("| claim | A request. | `include/pawl/a.hpp` |", "| lane | A queue. | [a](a.md) |"), [])

    def test_reports_terms_out_of_order_and_terms_given_twice(self):
        row = "| lane | A queue. | [a](a.md) |"
        self.assertIn("stands after", self.problems(row, row.replace("lane", "claim"))[0])
        self.assertIn("stands after", self.problems(row, row)[0])

    def test_reports_a_meaning_of_two_sentences_and_an_absent_home(self):
        self.assertIn("one sentence", self.problems("| lane | A queue. It runs. | [a](a.md) |")[0])
        self.assertIn("docs/b.md", self.problems("| lane | A queue. | [b](b.md) |")[0])

    def test_reports_too_many_terms_and_none(self):
        rows = [f"| lane{number} | A queue. | [a](a.md) |" for number in range(10, 71)]
        self.assertEqual(self.problems(*rows), ["has 61 terms; the limit is 60"])
        self.assertEqual(self.problems(), ["has no terms"])


class GettingStartedTest(unittest.TestCase):
    def test_finds_programs_commands_and_outputs_in_order(self):
        text = "# A\n\n<!-- from examples/start_a.cpp -->\n```cpp\nint a;\n```\n\n```sh\nls\n```\n\n```text\nb\n```\n"
        self.assertEqual(getting_started.steps(text), [("cpp", "a", "int a;\n"), ("sh", None, "ls\n"), ("text", None, "b\n")])

    def test_runs_only_the_installation_of_pawl_itself(self):
        build = "cmake --build --preset release\ncmake --install build/release --prefix a\n"
        self.assertEqual(getting_started.installation(build), "cmake --install build/release --prefix a")
        self.assertIsNone(getting_started.installation("cmake --build build\n"))

    def test_compares_line_by_line_with_gaps(self):
        self.assertTrue(getting_started.same("a …  (c)\nd\n", "a b  (c)\nd\n"))
        self.assertFalse(getting_started.same("a\n", "a\nb\n"))
        self.assertFalse(getting_started.same("a …c\n", "a bd\n"))


if __name__ == "__main__":
    unittest.main(buffer=True)
