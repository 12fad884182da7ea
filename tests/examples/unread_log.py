"""A log that nobody reads, or whose reader dies, holds up no server: unread_log.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import fcntl
import http.client
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, run_all, those_built
from websocket_peer import WebSocket

programs = pathlib.Path(sys.argv[1]).resolve()


class Logging:
    """A program whose log goes into a pipe that this test may leave unread."""

    running = []

    def __init__(self, name, *arguments, log_on=2):
        self.log, self.end_of_log = os.pipe()
        fcntl.fcntl(self.end_of_log, fcntl.F_SETPIPE_SZ, 4096)
        outputs = {1: {"stdout": self.end_of_log}, 2: {"stdout": subprocess.PIPE, "stderr": self.end_of_log}}[log_on]
        self.process = subprocess.Popen([programs / name, *arguments], **outputs)
        Logging.running.append(self.process)
        self.out = self.process.stdout if log_on == 2 else open(os.dup(self.log), "rb", buffering=0)
        line = b""
        while not line.startswith(b"listening on "):
            line = self.out.readline()
            assert line, f"{name} did not start"
        self.port = int(line.rpartition(b":")[2])

    def fill(self):
        """Until nothing more goes into the log. Opened anew: the program's own writes must block."""
        with open(os.open(f"/proc/self/fd/{self.end_of_log}", os.O_WRONLY | os.O_NONBLOCK), "wb", buffering=0) as end:
            while end.write(b"x" * 4096):
                pass

    def kill_reader(self):
        os.close(self.end_of_log)
        os.close(self.log)
        if self.process.stdout is None:
            self.out.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=BOUND)
        assert status == 0, f"status {status}"
        return self.out.read().decode() if self.process.stdout else ""


def http_get(port, target="/"):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=BOUND)
    client.request("GET", target)
    client.getresponse().read()
    client.close()


def say_nonsense(port):
    with socket.create_connection(("127.0.0.1", port), timeout=BOUND) as client:
        client.sendall(b"*nonsense\r\n")
        while client.recv(4096):
            pass


def join_and_leave(port):
    WebSocket(port, "/ws?room=a&name=b").close()


def pass_through(port):
    with socket.create_connection(("127.0.0.1", port), timeout=BOUND) as client:
        client.sendall(b"x")
        assert client.recv(1) == b"x"


def check(visit, *command, **options):
    server = Logging(*command, **options)
    server.fill()
    for _ in range(10):
        visit(server.port)
    said = server.stop()
    assert options or "lines of the log were lost" in said, said

    server = Logging(*command, **options)
    server.kill_reader()
    for _ in range(10):
        visit(server.port)
    server.stop()


def http_server():
    check(http_get, "http_server", tempfile.gettempdir(), "--port", "0", "--access-log", "-", log_on=1)


def http_server_whose_log_is_read_again():
    server = Logging("http_server", tempfile.gettempdir(), "--port", "0", "--access-log", "-", log_on=1)
    server.fill()
    http_get(server.port, "/before")
    got = b""
    while b"/before" not in got:
        got += os.read(server.log, 65536)
    server.stop()


def redis_counter():
    check(lambda port: http_get(port, "/counters/a"), "redis_counter", "--port", "0", "--redis", "127.0.0.1:1",
          "--timeout", "1", "--verbose")


def kv_server():
    check(say_nonsense, "kv_server", "--port", "0", "--log-level", "debug")


def chat():
    check(join_and_leave, "chat", "--port", "0")


def tcp_proxy():
    echo = subprocess.Popen([programs / "echo_server", "--port", "0"], stdout=subprocess.PIPE)
    Logging.running.append(echo)
    upstream = echo.stdout.readline().decode().rpartition(" ")[2].strip()
    check(pass_through, "tcp_proxy", "--listen", "127.0.0.1:0", "--to", upstream)


try:
    run_all([http_server, http_server_whose_log_is_read_again, redis_counter, kv_server, tcp_proxy] + those_built(programs, chat))
finally:
    for each in Logging.running:
        if each.poll() is None:
            each.kill()
