#!/usr/bin/python3
"""kv_server: the replies of kv_server_replies.txt, in RESP2 and in RESP3.
kv_server_replies.py FOLDER_OF_THE_EXAMPLE_PROGRAMS, or kv_server_replies.py --redis: the redis-server that is
installed must reply the same (tried with 7.0 and 8.0)."""
import contextlib
import json
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60
failures = []


class Connection:
    def __init__(self, connect, protocol):
        self.socket = connect()
        self.file = self.socket.makefile("rb")
        if protocol == 3:  # 2 is what a connection begins with
            self.call(b"HELLO", b"3")

    def close(self):
        self.file.close()
        self.socket.close()

    def call(self, *words):
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.reply(words[0].lower() == b"keys")

    def reply(self, in_order=False):
        """One reply, in the notation of the table."""
        line = self.file.readline()
        assert line.endswith(b"\r\n"), f"the connection ended: {line}"
        mark, rest = line[:1].decode("latin-1"), line[1:-2].decode("latin-1")
        if mark in "+-:_" or (mark, rest) == ("$", "-1"):
            return mark + rest
        if mark in "$=":
            text = self.file.read(int(rest) + 2)
            assert text.endswith(b"\r\n"), text
            return mark.strip("$") + json.dumps(text[:-2].decode("latin-1"))
        assert mark in "*~%", line
        parts = [self.reply() for _ in range(int(rest) * (2 if mark == "%" else 1))]
        return mark + "[" + " ".join(sorted(parts) if in_order else parts) + "]"


def fits(got, wanted):
    if within := re.fullmatch(r":(\d+)\.\.(\d+)", wanted):
        return re.fullmatch(r":\d+", got) and int(within[1]) <= int(got[1:]) <= int(within[2])
    return re.fullmatch(".*".join(map(re.escape, wanted.split("..."))), got)


def sections():
    """Titles, each with its lines: a command, and the reply in RESP2 and in RESP3."""
    found = []
    for line in pathlib.Path(__file__).with_suffix(".txt").read_text().splitlines():
        if line.startswith("["):
            found.append((line.strip("[]"), []))
        elif line and not line.startswith("#"):
            command, *replies = line.split(" => ")
            found[-1][1].append((command, replies[0] if replies else "", replies[-1] if replies else ""))
    return found


def unescaped(text):
    return text.encode().decode("unicode_escape").encode("latin-1")


def check(connect, connection, protocol, command, wanted):
    kind, _, rest = command.partition(" ")
    if kind == "pause":
        return time.sleep(int(rest) / 1000)
    if kind == "raw":
        with contextlib.closing(Connection(connect, protocol)) as other:
            other.socket.sendall(unescaped(rest))
            got = other.reply()
            assert not wanted.startswith("-ERR Protocol") or other.file.read() == b"", f"{command}: no end"
    else:
        got = connection.call(*map(unescaped, shlex.split(command)))
    if not fits(got, wanted):
        failures.append(f"FAILED: RESP{protocol}, {command}: {got:.300} instead of {wanted}")


def check_all(connect, version):
    count = 0
    for title, lines in sections():
        since = re.search(r"since ([\d.]+)$", title)
        if since and [*map(int, version.split("."))] < [*map(int, since[1].split("."))]:
            print(f"{title}: not checked with {version}")
            continue
        for protocol in 2, 3:
            with contextlib.closing(Connection(connect, protocol)) as connection:
                connection.call(b"FLUSHALL")
                for command, *wanted in lines:
                    check(connect, connection, protocol, command, wanted[protocol - 2])
        count += len(lines)
    assert count > 100, count
    return count


@contextlib.contextmanager
def running(*command, **options):
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)


def kv_server(folder):
    with running(pathlib.Path(folder) / "kv_server", "--port", "0", stderr=subprocess.DEVNULL) as process:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        return check_all(lambda: socket.create_connection(("127.0.0.1", port), PATIENCE), "99")


def redis_server():
    version = re.search(r"v=([\d.]+)", subprocess.check_output(["redis-server", "--version"], text=True))[1]
    with tempfile.TemporaryDirectory() as folder:
        place = folder + "/socket"

        def connect():
            client = socket.socket(socket.AF_UNIX)
            client.settimeout(PATIENCE)
            client.connect(place)
            return client

        with running("redis-server", "--port", "0", "--unixsocket", place, "--dir", folder, "--save", "") as process:
            assert any("ready to accept" in line.lower() for line in process.stdout)
            return check_all(connect, version)


begin = time.monotonic()
rows = redis_server() if sys.argv[1] == "--redis" else kv_server(sys.argv[1])
if failures:
    sys.exit("\n".join(failures))
print(f"{rows} lines fit, in RESP2 and in RESP3: {time.monotonic() - begin:.1f} s")
