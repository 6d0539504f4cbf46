#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that check.py notices each way in which a compile-fail test can be wrong.

    self_test.py <compiler> [flag…]
"""
import pathlib
import sys
import tempfile
import unittest

import check

COMPILER = []


class CheckTest(unittest.TestCase):
    def problems(self, name, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, name)
            path.write_text(text, encoding="utf-8")
            return check.check(path, COMPILER)

    def test_accepts_a_file_that_fails_as_expected(self):
        self.assertEqual(self.problems("a.cpp", '// expect: no such thing\nstatic_assert(false, "no such thing");\n'), [])

    def test_reports_a_file_that_compiles(self):
        self.assertEqual(self.problems("a.cpp", "// expect: x\nint x;\n"), ["compiles, but must not"])

    def test_reports_a_file_that_fails_for_another_reason(self):
        [problem] = self.problems("a.cpp", "// expect: no such thing\nint x = ;\n")
        self.assertIn("do not match /no such thing/", problem)

    def test_every_expectation_must_match(self):
        text = '// expect: one\n// expect: two\nstatic_assert(false, "one");\n'
        [problem] = self.problems("a.cpp", text)
        self.assertIn("/two/", problem)

    def test_the_expectation_itself_is_not_a_match(self):
        [problem] = self.problems("a.cpp", "// expect: quite unlikely\nint x = ;\n")
        self.assertIn("do not match", problem)

    def test_reports_a_file_without_an_expectation(self):
        [problem] = self.problems("a.cpp", "int x = ;\n")
        self.assertIn("no `// expect:", problem)

    def test_accepts_a_positive_control_that_compiles(self):
        self.assertEqual(self.problems("positive_a.cpp", "int x;\n"), [])

    def test_reports_a_positive_control_that_does_not_compile(self):
        [problem] = self.problems("positive_a.cpp", "int x = ;\n")
        self.assertIn("does not compile", problem)


if __name__ == "__main__":
    COMPILER = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
