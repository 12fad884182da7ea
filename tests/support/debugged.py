"""What the tests of the debuggers' scripts share: the program they look at, tests/gdb/waiting.cpp."""

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile

FIBERS = 20
BOUND = 120  # seconds


def expect(text, *patterns):
    for pattern in patterns:
        assert re.search(pattern, text), f"not found: {pattern}\nin:\n{text}"


def number_of(name, text):
    return re.search(rf'^#(\d+) "{name}"', text, re.M).group(1)


def expect_fibers(listed):
    """All fibers of the program are listed, with what they wait for."""
    expect(listed, rf"{FIBERS + 6} of {FIBERS + 6} fibers", r'"main": waits for event 0x',
           r'"reader": waits to receive from channel 0x[0-9a-f]+; spawned at .*waiting\.cpp:\d+',
           r'"joiner": waits for the end of fiber #' + number_of("reader", listed), r'"blocked": waits for mutex 0x',
           r'"coroutine": waits to receive from channel 0x', r'"hog": runs')


@contextlib.contextmanager
def stripped_and_running(program):
    """Runs a stripped copy of `program` until its fibers wait. Gives the copy and its process."""
    with tempfile.TemporaryDirectory() as folder:
        stripped = pathlib.Path(folder) / "waiting"
        subprocess.run(["strip", "-o", stripped, program], check=True)
        # gdb's core files lack the stacks when their guards are made with madvise.
        running = subprocess.Popen([stripped, str(FIBERS)], stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, ULEXITE_STACK_GUARDS="mprotect"))
        try:
            assert running.stdout.readline() == "ready\n"
            yield stripped, running
        finally:
            running.kill()
            running.wait()


def core_of(stripped, running):
    """A core file of the process, beside its program."""
    core = stripped.with_name("core")
    subprocess.run(["gdb", "-q", "-nx", "-batch", "-ex", f"generate-core-file {core}", "-p", str(running.pid)],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=BOUND, check=True)
    return core
