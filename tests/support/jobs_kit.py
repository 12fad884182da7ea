"""The engines of examples/jobs, which survive kills, and its worker processes. All are below one folder, which goes at
exit together with what runs there."""

import atexit
import itertools
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

BOUND = 200  # seconds: of every wait. Many processes share the machine with other tests
scratch = tempfile.TemporaryDirectory(prefix="ulexite_jobs.")
folder = pathlib.Path(scratch.name)
folder.chmod(0o755)  # the server of PostgreSQL may be another user's
numbers = itertools.count()  # for names of files
running = []


def start(*command, **how):
    process = subprocess.Popen(list(map(str, command)), **how)
    running.append(process)
    return process


def ended(process):
    """Its status, which it must have soon."""
    status = process.wait(BOUND)
    running.remove(process)
    return status


@atexit.register
def end_all():
    for each in running:
        each.kill()
        each.wait()


def await_true(what, condition):
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.02)


class Redis:
    """A redis-server on a Unix socket, and a connection to it."""

    what_is_killed = "workers, redis"
    arguments = ()  # of a worker, to keep the ledger here

    def __init__(self):
        self.folder = folder / f"redis.{next(numbers)}"
        self.folder.mkdir()
        self.where = f"unix:{self.folder}/socket"
        self.start()

    def start(self):
        log = self.folder / "log"
        with open(log, "w") as out:
            self.process = start("redis-server", "--port", "0", "--unixsocket", self.folder / "socket", "--dir", self.folder,
                                 "--save", "", "--appendonly", "yes", "--appendfsync", "always", stdout=out, stderr=out)
        await_true("redis-server", lambda: "ready to accept" in log.read_text().lower() or self.process.poll() is not None)
        assert self.process.poll() is None, log.read_text()
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.settimeout(BOUND)
        self.connection.connect(str(self.folder / "socket"))
        self.replies = self.connection.makefile("rb")

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        ended(self.process)

    def __call__(self, *words):
        texts = [str(each).encode() for each in words]
        self.connection.sendall(b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(each), each) for each in texts))
        return self.reply()

    def reply(self):
        line = self.replies.readline()
        kind, value = line[:1], line[1:-2].decode()
        assert kind in b"+:$*" and line, line
        if kind == b"$":
            return None if value == "-1" else self.replies.read(int(value) + 2)[:-2].decode()
        if kind == b"*":
            return [self.reply() for _ in range(int(value))]
        return int(value) if kind == b":" else value

    def state(self):
        """How many jobs are in the stream, wait for their next attempt, and are pending."""
        return self("XLEN", "jobs"), self("ZCARD", "jobs:later"), self("XPENDING", "jobs", "workers")[0]

    def ended_entries(self):
        """How many entries have left the stream so far."""
        fields = self("XINFO", "STREAM", "jobs")
        fields = dict(zip(fields[::2], fields[1::2]))
        return fields["entries-added"] - fields["length"]

    def ledger(self):
        """How often each job was done, and the sum of the effects."""
        names = self("KEYS", "jobs:done:*")
        times = self("MGET", *names) if names else []
        return {name[10:]: int(each) for name, each in zip(names, times)}, int(self("HGET", "jobs:totals", "ms") or 0)


class Postgres:
    """A server of PostgreSQL on a Unix socket, which does not run as root."""

    what_is_killed = "workers, redis, PostgreSQL"
    programs = next((each.parent for each in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)

    def __init__(self):
        self.folder = folder / "postgres"
        self.folder.mkdir()
        self.user = []
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
            self.user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        self.arguments = ("--database", f"host={self.folder} user=tester dbname=postgres")
        self.run("initdb", "-U", "tester", "-A", "trust", "-N")
        atexit.register(lambda: self.run("pg_ctl", "stop", "-s", "-m", "immediate"))
        self.start_as("start")

    def run(self, name, *arguments):
        subprocess.run([*self.user, self.programs / name, "-D", self.folder / "data", *arguments], cwd="/", check=True,
                       stdout=subprocess.DEVNULL, timeout=BOUND)

    def start_as(self, *how):
        options = f"-k {self.folder} -h '' -F -c shared_buffers=1MB -c max_connections=60"
        self.run("pg_ctl", *how, "-s", "-w", "-t", str(BOUND), "-l", self.folder / "log", "-o", options)

    def crash(self):
        self.start_as("restart", "-m", "immediate")

    def __call__(self, statement):
        done = subprocess.run([self.programs / "psql", "-h", self.folder, "-U", "tester", "postgres", "-qtAX", "-c", statement],
                              capture_output=True, text=True, timeout=BOUND)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def ledger(self):
        """As Redis.ledger."""
        rows = [line.split("|") for line in self("SELECT job, times FROM ledger").splitlines()]
        return {name: int(times) for name, times in rows}, int(self("SELECT sum(ms) FROM totals"))


class Worker:
    """`jobs work`. Its output goes to files, so that it never waits for a reader."""

    def __init__(self, program, redis, *arguments, **how):
        self.out, self.err = (folder / f"worker.{next(numbers)}" for _ in range(2))
        with open(self.out, "w") as out, open(self.err, "w") as err:
            self.process = start(program, "work", redis.where, *arguments, stdout=out, stderr=err, **how)

    def has_died(self):
        return self.process.poll() is not None

    def await_ready(self):
        """From then on it handles signals."""
        await_true("a worker", lambda: "working\n" in self.out.read_text() or self.has_died())
        return self

    def ends(self, status):
        """Its last line, which tells what it has done."""
        got = ended(self.process)
        assert got == status, (got, self.out.read_text(), self.err.read_text())
        return (self.out.read_text().splitlines() or [""])[-1]

    def kill(self):
        self.process.kill()
        self.ends(-signal.SIGKILL)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.ends(0)

    def get(self, path):
        """The status and the text of a page of --metrics."""
        await_true("the metrics", lambda: "metrics on http" in self.out.read_text())
        page = self.out.read_text().split("metrics on ")[1].split("/metrics")[0]
        try:
            with urllib.request.urlopen(page + path, timeout=BOUND) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read().decode()

    def await_metrics(self, *lines):
        """Until the page has all of these lines."""
        await_true(lines, lambda: set(lines) <= set(self.get("/metrics")[1].splitlines()))
