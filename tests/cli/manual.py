#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the built command says about itself: help, completions, the manual page, and its page in docs.

    manual.py <pawl> <docs/cli.md>
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import world

PAWL = os.path.abspath(sys.argv[1])
DOCS = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.place = world.Place(PAWL, directory.name)

    def verbs(self, *path):
        """The verbs of a command, as its help lists them."""
        listed = self.place.run(*path, "--help").stdout.partition("Subcommands:\n")[2]
        return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)

    def leaves(self, *path):
        verbs = self.verbs(*path)
        return [leaf for verb in verbs for leaf in self.leaves(*path, verb)] if verbs else [path]


class CompletionTest(Case):
    def complete(self, *words):
        """What bash offers for the last of these words."""
        script = (f"source <('{PAWL}' completion bash); COMP_WORDS=(pawl \"$@\"); COMP_CWORD=$#; _pawl; "
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        run = subprocess.run(["bash", "-c", script, "bash", *words], capture_output=True, text=True, check=True,
                             timeout=world.PATIENCE, cwd=self.place.directory)
        return run.stdout.split()

    def test_bash_offers_every_verb_and_option(self):
        self.assertEqual(sorted(set(self.complete("")) - {"--help", "--version"}), sorted(self.verbs()))
        self.assertEqual(self.complete("mach"), ["machines"])
        self.assertEqual(self.complete("token", ""), ["create", "ls", "revoke", "--help"])
        self.assertIn("--expires", self.complete("token", "create", "--"))
        self.assertEqual(self.complete("ls", "demo_order", "--st"), ["--store", "--state"])

    def test_bash_offers_choices_and_files(self):
        self.assertEqual(self.complete("diagram", "--format", ""), ["mermaid", "dot", "json"])
        self.assertEqual(self.complete("completion", "z"), ["zsh"])
        (self.place.directory / "authority.pem").touch()
        self.assertEqual(self.complete("ls", "--ca", "auth"), ["authority.pem"])

    def test_each_shell_reads_its_own(self):
        for shell, check in (("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])):
            text = self.place.run("completion", shell).stdout
            for verb in self.verbs():
                self.assertIn(verb, text)
            if shutil.which(shell):
                subprocess.run([shell, *check], input=text, text=True, check=True, timeout=world.PATIENCE)
        self.assertEqual(self.place.run("completion", "tcsh").returncode, 2)


class ManualTest(Case):
    def test_the_page_has_every_verb_and_is_right(self):
        page = self.place.run("man").stdout
        for path in self.leaves():
            self.assertIn(f'.SS "pawl {" ".join(path)}"', page)
        self.assertIn(r"\-\-idempotency\-key", page)
        for tool in (["groff", "-man", "-ww", "-Tutf8", "-k", "-z"], ["man", "--warnings", "-E", "UTF-8", "-l", "-"]):
            if shutil.which(tool[0]):
                run = subprocess.run(tool, input=page, capture_output=True, text=True, check=True,
                                     timeout=world.PATIENCE, env={**os.environ, "MANPAGER": "cat"})
                self.assertEqual(run.stderr, "")


class UsageTest(Case):
    def test_an_unknown_verb_or_option_gets_a_suggestion(self):
        for arguments, wanted in ((("sendd",), '"send"'), (("token", "revok"), '"revoke"'), (("ls", "--jsn"), '"--json"'),
                                  (("store", "inf"), '"info"')):
            run = self.place.run(*arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""))
            self.assertRegex(run.stderr, rf"^pawl: .*did you mean {wanted}.*--help")

    def test_wrong_usage_ends_with_2_and_says_what_is_right(self):
        for arguments in ((), ("send",), ("send", "m", "k"), ("ls", "--limit", "0"), ("get", "m"), ("pools", "x"),
                          ("ls", "--finished", "--unfinished"), ("diagram", "m", "--format", "png"), ("top", "x"),
                          ("token", "create", "x", "--role", "king"), ("tail", "--kind", "x"), ("user", "add", "x"),
                          ("send", "m", "k", "E", "--expect-version", "-1"), ("bench", "--transitions", "x")):
            with self.subTest(arguments=arguments):
                run = self.place.run(*arguments)
                self.assertEqual((run.returncode, run.stdout), (2, ""), run)
                self.assertRegex(run.stderr, r"^pawl: .*`pawl.* --help`")

    def test_bench_measures_here_and_leaves_nothing(self):
        run = self.place.run("bench", "--transitions", 300, "--syncs", 5, "--json")
        measures = json.loads(run.stdout)["measures"]
        self.assertEqual([one["count"] for one in measures], [5, 5, 300])
        self.assertTrue(all(one["per_second"] > 0 and one["p50_us"] <= one["p99_us"] for one in measures))
        self.assertRegex(self.place.run("bench", "--transitions", 300, "--syncs", 5).stdout,
                         r"(?m)^transitions, one caller +5 ")
        self.assertEqual(list(self.place.directory.glob("pawl-bench*")), [])


class DocsTest(Case):
    def test_every_verb_is_on_the_page(self):
        for path in self.leaves():
            with self.subTest(path=path):
                self.assertRegex(DOCS, rf"\bpawl {' '.join(path)}\b")

    def test_every_option_on_the_page_exists(self):
        for line in re.findall(r"^pawl [^\n]*--[^\n]*", "\n".join(re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)),
                               re.MULTILINE):
            words = re.findall(r"[a-z]+", line.partition("--")[0])[1:]
            path = words[:2] if words[0] in ("store", "token", "user", "config", "run") else words[:1]
            known = self.place.run(*path, "--help").stdout
            for option in re.findall(r"--[a-z-]+", line):
                self.assertIn(option, known, line)

    def test_the_examples_of_the_page_print_what_it_says(self):
        """Blocks of ```console: each $ line is run on one server, and what follows must come, … being anything."""
        server = world.Server(self.place)
        self.addCleanup(server.kill)
        environment = {"PAWL_URL": server.url, "PATH": f"{os.path.dirname(PAWL)}:{os.environ['PATH']}"}
        examples = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(re.findall(r"```console\n(.*?)```", DOCS, re.DOTALL)),
                              re.MULTILINE)
        self.assertGreater(len(examples), 3)
        for command, expected in examples:
            with self.subTest(command=command):
                run = subprocess.run(["bash", "-c", command + " 2>&1"], cwd=self.place.directory, capture_output=True,
                                     text=True, check=False, timeout=world.PATIENCE,
                                     env={**self.place.environment, **environment})
                pattern = re.sub(r"(\\ )+", " +", re.escape(expected)).replace("…", ".*")
                self.assertRegex(run.stdout, re.compile(f"^{pattern}$"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
