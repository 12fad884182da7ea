"""second_signal.py FOLDER: a second SIGTERM or SIGINT ends a server at once, whatever its clients do."""

import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from example import BOUND

programs = pathlib.Path(sys.argv[1]).resolve()
half = b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc"


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=BOUND)


def send_more_than_it_takes(client):
    client.settimeout(0.5)
    try:
        while True:
            client.sendall(bytes(1_000_000))
    except TimeoutError:
        pass


def check(ask, first, second, *command):
    """ask(CLIENT) leaves the client in the middle of something that the first signal waits for."""
    # Appended, because seek() moves the place where the server writes.
    with tempfile.TemporaryDirectory() as folder, open(folder + "/said", "a+") as said:
        server = subprocess.Popen([programs / command[0], *command[1:]], stdout=said, stderr=said)
        try:
            end = time.monotonic() + BOUND
            while "listening on " not in (text := (said.seek(0), said.read())[1]):
                assert server.poll() is None and time.monotonic() < end, text
                time.sleep(0.02)
            port = int(text.split("listening on ")[1].split()[0].rsplit(":", 1)[1])
            with connect(port) as client:
                ask(client)
                server.send_signal(first)
                try:
                    while time.monotonic() < end:  # until it no longer listens
                        connect(port).close()
                        time.sleep(0.02)
                except OSError:
                    pass
                assert server.poll() is None, f"{command[0]}: the first signal did not wait"
                server.send_signal(second)
                assert server.wait(BOUND) == -second, f"{command[0]}: status {server.returncode}"
        finally:
            server.kill()
            server.wait()


for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, signal.SIGINT)):
    check(lambda client: client.sendall(half), first, second,
          "http_server", tempfile.gettempdir(), "--port", "0", "--grace", "600", "--body-time", "600")
check(lambda client: client.sendall(half[:20]), signal.SIGTERM, signal.SIGTERM,
      "reverse_proxy", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "--drain", "600")
check(send_more_than_it_takes, signal.SIGTERM, signal.SIGTERM, "echo_server", "--port", "0")
print("second signal: all checks passed")
