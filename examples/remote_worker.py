#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a step of a flow from elsewhere, with nothing but Python's own library.

    PAWL_TOKEN=… remote_worker.py http://127.0.0.1:7420 thumbnails render [HOW_MANY]
"""
import json
import os
import sys
import threading
import urllib.error
import urllib.request

URL, FLOW, STEP = sys.argv[1:4]
PAUSE = float(os.environ.get("WORKER_PAUSE", "0"))  # seconds per picture, to have something to watch


def call(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    if token := os.environ.get("PAWL_TOKEN"):
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def keep(claim, state, ended):
    """Heartbeats, three times as often as needed, until the step has ended here or is wanted no more."""
    while not ended.wait(float(claim["duration"].rstrip("s")) / 3):
        try:
            if call("/v1/leases/heartbeat", {"lease": claim["lease"], "progress": state["progress"]})["stop"]:
                state["stop"].set()
        except urllib.error.HTTPError:  # the lease is lost: somebody else does it now
            return state["stop"].set()


def render(claim, state):
    request, files = claim["request"], []
    for number, size in enumerate(request["sizes"]):
        state["progress"] = number / len(request["sizes"])
        if state["stop"].wait(PAUSE):
            return {"outcome": "again", "reason": "asked to stop"}
        files.append(f"{request['name']}-{size}.png")
    return {"outcome": "done", "response": {**(claim["response"] or {}), "files": files}}


for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else sys.maxsize):
    claim = {"step": None}
    while claim["step"] is None:
        claim = call(f"/v1/flows/{FLOW}/claim", {"steps": [STEP], "wait": "30s"})
    print(f"{STEP} {claim['lease']['key']}, attempt {claim['lease']['attempt']}", flush=True)
    state, ended = {"progress": 0.0, "stop": threading.Event()}, threading.Event()
    threading.Thread(target=keep, args=(claim, state, ended), daemon=True).start()
    try:
        call("/v1/leases/complete", {"lease": claim["lease"], **render(claim, state)})
    except urllib.error.HTTPError as refused:
        print(f"refused: {json.load(refused)['detail']}", flush=True)
    ended.set()
