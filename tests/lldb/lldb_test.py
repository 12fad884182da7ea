"""tools/lldb/ulexite_lldb.py on a stripped program, while it runs and in its core file: lldb_test.py LLDB PROGRAM SCRIPT"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

debugger, program, script = sys.argv[1:4]
FIBERS = 20
BOUND = 120  # seconds


def lldb(attach, *commands):
    """What they write. The first that fails is the last."""
    ordered = [word for each in (attach, f"command script import {script}", *commands) for word in ("-o", each)]
    done = subprocess.run([debugger, "--no-lldbinit", "--no-use-colors", "-b", *ordered], text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND)
    return done.stdout


def expect(text, *patterns):
    for pattern in patterns:
        assert re.search(pattern, text), f"not found: {pattern}\nin:\n{text}"


def number_of(name, text):
    return re.search(rf'^#(\d+) "{name}"', text, re.M).group(1)


def look(attach, listed):
    reader, joiner, hog = (number_of(name, listed) for name in ("reader", "joiner", "hog"))
    text = lldb(attach, "fibers blocked", "fibers where", f"fiber {reader}", "bt", f"fiber {joiner}", f"fiber {hog}",
                "fiber-events 1000", "fiber 999999")
    expect(text, rf"1 of {FIBERS + 5} fibers", rf"{FIBERS}  waits to receive from channel; spawned at",
           rf'#{reader} "reader": waits[^\n]*\nframe #0: [^\n]*waiting[^>]*\nframe #5: ',
           rf"thread #\d+, name = 'fiber {reader}'", rf'#{joiner} "joiner": waits[^\n]*\nframe #0: ',
           rf'#{hog} "hog": runs[^\n]*\nframe #0: ', r"worker 0\n", r" us  runs #" + reader,
           "error: there is no fiber 999999")


with tempfile.TemporaryDirectory() as folder:
    stripped = pathlib.Path(folder) / "waiting"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    # gdb's core files lack the stacks when their guards are made with madvise.
    running = subprocess.Popen([stripped, str(FIBERS)], stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, ULEXITE_STACK_GUARDS="mprotect"))
    try:
        assert running.stdout.readline() == "ready\n"
        live = f"process attach -p {running.pid}"
        listed = lldb(live, "fibers")
        expect(listed, rf"{FIBERS + 5} of {FIBERS + 5} fibers", r'"main": waits for event 0x',
               r'"reader": waits to receive from channel 0x[0-9a-f]+; spawned at .*waiting\.cpp:\d+',
               r'"joiner": waits for the end of fiber #' + number_of("reader", listed), r'"blocked": waits for mutex 0x',
               r'"hog": runs')
        look(live, listed)
        core = pathlib.Path(folder) / "core"
        subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", f"generate-core-file {core}", "-p", str(running.pid)],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=BOUND, check=True)
        look(f"target create {stripped} --core {core}", listed)
        expect(lldb(f"target create {stripped}", "fibers"), "error: there is no process")
        other = "script f = ulexite_lldb.Process.find_table; ulexite_lldb.Process.find_table = lambda self: f(self) - 4"
        expect(lldb(f"target create {stripped} --core {core}", "script import ulexite_lldb", other, "fibers"),
               r"error: this script is for version \d+ of ulexite's table, the program has version \d+")
    finally:
        running.kill()
        running.wait()
print("lldb: live process and core file")
