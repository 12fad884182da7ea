"""reverse_proxy.py FOLDER: the proxy forwards, survives its backends, and is replaced under load without losing a request."""

import http.client
import http.server
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from reverse_proxy_kit import Plain, await_said, check_before, get, program, raw, run, said, scratch, start, started


class Backend(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, name):
        super().__init__(("127.0.0.1", 0), Handler)
        self.name = name
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self):
        if self.path == "/early":
            self.send_response_only(103)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = f"{self.server.name} {self.command} {self.path} {body.decode()} {self.headers.get('X-Forwarded-For')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Backend", self.server.name)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *args):
        pass


class Rude(threading.Thread):
    """A backend that closes each connection when the second request on it has come, and answers only the first."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port, self.asked = self.listening.getsockname()[1], []

    def run(self):
        while True:
            connection, _ = self.listening.accept()
            with connection, connection.makefile("rb") as lines:
                for answers in (True, False):
                    self.asked.append(lines.readline().decode().rsplit(" ", 1)[0])
                    size = 0
                    while (line := lines.readline().strip()):
                        name, value = line.lower().split(b":", 1)
                        size = int(value) if name == b"content-length" else size
                    lines.read(size)
                    if answers:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")


def check_repetition():
    """What changes something is not sent twice."""
    backend = Rude()
    backend.start()
    index = len(started)
    start("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{backend.port}")
    port = int(await_said(index, "listening on").split("listening on ")[1].split()[0].rsplit(":", 1)[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for method, path, status in (("GET", "/1", 200), ("POST", "/2", 502), ("GET", "/3", 200), ("GET", "/4", 200)):
        connection.request(method, path, "text" if method == "POST" else None)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status, (method, path, answer.status)
    connection.close()
    assert backend.asked[:5] == ["GET /1", "POST /2", "GET /3", "GET /4", "GET /4"], backend.asked
    started[index][0].send_signal(signal.SIGTERM)
    assert started[index][0].wait(60) == 0


def check_encodings(port):
    """What Beast ignores does not make a request of the body."""
    for encoding in (b"gzip", b"chunked, x", b"", b"\r\nTransfer-Encoding: gzip"):
        answered = raw(port, b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: " + encoding +
                       b"\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answered.startswith(b"HTTP/1.1 501 ") and answered.count(b"HTTP/1.1 ") == 1, (encoding, answered)
    answered = raw(port, b"POST /x HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                   b"GET /smuggled HTTP/1.0\r\n\r\n")
    assert answered.startswith(b"HTTP/1.1 400 ") and answered.count(b"HTTP/1.1 ") == 1, answered


def check_continue(port):
    """A client that waits before its body is told to send it, and gets one answer to each request, also after an empty
    line."""
    answered = raw(port, b"\r\nPOST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
                   b"abc\r\nGET /next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    first, one, two = answered.split(b"HTTP/1.1 ")[1:]
    assert first.startswith(b"100 ") and one.startswith(b"200 ") and b"POST /x abc" in one, answered
    assert two.startswith(b"200 ") and b"GET /next" in two, answered
    assert b"GET /early" in raw(port, b"GET /early HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


def check_versions(port):
    """It answers in HTTP/1.1, and ends a connection of HTTP/1.0, or one that says `close` anywhere."""
    for request in (b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", b"GET /x HTTP/1.0\r\nHost: x\r\n\r\n",
                    b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: y\r\nConnection: close\r\n\r\n"):
        began = time.monotonic()
        answered = raw(port, request)
        assert answered.startswith(b"HTTP/1.1 200 ") and b"Connection: close\r\n" in answered, answered
        assert time.monotonic() - began < 30, "it ended by its time limit"


def check_old_sides():
    """It speaks HTTP/1.1 to both sides, whatever they speak."""
    def check(port):
        answered = raw(port, b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert answered.startswith(b"HTTP/1.1 200 ") and b"Connection: close\r\n" in answered, answered
        assert backend.asked[0].startswith(b"GET /x HTTP/1.1\r\n") and b"Host: \r\n" in backend.asked[0], backend.asked

    backend = Plain([b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"], b"\r\n\r\n")
    check_before(backend, check)


def check_target_with_host():
    """The host of an absolute target replaces that of the field: RFC 9112, 3.2.2."""
    def check(port):
        targets = (b"http://other.example/ok?x=http://y", b"HTTPS://other.example?x", b"http://other.example:80", b"/http://z")
        for target in targets:
            raw(port, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        for target in (b"http://a@b/", b"ftp://other.example/", b"other.example"):
            answered = raw(port, b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 400 "), (target, answered)
        seen = [(each.split()[1], each.split(b"Host: ")[1].split(b"\r\n")[0]) for each in backend.asked]
        assert seen == [(b"/ok?x=http://y", b"other.example"), (b"/?x", b"other.example"), (b"/", b"other.example:80"),
                        (b"/http://z", b"x")], seen

    backend = Plain([b"HTTP/1.1 204 No Content\r\n\r\n"] * 4, b"\r\n\r\n", each_on_its_own=True)
    check_before(backend, check)


def check_lost_predecessor(control, targets):
    """The new process serves on if the old one dies in the hand-over, before or after it gave its listener."""
    for gives in (False, True):
        with socket.socket(socket.AF_UNIX) as path, socket.create_server(("127.0.0.1", 0)) as old:
            path.bind(control)
            path.listen()
            port = old.getsockname()[1]
            index = len(started)
            start("--listen", f"127.0.0.1:{port}", "--control", control, *targets)
            asking, _ = path.accept()
            if gives:
                socket.send_fds(asking, [b"l"], [old.fileno()])
            asking.close()
        await_said(index, "took over" if gives else "listening on")
        assert get(port)[0] == 502
        await_control(index, control)
        started[index][0].send_signal(signal.SIGTERM)
        assert started[index][0].wait(60) == 0, said(index)
        assert not os.path.exists(control)


def check_refusals(port):
    """What cannot be forwarded is answered."""
    for request, status in ((b"GET /x HTTP/1.1\r\n\r\n", b"400"),
                            (b"GET /x HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", b"400"),
                            (b"GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", b"400"),
                            (b"nonsense\r\n\r\n", b"400"),
                            (b"CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n", b"501"),
                            (b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n", b"413"),
                            (b"GET /x HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 9000 + b"\r\n\r\n", b"431")):
        answered = raw(port, request)
        assert answered.startswith(b"HTTP/1.1 " + status) and b"Connection: close" in answered, (request[:60], answered)
    assert raw(port, b"HEAD /x HTTP/1.1\r\n\r\n").endswith(b"\r\n\r\n")


def check_fields():
    """What concerns one connection is not passed on, and a trailer does not become a header."""
    backend = Plain([b"HTTP/1.1 200 OK\r\nConnection: X-Own\r\nX-Own: 1\r\nX-Kept: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"2\r\nhi\r\n0\r\nX-Late: 3\r\n\r\n",
                     b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
                     b"HTTP/1.1 204 No Content\r\n\r\n"], (b"\r\n\r\nbody", b"\r\n0\r\n\r\n"))
    backend.start()
    index = len(started)
    start("--listen", "127.0.0.1:0", "--to", f"127.0.0.1:{backend.port}")
    port = int(await_said(index, "listening on").split("listening on ")[1].split()[0].rsplit(":", 1)[1])
    head = (b"POST /x HTTP/1.1\r\nHost: x\r\nConnection: X-Mine, Host\r\nX-Mine: 1\r\nX-Kept: 2\r\n"
            b"Connection: X-More\r\nX-More: 1\r\nVia: 1.0 before\r\n"
            b"traceparent: 00-" + b"ab" * 16 + b"-" + b"cd" * 8 + b"-01\r\ntracestate: a=1\r\ntracestate: b=2\r\n")
    with_trailers = head + b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Role: admin\r\nHost: b\r\n\r\n"
    plain = head + b"Content-Length: 4\r\n\r\nbody"
    trace = b"TRACE /x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody"
    answered = raw(port, with_trailers, plain, plain, trace)
    parts = answered.split(b"HTTP/1.1 ")[1:]
    assert [part[:3] for part in parts] == [b"200", b"304", b"204", b"400"], answered
    assert b"hi" in parts[0] and b"X-Kept: 2" in parts[0] and b"Transfer-Encoding: chunked" in parts[0], parts[0]
    assert b"X-Own" not in parts[0] and b"X-Late" not in parts[0], parts[0]
    assert b"Content-Length: 7" in parts[1] and b"Content-Length" not in parts[2], parts
    assert len(backend.asked) == 3, backend.asked
    for each in backend.asked:
        assert each.count(b"Host: x\r\n") == 1 and b"X-Kept: 2" in each and b"body" in each, each
        assert each.count(b"Transfer-Encoding: chunked") + each.count(b"Content-Length: 4") == 1, each
        assert each.index(b"Via: 1.0 before\r\n") < each.index(b"Via: 1.1 reverse_proxy\r\n"), each
        parent = each.lower().split(b"traceparent: ")[1].split(b"\r\n")[0].split(b"-")
        assert parent[:2] + parent[3:] == [b"00", b"ab" * 16, b"01"] and parent[2] != b"cd" * 8, each
        assert each.count(b"tracestate: a=1, b=2\r\n") == 1 and b"X-Request-Id: " + parent[2] in each, each
        for not_passed in (b"X-Mine", b"X-More", b"X-Role", b"Host: b"):
            assert not_passed not in each, each
    started[index][0].send_signal(signal.SIGTERM)
    assert started[index][0].wait(60) == 0


def await_control(index, control):
    while not os.path.exists(control):
        assert started[index][0].poll() is None, said(index)
        time.sleep(0.01)


def check_stale_control(control, targets):
    """A process that was killed leaves the path of its control socket."""
    for _ in range(2):
        index = len(started)
        start("--listen", "127.0.0.1:0", "--control", control, *targets)
        await_said(index, "listening on")
        await_control(index, control)
        started[index][0].kill()
        started[index][0].wait()
    index = len(started)
    start("--listen", "127.0.0.1:0", "--control", control, *targets)
    port = int(await_said(index, "listening on").split("listening on ")[1].split()[0].rsplit(":", 1)[1])
    assert get(port)[0] == 502
    started[index][0].send_signal(signal.SIGTERM)
    assert started[index][0].wait(60) == 0, said(index)
    assert not os.path.exists(control)


def check_stop_while_giving(control, targets):
    """A process that is stopped after it gave its listener, and before the new one serves, does not end the listening."""
    index = len(started)
    start("--listen", "127.0.0.1:0", "--control", control, *targets)
    await_said(index, "listening on")
    await_control(index, control)
    with socket.socket(socket.AF_UNIX) as new:
        new.connect(control)
        _, descriptors, _, _ = socket.recv_fds(new, 1, 1)
        with socket.socket(fileno=descriptors[0]) as listening:
            started[index][0].send_signal(signal.SIGTERM)
            assert started[index][0].wait(60) == 0, said(index)
            listening.settimeout(60)
            with socket.create_connection(listening.getsockname()) as client:
                accepted, peer = listening.accept()
                accepted.close()
                assert peer == client.getsockname()


class Client(threading.Thread):
    """Asks without a pause, over connections that are kept as long as the proxy keeps them."""

    def __init__(self, port):
        super().__init__()
        self.port, self.asked, self.failures, self.connections, self.stop = port, 0, [], 0, False

    def run(self):
        connection = None
        while not self.stop:
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                    self.connections += 1
                connection.request("POST", f"/{self.asked}", body=f"body{self.asked}")
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status != 200 or f"/{self.asked} body{self.asked} " not in text:
                    self.failures.append((answer.status, text))
                if answer.will_close:
                    connection.close()
                    connection = None
            except Exception as error:  # every one is a request lost
                self.failures.append(repr(error))
                connection = None
            self.asked += 1


def main():
    backends = [Backend("one"), Backend("two")]
    targets = [argument for each in backends for argument in ("--to", f"127.0.0.1:{each.server_port}")]
    control = str(scratch / "control")
    start("--listen", "127.0.0.1:0", "--control", control, "--drain", "60", *targets)
    port = int(await_said(0, "listening on").split("listening on ")[1].split()[0].rsplit(":", 1)[1])

    status, text, answer = get(port, "/path?query", "POST", "hello")
    assert status == 200 and "POST /path?query hello 127.0.0.1" in text, (status, text)
    status, text, answer = get(port, method="HEAD")
    assert status == 200 and text == "" and answer.headers["X-Backend"], (status, text)
    assert {get(port)[1].split()[0] for _ in range(4)} == {"one", "two"}

    check_encodings(port)
    check_continue(port)
    check_versions(port)
    check_refusals(port)

    # Replaced three times under load.
    clients = [Client(port) for _ in range(8)]
    for each in clients:
        each.start()
    def let_them_ask(count):
        enough = [each.asked + count for each in clients]
        while any(each.asked < wanted for each, wanted in zip(clients, enough)):
            time.sleep(0.01)

    for index in (1, 2, 3):
        let_them_ask(20)
        await_control(index - 1, control)
        start("--listen", f"127.0.0.1:{port}", "--control", control, "--drain", "60", *targets)
        await_said(index, "took over")
        assert started[index - 1][0].wait(60) == 0, said(index - 1)
        assert "handed over" in said(index - 1), said(index - 1)
    let_them_ask(20)
    for each in clients:
        each.stop = True
    for each in clients:
        each.join()
    failures = [failure for each in clients for failure in each.failures]
    asked = sum(each.asked for each in clients)
    assert not failures, f"{len(failures)} of {asked}: {failures[:3]}"
    assert all(each.connections >= 4 for each in clients), [each.connections for each in clients]

    # A backend that dies is passed over; without any the client is told.
    backends[0].shutdown()
    backends[0].server_close()
    assert {get(port)[1].split()[0] for _ in range(6)} == {"two"}
    backends[1].shutdown()
    backends[1].server_close()
    assert get(port)[0] == 502
    two = raw(port, b"HEAD /x HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert two.split(b"\r\n\r\n", 1)[1].startswith(b"HTTP/1.1 502 ") and two.endswith(b"no backend answers\n"), two

    started[3][0].send_signal(signal.SIGTERM)
    assert started[3][0].wait(60) == 0
    assert "stopping" in said(3) and not os.path.exists(control), said(3)
    answered = sum(int(said(index).split("answered ")[1].split()[0]) for index in range(4))
    assert answered >= asked, (answered, asked)

    check_repetition()
    check_fields()
    check_target_with_host()
    check_old_sides()
    check_stale_control(control, targets)
    check_lost_predecessor(control, targets)
    check_stop_while_giving(control, targets)

    for arguments, words in ((["--to", "nonsense"], '"nonsense" is no address'), ([], "--to is required"),
                             (["--to", "127.0.0.1:1", "--listen", "192.0.2.1:1"], "listening at 192.0.2.1:1"),
                             (["--to", "127.0.0.1:1", "--drain", "-5"], "--drain"),
                             (["--to", "127.0.0.1:1", "--max-connections", "-1"], "-1 is negative")):
        wrong = subprocess.run([program, *arguments], capture_output=True, text=True)
        assert wrong.returncode != 0 and words in wrong.stderr, wrong.stderr
    print(f"reverse_proxy: all checks passed, {asked} requests over three hand-overs, none lost")


run(main)
