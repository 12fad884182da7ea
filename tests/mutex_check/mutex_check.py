#!/usr/bin/python3
"""What ulexite::mutex_check reports of a program that holds a std::mutex over a wait, and of one that does not."""
import os
import subprocess
import sys

PROGRAM = sys.argv[1]


def run(what, **environment):
    done = subprocess.run([PROGRAM, what], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    return done.stdout, done.stderr, done.returncode


for what, place in [("sleep", "hold_over_a_wait<std::mutex>"), ("shared", "hold_over_a_wait<std::shared_mutex>"),
                    ("reader", "read_over_a_wait"), ("trying reader", "read_over_a_wait"), ("yield", "hold_and_yield")]:
    out, err, code = run(what)
    assert code == 0 and err.count("was held over a wait") == 1, (what, err, code)
    assert "locked it at" in err and "unlocks it at" in err and place in err, (what, err)
out, err, code = run("one worker", ULEXITE_MUTEX_CHECK="abort")  # which would wait for ever
assert code == -6 and "would block it for ever" in err and "hold_over_a_wait" in err, (err, code)
out, err, code = run("one worker, a reader", ULEXITE_MUTEX_CHECK="abort")
assert code == -6 and "would block it for ever" in err and "read_over_a_wait" in err, (err, code)
out, err, code = run("dead owner")
assert code == 0 and out == "its owner has died\n" and err.count("was held over a wait") == 1, (out, err, code)
assert "hold_a_dead_owners" in err, err
for _ in range(5):
    assert run("readers") == ("read\n", "", 0), run("readers")
assert run("sleep", ULEXITE_MUTEX_CHECK="abort")[2] == -6
for _ in range(5):
    assert run("well") == ("1000\n", "", 0), run("well")
assert run("well", ULEXITE_MUTEX_CHECK="") == ("1000\n", "", 0)
assert run("well", ULEXITE_MUTEX_CHECK="abort") == ("1000\n", "", 0)
assert run("well", ULEXITE_MUTEX_CHECK="Abort") == ("1000\n", "ulexite: ULEXITE_MUTEX_CHECK=Abort is not abort: it is ignored\n", 0)
print("as wanted")
