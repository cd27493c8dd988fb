# SPDX-License-Identifier: MIT
"""Compares documents of `berth history --stats --json` with figures that this program computes from the same journals, which
journalctl reads. It knows the manual alone (berth(1), `berth history`).

history.py JOURNALS DOCUMENT...

Prints how many runs the documents count. Exit status: 0; 1: a figure differs.
"""

import datetime
import json
import math
import pathlib
import subprocess
import sys

FAILED = ("failure", "timeout", "not-started", "queue-timeout")
LOST = ("lease-lost", "guard-died", "host-lost", "reclaimed")
CELLS = 16


def read_runs(folder):
    """Returns what the events tell of each run: times in µs since 1970."""
    runs = {}
    files = [f"--file={path}" for path in pathlib.Path(folder).glob("*/*.journal")]
    lines = subprocess.run(["journalctl", *files, "-o", "json", "--no-pager", "-q"], check=True, capture_output=True)
    for line in lines.stdout.splitlines():
        entry = json.loads(line)
        if "BERTH_RUN" not in entry:
            continue
        run = runs.setdefault(entry["BERTH_RUN"], {})
        event = entry["BERTH_EVENT"]
        run[event] = int(entry["__REALTIME_TIMESTAMP"])
        run["job"] = entry["BERTH_JOB"]
        run["host"] = entry["BERTH_HOST"]
        run["pools"] = [pool.split(":")[0] for pool in entry.get("BERTH_POOLS", "").split(",") if pool]
        if event == "exited":
            run["result"] = entry["BERTH_RESULT"]
    return runs.values()


def percentile(values, percent):
    """The shortest of the values that at least this share of them do not exceed."""
    return min(value for value in values if sum(other <= value for other in values) * 100 >= percent * len(values))


def figures(values):
    if not values:
        return {"n": 0, "p50": None, "p90": None, "p95": None, "p99": None, "max": None, "sum": 0}
    return {"n": len(values), **{f"p{p}": percentile(values, p) for p in (50, 90, 95, 99)}, "max": max(values), "sum": sum(values)}


def microseconds(text):
    return round(datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000000)


def compute(runs, by, since, until):
    """Returns the lines of the statistics by their names."""
    lines = {}
    for run in runs:
        if "exited" not in run or not since <= run["exited"] <= until:
            continue
        for name in run["pools"] if by == "pool" else [run[by]]:
            lines.setdefault(name, []).append(run)
    return {name: compute_line(name, by, of, since, until) for name, of in lines.items()}


def compute_line(name, by, runs, since, until):
    cells = [0] * CELLS
    for run in runs:
        cells[min(CELLS - 1, math.floor((run["exited"] - since) * CELLS / (until - since)))] += 1
    return {
        "by": by,
        "name": name,
        "runs": len(runs),
        "failed": sum(run["result"] in FAILED for run in runs),
        "lost": sum(run["result"] in LOST for run in runs),
        "wait_ms": figures([(run["granted"] - run["queued"]) // 1000 for run in runs if "granted" in run]),
        "held_ms": figures([(run["released"] - run["granted"]) // 1000 for run in runs if "released" in run]),
        "cells": cells,
    }


def main():
    runs = read_runs(sys.argv[1])
    differ = counted = 0
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        by = document["stats"][0]["by"]
        expected = compute(runs, by, microseconds(document["since"]), microseconds(document["until"]))
        got = {line["name"]: line for line in document["stats"]}
        counted += sum(line["runs"] for line in document["stats"])
        for name in sorted(expected.keys() | got.keys()):
            if expected.get(name) != got.get(name):
                differ += 1
                print(f"by {by}, {name}:\n  expected {expected.get(name)}\n  got      {got.get(name)}", file=sys.stderr)
    print(counted)
    sys.exit(1 if differ else 0)


main()
