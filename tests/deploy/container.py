#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what the container file installs for building with what scripts/setup installs.

    container.py <source directory>
"""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
# Libraries that only the tests and the tools use.
FOR_TESTS = {"libgtest-dev", "libgmock-dev", "librapidcheck-dev", "libclang-rt-19-dev"}


def words(path, pattern):
    """The words of the first part of the file that the pattern matches, without line breaks."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return set(re.search(pattern, text, re.DOTALL)[1].replace("\\", " ").split())


class ContainerTest(unittest.TestCase):
    def setUp(self):
        self.setup = words("scripts/setup", r"\npackages=\((.*?)\n\)")
        self.container = words("deploy/container/Containerfile", r"AS build\nRUN .*?--no-install-recommends(.*?)\nCOPY")

    def test_every_library_that_the_server_is_built_with_is_installed(self):
        libraries = {name for name in self.setup if name.endswith("-dev")} - FOR_TESTS
        self.assertGreaterEqual(len(libraries), 10)
        self.assertEqual(libraries - self.container, set())

    def test_nothing_is_installed_that_building_does_not_need(self):
        self.assertEqual(self.container - self.setup, set())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
