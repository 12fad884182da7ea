"""tools/gdb/ulexite.py on a stripped program, while it runs and in its core file: gdb_test.py PROGRAM SCRIPT"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from debugged import BOUND, FIBERS, core_of, expect, expect_fibers, number_of, stripped_and_running

program, script = map(pathlib.Path, sys.argv[1:3])


def gdb(commands, *arguments):
    ordered = ["-ex", f"source {script}"] + [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", *ordered, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND)
    return done.stdout


def look(*arguments):
    listed = gdb(["info fibers"], *arguments)
    expect_fibers(listed)
    expect(gdb(["info fibers blocked"], *arguments), rf"1 of {FIBERS + 5} fibers")
    expect(gdb(["info fibers where"], *arguments), rf"{FIBERS}  waits to receive from channel; spawned at")
    reader = number_of("reader", listed)
    trace = gdb([f"fiber {reader}"], *arguments)
    expect(trace, r"#1 ", r"#5 ")
    assert "Backtrace stopped" not in trace, trace
    expect(gdb([f"fiber {number_of('hog', listed)}"], *arguments), r'"hog": runs', r"#0 ")
    for name in ("hog", "blocked"):  # the entry frame ends the chain, also for perf
        chain = gdb([f"fiber {number_of(name, listed)}"], *arguments)
        assert "Backtrace stopped" not in chain, chain
    expect(gdb(["fiber apply all frame 1"], *arguments), *[rf'"{name}"' for name in ("main", "reader", "joiner")])
    expect(gdb(["info fiber-events 1000"], *arguments), r"(?m)^worker 0\n", r" us  runs #" + reader,
           r" us  spawns #" + reader, r"(leaves it: it|the one before) waits to receive from channel", r"(?m)^ +0\.000 us  ")
    expect(gdb(["fiber 999999"], *arguments), "there is no fiber 999999")
    expect(gdb(["fiber"], *arguments), "N is a number of info fibers")
    expect(gdb(["python Process.find_table = staticmethod(lambda of=Process.find_table(): of - 4)", "info fibers"], *arguments),
           r"this script is for version \d+ of ulexite's table, the program has version \d+")


with stripped_and_running(program) as (stripped, running):
    look("-p", running.pid)
    look(stripped, core_of(stripped, running))
expect(gdb(["info fibers"], "/bin/true"), "no ulexite in this program")
print("gdb: live process and core file")
