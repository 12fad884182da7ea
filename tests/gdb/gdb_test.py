"""tools/gdb/ulexite.py on a stripped program, while it runs and in its core file: gdb_test.py PROGRAM SCRIPT"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from debugged import BOUND, FIBERS, core_of, expect, expect_fibers, number_of, stripped_and_running

program, script = map(pathlib.Path, sys.argv[1:3])


def gdb(commands, *arguments):
    """What each of the commands writes. One gdb runs them all, because most of the time it reads symbols."""
    end = "-- end of the output of a command --"
    ordered = ["-ex", f"source {script}"]
    for command in commands:
        ordered += ["-ex", command, "-ex", f"echo {end}"]
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", *ordered, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND)
    outputs = done.stdout.split(end)[:-1]
    assert len(outputs) == len(commands), done.stdout
    return outputs


def look(*arguments):
    [listed] = gdb(["info fibers"], *arguments)
    expect_fibers(listed)
    reader, hog, waiter, coroutine = (number_of(name, listed) for name in ("reader", "hog", "blocked", "coroutine"))
    blocked, where, trace, of_hog, of_waiter, of_coroutine, frames, events, unknown, incomplete = gdb(
        ["info fibers blocked", "info fibers where", f"fiber {reader}", f"fiber {hog}", f"fiber {waiter}",
         f"fiber {coroutine}", "fiber apply all frame 1", "info fiber-events 1000", "fiber 999999", "fiber"], *arguments)
    expect(blocked, rf"1 of {FIBERS + 6} fibers")
    expect(where, rf"{FIBERS}  waits to receive from channel; spawned at")
    expect(trace, r"; spawned at .*\n#[1-9]\d* .*\n#\d+ ")
    expect(of_hog, r'"hog": runs', r"#0 ")
    expect(of_coroutine, r'"coroutine": waits.*\na coroutine, which has no stack while it waits:\n#0  ')
    for chain in (trace, of_hog, of_waiter):  # the entry frame ends the chain, also for perf
        assert "Backtrace stopped" not in chain, chain
    expect(frames, *[rf'"{name}"' for name in ("main", "reader", "joiner")])
    expect(events, r"(?m)^worker 0\n", r" us  runs #" + reader, r" us  spawns #" + reader,
           r"(leaves it: it|the one before) waits to receive from channel", r"(?m)^ +0\.000 us  ")
    expect(unknown, "there is no fiber 999999")
    expect(incomplete, "N is a number of info fibers")
    older = "python Process.find_table = staticmethod(lambda of=Process.find_table(): of - 4)"
    expect(gdb([older, "info fibers"], *arguments)[1],
           r"this script is for version \d+ of ulexite's table, the program has version \d+")


def look_at_frames(*arguments):
    """With the names of all functions: the frames of a fiber are its own, and begin with the public call."""
    listed = gdb(["info fibers"], *arguments)[0]
    reader, coroutine = (number_of(name, listed) for name in ("reader", "coroutine"))
    of_coroutine, trace, first, selected, every, of_thread = gdb(
        [f"fiber {coroutine}", f"fiber {reader}", f"fiber {reader} bt 1", f"fiber {reader} frame", f"fiber {reader} bt -no-filters", "bt"],
        *arguments)
    expect(of_coroutine, r"while it waits:\n#0  main::")
    for shown in trace, first, selected:
        expect(shown, r'"reader": .*\n#[1-9]\d* .*channel<int>::')
        own = shown.partition('"reader": ')[2]
        assert "ulexite::detail::jump" not in own and "futex" not in own, shown
    expect(trace, r"channel<int>::receive\(", r"waiting\.cpp", r"ulexite_context_entry")
    expect(every, r"#0 ", "ulexite::detail::jump", r"channel<int>::receive")
    expect(of_thread, r"^\n?#0 ")
    assert "channel<int>" not in of_thread, of_thread


with stripped_and_running(program) as (stripped, running):
    look_at_frames(program, "-p", running.pid)
    look("-p", running.pid)
    look(stripped, core_of(stripped, running))
expect(gdb(["info fibers"], "/bin/true")[0], "no ulexite in this program")
print("gdb: live process and core file")
