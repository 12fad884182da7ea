"""reverse_proxy_streams.py FOLDER: the proxy passes messages on as they come, and whole or not at all."""

import pathlib
import signal
import socket
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from reverse_proxy_kit import Plain, Scripted, check_before, raw, run, started


def check_surplus():
    """Bytes behind an answer are not the next answer."""
    def check(port):
        ask = b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n"
        answered = raw(port, ask, b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"\r\n\r\nhi" in answered and answered.endswith(b"own") and b"planted" not in answered, answered

    check_before(Plain([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
                        b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nplanted",
                        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown"], b"\r\n\r\n"), check)


def check_strange_answers():
    """An answer whose end the client would see elsewhere is not passed on: RFC 9112, 6.3."""
    def check(port):
        for _ in strange:
            answered = raw(port, b"POST /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert answered.startswith(b"HTTP/1.1 502 ") and answered.count(b"HTTP/1.1 ") == 1, answered
        for version in (b"HTTP/1.1", b"HTTP/1.0"):  # a cut answer is no whole one, also if the connection's end is its end
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                connection.sendall(b"GET /x " + version + b"\r\nHost: x\r\n\r\n")
                try:
                    answered = b""
                    while got := connection.recv(65536):
                        answered += got
                    raise AssertionError(answered)
                except ConnectionResetError:
                    pass

    strange = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
               b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
               b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n",
               b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"]
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nok"
    check_before(Plain(strange + [cut, cut], b"\r\n\r\n", each_on_its_own=True), check)


def check_early_answer():
    """An answer that comes before the end of the request reaches a client that still sends."""
    def check(port):
        ask = b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
        for part in (b"some of it", bytes(5000000)):
            answered = raw(port, ask + part)
            assert answered.startswith(b"HTTP/1.1 413 ") and answered.endswith(b"big"), answered
            assert b"Connection: close\r\n" in answered, answered

    def refuse(connection, lines):  # reads nothing of the body
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
    check_before(Scripted(refuse), check)


def check_streams():
    """Each part of an answer, or of a request, is passed on when it has come, however long the whole is."""
    def check(port):
        for version, end in ((b"HTTP/1.1", b"last\n\r\n0\r\n\r\n"), (b"HTTP/1.0", b"last\n")):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(b"POST /x " + version + b"\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
                answered = b""
                for word in (b"one", b"two"):  # sent when the one before has come back
                    client.sendall(word + b"\r\n")
                    while word + b"\n" not in answered:
                        assert (got := client.recv(65536)), answered
                        answered += got
                while got := client.recv(65536):
                    answered += got
                assert answered.endswith(end) and (b"chunked" in answered) == (version == b"HTTP/1.1"), answered
                assert b"Connection: close\r\n" in answered, answered
        answered = raw(port, b"GET /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").split(b"\r\n\r\n", 1)[1]
        assert len(answered) == 20_000_000, len(answered)

    def talk(connection, lines):
        asks = True
        while asks and len(word := lines.readline()) > 2:
            if word == b"one\r\n":
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            connection.sendall(word.strip() + b"\n")
            asks = word != b"two\r\n"
        connection.sendall(b"last\n" if not asks else b"")

    class Talking(Scripted):
        def serve(self, connection):
            with connection, connection.makefile("rb") as lines:
                if lines.readline().startswith(b"GET"):
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 20000000\r\n\r\n" + bytes(20_000_000))
                    return
                while lines.readline().strip():
                    pass
                talk(connection, lines)

    check_before(Talking(None), check)


def read_until(connection, words):
    got = b""
    while not got.endswith(words):
        assert (part := connection.recv(65536)), got
        got += part


def is_reset(connection):
    try:
        while got := connection.recv(65536):
            assert b"0\r\n\r\n" not in got, got
        return False
    except ConnectionResetError:
        return True


def check_headers():
    """A header is passed on before its body has begun."""
    def check(port):
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
            read_until(client, b"\r\n\r\n")
            has_header.set()
            read_until(client, b"event\r\n0\r\n\r\n")

    def answer(connection, lines):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        if has_header.wait(30):
            connection.sendall(b"event")

    has_header = threading.Event()
    check_before(Scripted(answer), check)


def check_cut_answers():
    """An answer that ends with its connection is not whole if the proxy ended it: a client sees a reset."""
    def check(port):
        for version in (b"HTTP/1.1", b"HTTP/1.0"):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(b"POST /x " + version + b"\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
                read_until(client, b"\r\n\r\npart" if version == b"HTTP/1.0" else b"part\r\n")
                client.shutdown(socket.SHUT_WR)
                assert is_reset(client), version
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(b"GET /x HTTP/1.0\r\nHost: x\r\n\r\n")
            read_until(client, b"\r\n\r\npart")
            started[-1][0].send_signal(signal.SIGTERM)
            assert is_reset(client), "at the end of the drain time"
        done.set()
        assert started[-1][0].wait(60) == 0

    def answer(connection, lines):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\npart")
        done.wait(60)

    done = threading.Event()
    check_before(Scripted(answer), check, "--drain", "1")


def check_limits():
    """It keeps blocks of a request that nobody takes, and not the whole. One connection more than allowed waits."""
    def check(port):
        def kept():
            status = pathlib.Path(f"/proc/{started[-1][0].pid}/status").read_text()
            return int(status.split("VmHWM:")[1].split()[0]) / 1024

        before, clients = kept(), []
        for _ in range(10):
            client = socket.create_connection(("127.0.0.1", port), timeout=0.2)
            clients.append(client)
            client.sendall(b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n")
            try:
                client.sendall(bytes(8_000_000))
            except TimeoutError:
                pass
        assert kept() - before < 30, (before, kept())
        more = socket.create_connection(("127.0.0.1", port), timeout=0.2)
        more.sendall(b"nonsense\r\n\r\n")
        try:
            raise AssertionError(more.recv(65536))
        except TimeoutError:
            pass
        for client in clients:
            client.close()
        release.set()
        more.settimeout(30)
        assert more.recv(65536).startswith(b"HTTP/1.1 400 ")

    release = threading.Event()
    check_before(Scripted(lambda connection, lines: release.wait(60)), check, "--max-connections", "10")


def main():
    check_surplus()
    check_strange_answers()
    check_early_answer()
    check_streams()
    check_headers()
    check_cut_answers()
    check_limits()
    print("reverse_proxy: all checks of streams passed")


run(main)
