"""perf's chains of a fiber that computes end in the entry of its stack: perf_test.py PROGRAM

Ends with 77, which ctest takes for skipped, where the kernel lets perf look at nothing."""

import pathlib
import subprocess
import sys
import tempfile

program = sys.argv[1]
BOUND = 120  # seconds
SAMPLES = 5


def perf(*arguments):
    return subprocess.run(["perf", *map(str, arguments)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=BOUND)


def chains(data):
    """Of each sample the symbols, the innermost first."""
    text = perf("script", "--no-inline", "-F", "ip,sym", "-i", data).stdout
    return [[line.split(None, 1)[1].split("(ulexite::")[0] for line in sample.splitlines() if line.strip()] for sample in text.split("\n\n") if sample.strip()]


with tempfile.TemporaryDirectory() as folder:
    running = subprocess.Popen([program, "3"], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "ready\n"
        found = []
        while len(found) < SAMPLES:
            data = pathlib.Path(folder) / "data"
            done = perf("record", "-e", "cpu-clock", "-F", "199", "--call-graph", "dwarf,4096", "-o", data, "-p",
                        running.pid, "--", "sleep", "0.2")
            if done.returncode != 0:
                print(f"perf records nothing here:\n{done.stderr}")
                sys.exit(77)
            found += [chain for chain in chains(data) if any("closure_task" in symbol for symbol in chain)]
    finally:
        running.kill()
        running.wait()
for chain in found:
    assert chain[-3:] == ["ulexite::detail::scheduler::stack_main", "ulexite_context_main", "ulexite_context_entry"] and \
        "[unknown]" not in chain, chain
print(f"perf: {len(found)} chains")
