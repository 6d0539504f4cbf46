#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a server that supervises processes, again and again, and looks at what is there afterwards.

    kill.py <pawl> [processes] [kills] [seed]

A third of the processes run until they are told to end; a third end with failure by themselves and are restarted; a
third end once and stay so. Between two kills some of the running ones are killed, also while no server is there. In
the end every process that should run does so exactly once, none is there that should not be, and how each of those
that end once has ended is known: each was started once.
"""
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

import workers_world as world
from workers_world import let_pass, wait_until

PAWL = os.path.abspath(sys.argv[1])
PROCESSES = int(sys.argv[2]) if len(sys.argv) > 2 else 20
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 32)
SETTLING = 60 + PROCESSES


def tree(top):
    """Each writes down that it was started: one line per start."""
    lines = ["children:"]
    for number in range(PROCESSES):
        kind = number % 3
        name = f"p{number}"
        begin = f"echo start >> {top}/starts/{name}; "
        if kind == 0:
            command, policy = begin + "exec sleep 100000", "always"
        elif kind == 1:
            command, policy = begin + f"sleep {2 + number % 5}; exit 3", "on_failure"
        else:
            command, policy = begin + f"sleep {1 + number % 7}; exit {number % 100}", "never"
        lines += [f"  - name: {name}", "    workerType: process", "    userSpec:", "      config:",
                  f"        command: [/bin/sh, -c, '{command}']", f"        environment: {{MARK: {top}}}",
                  f"        restart: {policy}", "        backoff_first: 200ms", "        backoff_cap: 1s",
                  "        stop_grace: 1s"]
    return "\n".join(lines) + "\n"


def processes_of(top):
    """The number of each process's own command that is there now, by the file that it writes to."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            group = os.getpgid(int(entry.name))
        except (OSError, ProcessLookupError):
            continue  # it has just ended
        if f"MARK={top}".encode() in environment and group == int(entry.name):
            found[int(entry.name)] = (entry / "cmdline").read_bytes() if entry.exists() else b""
    return found


def kill_some(numbers, workers):
    """Processes that should run for ever end, too."""
    forever = [worker for worker in workers if worker["path"][1:].isdigit() and int(worker["path"][1:]) % 3 == 0]
    return numbers.sample(forever, min(len(forever), 1 + PROCESSES // 20))


def observed(workers, name):
    found = workers.show(name)
    return found["observed"] if found else None


def audit(workers, top, killed):
    """What is wrong, as texts."""
    wrong = []
    alive = processes_of(top)
    owned = {}
    for number in range(PROCESSES):
        name = f"p{number}"
        shown = workers.show(name)
        if not shown or not shown["observed"] or not (top / "starts" / name).exists():
            wrong.append(f"{name} was never started: {shown}")
            continue
        seen, state = shown["observed"], shown["worker"]["state"]
        starts = len((top / "starts" / name).read_text(encoding="utf-8").splitlines())
        if number % 3 == 0:
            if state != "Running" or seen["pid"] not in alive:
                wrong.append(f"{name} does not run: {state} {seen}")
            if starts != 1 + killed.get(name, 0):
                wrong.append(f"{name} was started {starts} times, but was killed {killed.get(name, 0)} times")
            owned[seen["pid"]] = name
        elif number % 3 == 1:
            if seen["process"] == "running":
                owned[seen["pid"]] = name
            if starts < 1 or not seen["restarts"] <= starts <= seen["restarts"] + 1:
                wrong.append(f"{name} was started {starts} times with {seen['restarts']} restarts")
        else:
            if (state, seen.get("exit_code")) != ("Exited", number % 100):
                wrong.append(f"{name} should have ended with {number % 100}: {state} {seen}")
            if starts != 1:
                wrong.append(f"{name} was started {starts} times")
    for pid in alive.keys() - owned.keys():
        wrong.append(f"process {pid} belongs to nobody, or ended just now")
    return wrong


def drive(top):
    numbers = random.Random(SEED)
    (top / "starts").mkdir()
    place = world.Place(PAWL, top)
    (top / "site.yaml").write_text(tree(top), encoding="utf-8")
    killed = {}
    settings = "  file: site.yaml\n"
    workers = world.Workers(place, settings)
    try:
        wait_until(workers.states, "the first of them are made")  # the file is applied when it was seen twice
        for _ in range(KILLS):
            let_pass(numbers.uniform(0.1, 3.0))
            listed = workers.call("GET", "/v1/workers")[1]["workers"]
            victims = [worker["path"] for worker in kill_some(numbers, listed) if worker["state"] == "Running"]
            pids = {path: seen["pid"] for path in victims if (seen := observed(workers, path))}
            workers.server.kill()
            for path, pid in pids.items():
                try:
                    os.kill(pid, signal.SIGKILL)
                    killed[path] = killed.get(path, 0) + 1
                except ProcessLookupError:
                    pass  # the observation was of one that has ended
            let_pass(numbers.uniform(0.0, 2.0))
            workers = world.Workers(place, settings)
        begun = time.monotonic()
        wrong = audit(workers, top, killed)
        # What has just ended is started again after a while, and what a look finds may end during the next.
        while wrong and time.monotonic() - begun < SETTLING:
            let_pass(0.5)
            wrong = audit(workers, top, killed)
        (top / "site.yaml").write_text("children: []\n", encoding="utf-8")
        wait_until(lambda: not workers.states(), workers.states, SETTLING)
        wait_until(lambda: not processes_of(top), lambda: f"left: {processes_of(top)}", SETTLING)
    finally:
        workers.server.kill()
        for pid in processes_of(top):
            os.kill(pid, signal.SIGKILL)
    for line in wrong:
        print(line)
    if wrong:
        print(f"seed={SEED}")
    print(f"processes={PROCESSES} kills={KILLS} killed={sum(killed.values())} wrong={len(wrong)}")
    return 1 if wrong else 0


def main():
    with tempfile.TemporaryDirectory() as top:
        return drive(pathlib.Path(top))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BaseException as problem:
        if not isinstance(problem, SystemExit):
            print(f"seed={SEED}")
        raise
