"""inspector_body.py FOLDER: the inspector answers a request with a body, which it does not want."""

import pathlib
import socket
import subprocess
import sys
import tempfile
import time

programs = pathlib.Path(sys.argv[1]).resolve()
server = subprocess.Popen([programs / "http_server", tempfile.gettempdir(), "--port", "0", "--inspect", "0"],
                          stdout=subprocess.PIPE, text=True)
try:
    port = int(server.stdout.readline().removesuffix("/\n").rpartition(":")[2])

    def ask(method, header, body=b""):
        client = socket.create_connection(("127.0.0.1", port), timeout=30)
        client.sendall(f"{method} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n".encode() + body)
        return client

    for method, status in (("POST /", b"405"), ("PUT /nowhere", b"405"), ("GET /nowhere", b"404"), ("GET /metrics", b"200")):
        for header, body in (("Content-Length: 1", b"x"), ("Content-Length: 300000", bytes(300_000)),
                             ("Transfer-Encoding: chunked", b"1\r\nx\r\n0\r\n\r\n")):
            with ask(method, header, body) as client:
                answer = client.makefile("rb").read()
                assert answer.startswith(b"HTTP/1.1 " + status) and b"Connection: close\r\n" in answer, (method, answer[:500])

    with ask("POST /", "Content-Length: 1000000000") as client:  # a body without an end
        sent = 0
        try:
            while True:
                sent += client.send(bytes(1000))
                time.sleep(0.001)
        except (BrokenPipeError, ConnectionResetError):
            assert sent > 1000, sent
        assert client.recv(100).startswith(b"HTTP/1.1 405 ")

    with ask("POST /", "Content-Length: 0") as client:  # a request without one is followed by the next
        lines = client.makefile("rb")
        assert lines.readline().startswith(b"HTTP/1.1 405 ")
        client.sendall(b"GET /nowhere HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert b"HTTP/1.1 404 " in lines.read()
finally:
    server.kill()
    server.wait()
print("inspector: all requests with a body were answered")
