#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the alerts and the Grafana dashboard against what a running server really serves at /metrics.

    monitoring.py <pawl> <deploy directory>
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
import urllib.request

PAWL = os.path.abspath(sys.argv[1])
DEPLOY = pathlib.Path(sys.argv[2])
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
ALERTS_TEST = DEPLOY / "prometheus" / "alerts_test.yml"
DASHBOARD = DEPLOY / "grafana" / "pawl.json"
PATIENCE = 60
# Made by Prometheus itself for each target.
MADE_BY_PROMETHEUS = {"up"}
METRIC = re.compile(r"\b(?:pawl|process)_[a-z_]+\b|\bup\b(?=\{)")


def promtool(*arguments, stdin=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=stdin, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def expressions():
    """(where, expression) of every alert and every panel and variable."""
    for name, rule in re.findall(r"- alert: (\w+)\n(.*?)(?=\n {8}(?:for|labels):)", ALERTS.read_text(), re.DOTALL):
        yield name, rule.partition("expr:")[2]
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"the panel {panel['title']}", target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield f"the variable {variable['name']}", variable["query"]["query"]


class Scrape:
    """What one running server with the demo answers; taken once for all tests."""

    def __init__(self):
        with tempfile.TemporaryDirectory() as place:
            pathlib.Path(place, "pawl.yaml").write_text("auth: {enabled: false}\nengine: {pools: {uplink: 2}}\n",
                                                        encoding="utf-8")
            server = subprocess.Popen([PAWL, "serve", "--demo", "--listen", "127.0.0.1:0"], cwd=place, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            try:
                address = server.stdout.readline().strip().rpartition(" ")[2]
                # The demo's first entry, so that there are instances and commits to measure.
                with urllib.request.urlopen(address + "/v1/events?after=begin&kind=created", timeout=PATIENCE) as stream:
                    while not stream.readline().startswith(b"data:"):
                        pass
                with urllib.request.urlopen(address + "/metrics", timeout=PATIENCE) as answer:
                    self.text = answer.read().decode()
            finally:
                server.terminate()
                server.communicate(timeout=PATIENCE)
        self.names = {re.match(r"[a-z_]+", line)[0] for line in self.text.splitlines() if not line.startswith("#")}


class MonitoringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scrape = Scrape()

    def test_prometheus_accepts_the_alerts(self):
        code, said = promtool("check", "rules", ALERTS)
        self.assertEqual(code, 0, said)

    def test_the_alerts_fire_when_they_should_and_only_then(self):
        code, said = promtool("test", "rules", ALERTS_TEST)
        self.assertEqual(code, 0, said)

    def test_every_alert_has_a_case_in_which_it_fires(self):
        tests = ALERTS_TEST.read_text()
        for name in re.findall(r"- alert: (\w+)", ALERTS.read_text()):
            with self.subTest(name):
                self.assertRegex(tests, rf'labels: .?ALERTS{{alertname="{name}"')

    def test_every_alert_says_what_and_what_to_do(self):
        rules = ALERTS.read_text().split("- alert: ")[1:]
        self.assertGreater(len(rules), 10)
        for rule in rules:
            with self.subTest(rule.splitlines()[0]):
                self.assertIn("summary:", rule)
                self.assertIn("description:", rule)
                self.assertRegex(rule, r"severity: (critical|warning)\b")

    def test_prometheus_finds_nothing_wrong_with_the_metrics(self):
        code, said = promtool("check", "metrics", stdin=self.scrape.text)
        self.assertEqual((code, said), (0, ""))

    def test_every_metric_that_is_used_is_served(self):
        used = [(where, name) for where, text in expressions() for name in METRIC.findall(text)]
        self.assertGreater(len(used), 50)
        for where, name in used:
            with self.subTest(where=where, name=name):
                self.assertIn(name, self.scrape.names | MADE_BY_PROMETHEUS)

    def test_every_expression_of_the_dashboard_is_promql(self):
        """promtool reads it as a rule, once Grafana's variables have values."""
        rules = "groups:\n  - name: panels\n    rules:\n"
        for number, (where, text) in enumerate(expressions()):
            if where.startswith("the panel"):
                text = text.replace("$__rate_interval", "5m").replace("$", "")
                rules += f"      - {{record: 'panel:{number}', expr: {json.dumps(text)}}}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(rules)
            file.flush()
            code, said = promtool("check", "rules", file.name)
        self.assertEqual(code, 0, said)

    def test_the_dashboard_asks_for_its_data_source(self):
        dashboard = json.loads(DASHBOARD.read_text())
        variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        for panel in dashboard["panels"]:
            for place in [panel, *panel.get("targets", [])] if panel["type"] != "row" else []:
                self.assertEqual(place["datasource"]["uid"], "${datasource}", panel["title"])

    def test_panels_have_places_of_their_own(self):
        dashboard = json.loads(DASHBOARD.read_text())
        self.assertEqual(len({panel["id"] for panel in dashboard["panels"]}), len(dashboard["panels"]))
        taken = set()
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            taken |= cells


if __name__ == "__main__":
    if not shutil.which("promtool"):
        sys.exit("promtool is not installed; `make setup` installs it")
    unittest.main(argv=sys.argv[:1])
