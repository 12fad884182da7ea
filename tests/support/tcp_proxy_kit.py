"""A proxy and its peers, for tcp_proxy.py. No wait here is a measure: each ends with what is waited for, or after
`patience`, which fails the check.
"""

import contextlib
import hashlib
import os
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]
MB = 1000 * 1000
patience = 60


def wait_until(condition, what):
    end = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.02)
    return found


class Proxy:
    """A proxy that forwards to `upstream`, a listening socket."""

    def __init__(self, upstream, *options):
        self.log = tempfile.NamedTemporaryFile("r")
        to = "127.0.0.1:%d" % upstream.getsockname()[1]
        # setpriv: the proxy must not outlive us, even if it is the watchdog that ends us.
        command = ["setpriv", "--pdeathsig", "KILL", PROGRAM, "--listen", "127.0.0.1:0", "--to", to, *options]
        with open(self.log.name, "w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("listening on 127.0.0.1:"), line + self.text()
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.text()[-2000:], file=sys.stderr)
        self.process.kill()
        self.process.wait()

    def text(self):
        with open(self.log.name) as log:
            return log.read()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=patience)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def closed(self, count, reason):
        """Waits for that many lines of connections at their end, which must give the reason. Returns the last."""
        lines = wait_until(lambda: len(found := re.findall(".* closed .*", self.text())) >= count and found,
                           f"{count} connections to end")
        assert len(lines) == count, f"{len(lines)} lines instead of {count}"
        assert all(f'reason="{reason}' in each for each in lines), f"not {reason}: {lines}"
        return lines[-1]

    def stop(self):
        self.process.terminate()
        return self.ends()

    def ends(self):
        assert self.process.wait(patience) == 0, f"status {self.process.returncode}"
        return self.process.stdout.read()


def listen():
    return socket.create_server(("127.0.0.1", 0), backlog=512)


def accept(upstream):
    upstream.settimeout(patience)
    accepted, _ = upstream.accept()
    accepted.settimeout(patience)
    return accepted


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def blocks(size):
    """Random data of that size, in parts, of which no two are the same."""
    noise = bytearray(random.randbytes(MB))
    for number, begin in enumerate(range(0, size, MB)):
        noise[:8] = struct.pack("Q", number)
        yield bytes(noise[: size - begin])


def send(connection, size):
    """Sends that much and then the end. Returns its digest."""
    digest = hashlib.sha256()
    for block in blocks(size):
        digest.update(block)
        connection.sendall(block)
    connection.shutdown(socket.SHUT_WR)
    return digest.digest()


def receive(connection):
    """The digest of all up to the end."""
    digest = hashlib.sha256()
    while part := connection.recv(1 << 18):
        digest.update(part)
    return digest.digest()


class Task(threading.Thread):
    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.call = lambda: function(*arguments)
        self.failure = None
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except BaseException as failure:
            self.failure = failure

    def result(self):
        self.join(patience)
        assert not self.is_alive(), "a task did not end"
        if self.failure:
            raise self.failure
        return self.value


@contextlib.contextmanager
def connected(*options):
    """A proxy, and both ends of one connection through it, over which each has sent a byte."""
    with listen() as upstream, Proxy(upstream, *options) as proxy, proxy.connect() as client:
        client.sendall(b"c")
        with accept(upstream) as server:
            assert server.recv(1) == b"c"
            server.sendall(b"s")
            assert client.recv(1) == b"s"
            yield proxy, client, server


def expect_reset(connection):
    """Whatever came before: the end must not look like one."""
    try:
        while connection.recv(1 << 18):
            pass
    except ConnectionResetError:
        return
    raise AssertionError("what was cut ended like something whole")


def connections_of(port):
    """Of each TCP socket that uses the port: (local port, remote port) -> (state, bytes to send, bytes to read)."""
    found = {}
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            _, local, remote, state, queues = line.split()[:5]
            ends = tuple(int(each.split(":")[1], 16) for each in (local, remote))
            if port in ends:
                found[ends] = (state, *(int(each, 16) for each in queues.split(":")))
    return found


def listening(port):
    return any(state == "0A" for state, *_ in connections_of(port).values())
