"""The static probes: they are in the program, and a tool that raises a semaphore has the workers pass them.
probes_test.py PROGRAM"""

import re
import subprocess
import sys

program = sys.argv[1]
BOUND = 120  # seconds


def output_of(*command):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND).stdout


notes = output_of("readelf", "-n", program)
probes = re.findall(r"Provider: ulexite\s+Name: (\w+)\s+Location: \S+, Base: \S+, Semaphore: (\S+)", notes)
assert {name for name, _ in probes} == {"spawn", "switch", "park", "wake", "steal"}, notes
assert all(int(semaphore, 16) != 0 for _, semaphore in probes), notes

# Nothing is recorded for another reason, so the workers come there only because gdb has raised the semaphore.
steps = ["break main", "run", "break -probe-stap ulexite:spawn", "continue", "print $_probe_argc",
         "printf \"fiber %d spawns %d\\n\", $_probe_arg2, $_probe_arg1", "kill"]
text = output_of("gdb", "-q", "-nx", "-batch", *[word for step in steps for word in ("-ex", step)], "--args", program, "3",
                 "unrecorded")
assert re.search(r"\$1 = 3\nfiber 1 spawns 2\n", text), text
print("probes: five, and gdb stops at one")
