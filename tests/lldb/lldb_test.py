"""tools/lldb/ulexite_lldb.py on a stripped program, while it runs and in its core file: lldb_test.py LLDB PROGRAM SCRIPT"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from debugged import BOUND, FIBERS, core_of, expect, expect_fibers, number_of, stripped_and_running

debugger, program, script = sys.argv[1:4]


def lldb(attach, *commands):
    """What they write. The first that fails is the last."""
    ordered = [word for each in (attach, f"command script import {script}", *commands) for word in ("-o", each)]
    done = subprocess.run([debugger, "--no-lldbinit", "--no-use-colors", "-b", *ordered], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND)
    return done.stdout


def look(attach, listed):
    reader, joiner, hog, coroutine = (number_of(name, listed) for name in ("reader", "joiner", "hog", "coroutine"))
    text = lldb(attach, "fibers blocked", "fibers where", f"fiber {reader}", "bt", f"fiber {joiner}", f"fiber {hog}", f"fiber {coroutine}",
                "fiber-events 1000", "fiber 999999")
    expect(text, rf"1 of {FIBERS + 6} fibers", rf"{FIBERS}  waits to receive from channel; spawned at",
           rf'#{reader} "reader": waits[^\n]*\nframe #0: [^\n]*waiting[^>]*\nframe #5: ',
           rf"thread #\d+, name = 'fiber {reader}'", rf'#{joiner} "joiner": waits[^\n]*\nframe #0: ',
           rf'#{hog} "hog": runs[^\n]*\nframe #0: ',
           rf'#{coroutine} "coroutine": waits[^\n]*\na coroutine, which has no stack while it waits:\n#0  ', r"worker 0\n", r" us  runs #" + reader,
           "error: there is no fiber 999999")


with stripped_and_running(program) as (stripped, running):
    live = f"process attach -p {running.pid}"
    listed = lldb(live, "fibers")
    expect_fibers(listed)
    look(live, listed)
    core = core_of(stripped, running)
    look(f"target create {stripped} --core {core}", listed)
    expect(lldb(f"target create {stripped}", "fibers"), "error: there is no process")
    other = "script f = ulexite_lldb.Process.find_table; ulexite_lldb.Process.find_table = lambda self: f(self) - 4"
    expect(lldb(f"target create {stripped} --core {core}", "script import ulexite_lldb", other, "fibers"),
           r"error: this script is for version \d+ of ulexite's table, the program has version \d+")
print("lldb: live process and core file")
