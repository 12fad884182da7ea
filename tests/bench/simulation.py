"""Runs the simulation of the scheduler small: simulation.py PROGRAM

Each fiber runs once, nobody is more than fully busy, more workers are at work than one, and a seed has one result.
"""
import csv
import io
import subprocess
import sys


def run(seed):
    options = {"--workers": "1,2,5,16", "--time": "300000", "--most": "20000", "--seed": str(seed), "--csv": "1"}
    command = [sys.argv[1], *(word for option in options.items() for word in option)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


first = run(1)
assert run(1) == first, "the same seed gave another result"
rows = list(csv.DictReader(io.StringIO(first), delimiter=";"))
assert len({row["workload"] for row in rows}) == 8, "a workload is missing"
assert len(rows) == 8 * 4
for row in rows:
    assert row["right"] == "1", f"not all work was done exactly once: {row}"
    assert 0 < float(row["efficiency"]) <= 1, row
    for share in ("shared_queue", "parker", "idle_word", "fences", "event_loop", "ring", "source"):
        assert 0 <= float(row[share]) <= 100, (share, row)
    if row["workers"] == "1":
        assert float(row["steals"]) == 0, row
long_fibers = {row["workers"]: row for row in rows if row["workload"] == "burst 100 us"}
assert float(long_fibers["2"]["steals"]) > 0, "nobody stole"
assert float(long_fibers["2"]["relative"]) > 1, "two workers did no more than one"
assert run(2) != first, "the seed changes nothing"
