"""tools/offcpu on a program that waits: offcpu_test.py PROGRAM TOOL"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

program, tool = sys.argv[1:3]
FIBERS = 20
BOUND = 120  # seconds


def offcpu(*arguments):
    done = subprocess.run([tool, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=BOUND)
    return done.returncode, done.stdout, done.stderr


def refused(source, words):
    """By one line that names the source."""
    status, text, error = offcpu(source)
    assert (status, text, error) == (1, "", f"offcpu: {source}: {words}\n"), (status, text, error)


def stacks(text):
    """By stack its weight; each line is one of the format."""
    found = {}
    for line in text.splitlines():
        stack, weight = re.fullmatch(r"(.+) (\d+)", line).groups()
        assert stack not in found, line
        found[stack] = int(weight)
    return found


def only(found, pattern):
    matching = [stack for stack in found if re.search(pattern, stack)]
    assert len(matching) == 1, f"{pattern}: {matching} of\n" + "\n".join(found)
    return found[matching[0]]


with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "dump.json"
    # Under a name that leads nowhere, as after a change of the folder: functions have names all the same.
    running = subprocess.Popen(["waiting", str(FIBERS)], executable=program, stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, ULEXITE_DUMP=str(file)))
    try:
        assert running.stdout.readline() == "ready\n"
        status, text, error = offcpu("--count", "--pid", running.pid, file)
        assert status == 0, error
        counts = stacks(text)
        receive = r"^spawned at .*waiting\.cpp:\d+ in main.*;.*main.*;.*channel<int>::receive.*;to receive from channel$"
        assert FIBERS in [weight for stack, weight in counts.items() if re.search(receive, stack)], text
        assert only(counts, r";for mutex$") == 1, text
        assert only(counts, r";for the end of fiber$") == 1, text
        assert "0x" not in "".join(re.sub(r"spawned at [^;]*", "", stack) for stack in counts), text
        times = []
        while not times or times[-1] == 0 or times[-1] <= times[0]:  # the bound is the test's own
            status, text, error = offcpu("--pid", running.pid, file)
            assert status == 0, error
            times.append(only(stacks(text), r";for mutex$"))
        assert stacks(text).keys() == counts.keys(), text
        assert offcpu(file)[1] == text  # the last dump counts
        with file.open("a") as more:
            more.write('{"report":"ulexite: worker 0 has not switched for 10.0 s"}\n')
        assert offcpu(file)[1] == text  # a report is no dump
        bystander = subprocess.Popen(["sleep", "100"])
        try:
            assert "no handler of SIGQUIT" in offcpu("--pid", bystander.pid, file)[2]
            assert bystander.poll() is None  # which a SIGQUIT would have ended
        finally:
            bystander.kill()
            bystander.wait()
        assert f"no process {bystander.pid}" in offcpu("--pid", bystander.pid, file)[2]
        assert "ends in .json" in offcpu("--pid", running.pid, "/tmp/dump.txt")[2]
    finally:
        running.kill()
        running.wait()
    assert "there is no dump in JSON" in offcpu("/dev/null")[2]
    with socket.socket() as bound:  # nobody listens there
        bound.bind(("127.0.0.1", 0))
        refused("http://127.0.0.1:%d/dump.json" % bound.getsockname()[1], "Connection refused")
    refused(pathlib.Path(folder) / "none.json", "No such file or directory")
    for text in '{"groups":[{"state":"waiting"}]}', '{"groups":7}', '{"groups":[7]}', "{no JSON}", "{\xff}":
        file.write_text(text + "\n", encoding="latin-1")
        refused(file, "that is no dump in JSON")

    # A program with two runtimes answers with a dump of each.
    file.unlink()
    dump = '{"groups":[{"state":"waiting","waits":"for event","frames":["f"],"count":%d,"total_waited_ms":1}]}'
    answers = ("import signal, sys; signal.signal(signal.SIGQUIT, lambda *_: open(sys.argv[1], 'a').write(sys.argv[2]));"
               "print('ready', flush=True)\nwhile True: signal.pause()")
    running = subprocess.Popen([sys.executable, "-c", answers, file, f"{dump % 2}\n{dump % 3}\n"], stdout=subprocess.PIPE,
                               text=True)
    try:
        assert running.stdout.readline() == "ready\n"
        status, text, error = offcpu("--count", "--pid", running.pid, file)
        assert status == 0 and only(stacks(text), r";for event$") == 5, text + error
    finally:
        running.kill()
        running.wait()
print("offcpu: by signal and from a file")
