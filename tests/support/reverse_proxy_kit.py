"""Starts reverse_proxy, asks it as a client, and answers it as a backend."""

import http.client
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

program = pathlib.Path(sys.argv[1]).resolve() / "reverse_proxy"
scratch = pathlib.Path(tempfile.mkdtemp())
started = []


def start(*arguments):
    log = open(scratch / f"log{len(started)}", "a+")  # "a", because said() moves the place where it writes
    process = subprocess.Popen([program, *arguments], stderr=log)
    started.append((process, log))
    return process


def said(index):
    log = started[index][1]
    log.seek(0)
    return log.read()


def await_said(index, words):
    for _ in range(1200):
        if words in said(index):
            return said(index)
        assert started[index][0].poll() is None, f"it has ended: {said(index)}"
        time.sleep(0.05)
    raise AssertionError(f"waited for {words}: {said(index)}")


def get(port, path="/x", method="GET", body=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer
    finally:
        connection.close()


def raw(port, *parts):
    """Sends each part, the next when something was answered, and returns all that is answered up to the end."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        answered = b""
        for part in parts:
            connection.sendall(part)
            if part is not parts[-1]:
                answered += connection.recv(65536)
        while got := connection.recv(65536):
            answered += got
        return answered


class Plain(threading.Thread):
    """A backend that answers each request with the next of its answers, and keeps the requests' bytes up to `end`, or
    one of several. It takes a new connection when the one before has ended."""

    def __init__(self, answers, end, each_on_its_own=False):
        super().__init__(daemon=True)
        self.each_on_its_own = each_on_its_own
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port, self.answers, self.end, self.asked = self.listening.getsockname()[1], answers, end, []

    def run(self):
        connection, _ = self.listening.accept()
        for answer in self.answers:
            text = b""
            while not text.endswith(self.end):
                got = connection.recv(65536)
                if not got:
                    connection.close()
                    connection, _ = self.listening.accept()
                text += got
            self.asked.append(text)
            connection.sendall(answer)
            if self.each_on_its_own:
                connection.close()
                if len(self.asked) < len(self.answers):
                    connection, _ = self.listening.accept()
        connection.close()


class Scripted(threading.Thread):
    """A backend that runs script(CONNECTION, LINES) for each connection, when it has read a header."""

    def __init__(self, script):
        super().__init__(daemon=True)
        self.listening, self.script = socket.create_server(("127.0.0.1", 0)), script
        self.port = self.listening.getsockname()[1]

    def run(self):
        while True:
            connection, _ = self.listening.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, connection.makefile("rb") as lines:
            while lines.readline().strip():
                pass
            self.script(connection, lines)


def check_before(backend, check, *options):
    """check(PORT) of a proxy before that backend."""
    backend.start()
    index = len(started)
    start("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{backend.port}", *options)
    check(int(await_said(index, "listening on").split("listening on ")[1].split()[0].rsplit(":", 1)[1]))
    started[index][0].send_signal(signal.SIGTERM)
    assert started[index][0].wait(60) == 0


def run(checks):
    """checks(), and then an end to all proxies."""
    try:
        checks()
    finally:
        for process, _ in started:
            if process.poll() is None:
                process.kill()
                process.wait()
        shutil.rmtree(scratch)
