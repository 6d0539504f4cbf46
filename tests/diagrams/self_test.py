#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that `pawl_diagrams --check` notices each way in which the pages can be out of date.

    self_test.py <pawl_diagrams>
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""


class DiagramsTest(unittest.TestCase):
    def setUp(self):
        self._temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self._temporary.cleanup)
        self.folder = pathlib.Path(self._temporary.name, "machines")
        self.assertEqual(self.run_program(str(self.folder)), (0, ""))

    def run_program(self, *arguments):
        run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
        return run.returncode, run.stdout

    def findings(self):
        code, output = self.run_program("--check", str(self.folder))
        self.assertEqual(code, 1)
        return output

    def test_fresh_pages_are_in_order(self):
        self.assertEqual(self.run_program("--check", str(self.folder)), (0, ""))

    def test_a_changed_page_is_reported(self):
        page = self.folder / "fleet_instance.md"
        page.write_text(page.read_text(encoding="utf-8") + "x", encoding="utf-8")
        self.assertRegex(self.findings(), r"^\S*fleet_instance\.md: differs from its machine")

    def test_a_missing_page_is_reported(self):
        (self.folder / "README.md").unlink()
        self.assertRegex(self.findings(), r"^\S*README\.md: is missing")

    def test_a_page_without_a_machine_is_reported(self):
        (self.folder / "old.md").write_text("# old\n", encoding="utf-8")
        self.assertRegex(self.findings(), r"^\S*old\.md: belongs to no machine")

    def test_wrong_arguments_are_refused(self):
        self.assertEqual(self.run_program()[0], 2)
        self.assertEqual(self.run_program("--check")[0], 2)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
