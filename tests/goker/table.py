#!/usr/bin/env python3
"""table.py GOKER [SECONDS [WORKERS]]: how each of the bugs is found, as a table.

By an exploration: the number of the schedule, in the median of 11 seeds. By the library's
report of a deadlock, in one of three real runs. By SECONDS (10) of real runs on WORKERS (2) workers: the number of the run that shows it.
"""
import subprocess
import sys


def run(*arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    return int(done.stdout or 0)


def is_reported(program, name):
    """Does one of three real runs report a deadlock? Each is ended after three seconds."""
    for _ in range(3):
        running = subprocess.Popen([program, "once", name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, report = running.communicate(timeout=3)
        except subprocess.TimeoutExpired:
            running.kill()
            _, report = running.communicate()
        if "ulexite: deadlock:" in report:
            return True
    return False


def main():
    program = sys.argv[1]
    seconds = sys.argv[2] if len(sys.argv) > 2 else "10"
    workers = sys.argv[3] if len(sys.argv) > 3 else "2"
    names = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout.split()
    sums = [0, 0, 0]
    print(f"| bug | schedules | deadlock report | runs in {seconds} s |\n| --- | --- | --- | --- |")
    for name in names:
        schedules = run(program, "median", name)
        reported = is_reported(program, name)
        runs = run(program, "stress", seconds, workers, name)
        for i, found in enumerate((schedules, reported, runs)):
            sums[i] += bool(found)
        print(f"| {name} | {schedules or '-'} | {'yes' if reported else '-'} | {runs or '-'} |", flush=True)
    print(f"| of {len(names)} | {sums[0]} | {sums[1]} | {sums[2]} |")


main()
