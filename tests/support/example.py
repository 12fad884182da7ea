"""What the Python tests of the examples share."""

import json
import queue
import signal
import subprocess
import threading

BOUND = 60  # seconds: the bound of every wait, and of a test in all, much longer than anything here takes


class Server:
    """A program that prints `listening on HOST:PORT`, and may log JSON lines on stderr."""

    running = []

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        Server.running.append(self)
        self.lines = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        line = self.process.stdout.readline()
        if line.startswith("serving "):
            line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), f"{command} did not start: {line!r} {self.rest()}"
        self.port = int(line.rpartition(":")[2])

    def _read(self):
        for line in self.process.stderr:
            self.lines.put(line)
        self.lines.put(None)

    def rest(self):
        return [line for line in iter(lambda: self.lines.get(timeout=BOUND), None)]

    def await_log(self, event):
        """The next line of that event."""
        while True:
            line = self.lines.get(timeout=BOUND)
            assert line is not None, f"the server ended before it logged {event}"
            if line.startswith("{") and json.loads(line)["event"] == event:
                return json.loads(line)

    def end(self, number=signal.SIGTERM, status=0):
        self.process.send_signal(number)
        self.ends(status)

    def ends(self, status):
        got = self.process.wait(timeout=BOUND)
        self.reader.join()
        Server.running.remove(self)
        assert got == status, f"status {got} instead of {status}: {self.rest()}"

    @classmethod
    def kill_all(cls):
        for each in cls.running:
            each.process.kill()
            each.process.wait()


def too_long(*_):
    raise TimeoutError(f"the test took {BOUND} s")


def those_built(programs, *tests):
    """The tests that have the name of a program in the folder: a machine without Boost.URL has no chat and no crawler."""
    return [test for test in tests if (programs / test.__name__).exists()]


def run_all(tests):
    """Calls each function, and prints its name."""
    signal.signal(signal.SIGALRM, too_long)
    try:
        for test in tests:
            print(test.__name__.replace("_", " "), flush=True)
            signal.alarm(BOUND)
            test()
    finally:
        Server.kill_all()
    print("all passed")
