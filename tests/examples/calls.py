"""calls.py FOLDER: workers of examples/calls are killed and frozen, and every word is still counted once."""

import collections
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, run_all

program = pathlib.Path(sys.argv[1]).resolve() / "calls"


def text_of(size, seed):
    """Words of all lengths, of few letters so that they repeat, and bytes that are in no word."""
    rand = random.Random(seed)
    words = ["".join(rand.choices("abcXYZ", k=rand.choice((1, 2, 3, 3, 4, 40)))) for _ in range(500)]
    between = [b" ", b" ", b" ", b"\n", b", ", b"\x00\xff", "é".encode(), b"1_2"]
    pieces, length = [], 0
    while length < size:
        piece = rand.choice(words).encode() + rand.choice(between)
        pieces.append(piece)
        length += len(piece)
    return b"".join(pieces) + b"z" * 300_000 + b" the end"  # a word that is longer than a usual part


def counted_by_python(text):
    return collections.Counter(word.decode() for word in re.findall(rb"[a-z]+", text.lower()))


class Calls:
    """A coordinator. Its standard input is fed by feed(), and its stderr is read here."""

    running = []

    def __init__(self, *arguments):
        self.process = subprocess.Popen([program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        Calls.running.append(self)
        self.out = b""
        self.lines, self.changed = [], threading.Condition()
        self.readers = [threading.Thread(target=each, daemon=True) for each in (self._read_out, self._read_lines)]
        for each in self.readers:
            each.start()

    def _read_out(self):
        self.out = self.process.stdout.read()

    def _read_lines(self):
        for line in self.process.stderr:
            with self.changed:
                self.lines.append(line.decode())
                self.changed.notify_all()

    def said(self, pattern):
        return [found for line in self.lines if (found := re.search(pattern, line))]

    def await_line(self, pattern, count=1):
        """The matches of the pattern, when there are that many."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.said(pattern)) >= count, BOUND), (pattern, self.lines)
            return self.said(pattern)

    def workers(self, count):
        """The process of each worker, by its number; the last one if it was replaced."""
        lines = self.await_line(r"worker (\d+) is process (\d+)$", count)
        return {int(line[1]): int(line[2]) for line in lines}

    def feed(self, text):
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def ends(self, status=0):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass  # it has ended before it read all
        got = self.process.wait(BOUND)
        for each in self.readers:
            each.join(BOUND)
        Calls.running.remove(self)
        assert got == status, (got, self.lines)

    def counts(self):
        return {word: int(times) for times, word in (line.split() for line in self.out.decode().splitlines())}

    def replaced(self):
        """How many workers were replaced, and how many parts were sent again."""
        last = re.search(r"(\d+) workers replaced, (\d+) parts sent again$", self.lines[-1])
        return int(last[1]), int(last[2])


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def await_death(processes):
    end = time.monotonic() + BOUND
    while any(map(is_alive, processes)):
        assert time.monotonic() < end, f"still there: {processes}"
        time.sleep(0.01)


def files_and_directories_are_counted():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        texts = [text_of(size, seed) for seed, size in enumerate((1_000_000, 200_000, 70_000))] + [b"", b"one two"]
        (folder / "below" / "deeper").mkdir(parents=True)
        places = [folder / each for each in ("a", "below/b", "below/deeper/c", "empty", "e")]
        for place, text in zip(places, texts):
            place.write_bytes(text)
        calls = Calls("--top", 0, folder / "below", *(each for each in places if each.parent == folder))
        calls.ends()
        expected = sum(map(counted_by_python, texts), collections.Counter())
        assert calls.counts() == expected
        assert "in 5 files" in calls.lines[-1] and "0 unreadable" in calls.lines[-1], calls.lines
        assert calls.replaced() == (0, 0), calls.lines
        await_death(calls.workers(3).values())

        calls = Calls("--top", 3, "--workers", 1, *places)
        calls.ends()
        expected = sorted(expected.items(), key=lambda word: (-word[1], word[0]))
        assert calls.out.decode().splitlines() == [f"{times} {word}" for word, times in expected[:3]]


def what_a_killed_worker_had_is_sent_again():
    calls = Calls("--top", 0)
    workers = calls.workers(3)
    os.kill(workers[1], signal.SIGSTOP)  # so it surely has parts that it has not answered
    text = text_of(3_000_000, 10)
    for first in range(0, len(text), 500_000):
        calls.feed(text[first:first + 500_000])
        time.sleep(0.05)
    os.kill(workers[1], signal.SIGKILL)
    again = calls.await_line(rf"worker 1, process {workers[1]}, is replaced, and (\d+) parts are sent again: .*SIGKILL")
    calls.ends()
    assert calls.counts() == counted_by_python(text)
    assert calls.replaced() == (1, int(again[0][1])) and int(again[0][1]) >= 1, calls.lines
    assert calls.workers(4)[1] != workers[1]


def a_frozen_worker_is_replaced():
    calls = Calls("--top", 0, "--workers", 2, "--patience", 500)
    os.kill(calls.workers(2)[2], signal.SIGSTOP)
    text = text_of(2_000_000, 11)
    calls.feed(text)
    calls.await_line("worker 2, .*it has not answered for 500 ms")
    calls.ends()
    assert calls.counts() == counted_by_python(text)


def many_workers_are_killed():
    calls = Calls("--top", 0, "--workers", 4)
    calls.workers(4)
    text = text_of(8_000_000, 12)
    victims = 2 * [1, 2, 3, 4]  # each twice, because the third failure in a row would be an error
    random.Random(12).shuffle(victims)
    kills = 0
    for first in range(0, len(text), 200_000):
        calls.feed(text[first:first + 200_000])
        process = calls.workers(4)[victims[0]] if victims else 0
        if is_alive(process):
            os.kill(process, signal.SIGKILL)
            victims.pop(0)
            kills += 1
        time.sleep(0.02)
    calls.ends()
    assert calls.counts() == counted_by_python(text)
    assert 1 <= calls.replaced()[0] <= kills, (kills, calls.lines)
    await_death(calls.workers(4).values())
    print(f"  {kills} killed, {calls.replaced()[0]} replaced, {calls.replaced()[1]} parts sent again")


def workers_that_never_answer_are_an_error():
    calls = Calls("--workers", 1, "--patience", 1)
    calls.feed(1_000_000 * b"z")  # a part that takes longer
    calls.ends(1)
    assert len(calls.said("worker 1, .* is replaced, and 1 parts .* not answered for 1 ms")) == 3, calls.lines
    last = "worker 1 was replaced 3 times without an answer, the last part is of standard input"
    assert last in calls.lines[-1] and calls.out == b"", (calls.lines, calls.out)


def a_signal_ends_all():
    for number in (signal.SIGTERM, signal.SIGINT):
        calls = Calls()
        workers = calls.workers(3)
        calls.feed(b"some words ")
        calls.process.send_signal(number)
        calls.ends(128 + number)
        assert f"{number.name} before all words were counted" in calls.lines[-1], calls.lines
        await_death(workers.values())
    calls = Calls()
    workers = calls.workers(3)
    calls.process.kill()  # the workers read the end of their input
    calls.ends(-signal.SIGKILL)
    await_death(workers.values())


def mistakes_are_told():
    calls = Calls("/nowhere")
    calls.ends(105)
    assert any("/nowhere" in line for line in calls.lines), calls.lines
    calls = Calls("--workers", 0)
    calls.ends(105)
    assert any("--workers" in line for line in calls.lines), calls.lines
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x" * 1_200_000)
        file.flush()
        calls = Calls(file.name)
        calls.ends(1)
        assert f"{file.name} has a word of more than 1048576 letters" in calls.lines[-1], calls.lines


try:
    run_all([files_and_directories_are_counted, what_a_killed_worker_had_is_sent_again, a_frozen_worker_is_replaced,
             many_workers_are_killed, workers_that_never_answer_are_an_error, a_signal_ends_all, mistakes_are_told])
finally:
    for each in Calls.running:
        each.process.kill()
        each.process.wait()
