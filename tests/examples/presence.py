"""Drives examples/presence over loopback: presence.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from example import BOUND, Server, run_all

program = str(pathlib.Path(sys.argv[1]).resolve() / "presence")
scratch = pathlib.Path(tempfile.mkdtemp())


def start(*arguments):
    return Server(program, "--port", "0", *arguments)


def end(server):
    """Stops it. The clients have left before, so that it need not wait for them."""
    while clients:
        clients.pop().leave()
    server.end()


class Client:
    def __init__(self, server, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(BOUND)
        self.socket.connect(("127.0.0.1", server.port))
        self.lines = self.socket.makefile("rb")
        clients.append(self)

    def say(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def hear(self):
        """The next line; "" at the end."""
        return self.lines.readline().decode().rstrip("\n")

    def hears(self, *expected):
        for each in expected:
            heard = self.hear()
            assert heard == each, f"{heard!r} instead of {each!r}"

    def ask(self, text, *expected):
        self.say(text)
        self.hears(*expected)

    def leave(self):
        self.lines.close()
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.leave()


def watchers_hear_who_comes_and_goes():
    server = start()
    ann, bob = Client(server), Client(server)
    ann.ask("WATCH bob", "OFFLINE bob")
    bob.ask("JOIN bob", "OK")
    ann.hears("ONLINE bob")
    bob.ask("SAY good morning, all", "OK")
    ann.hears("SAID bob good morning, all")
    second = Client(server)
    second.ask("JOIN bob", "OK")
    bob.leave()  # the other connection of that name is still there
    second.ask("SAY still here", "OK")
    ann.hears("SAID bob still here")
    second.reset()
    ann.hears("OFFLINE bob")
    ann.ask("UNWATCH bob", "OK")
    third = Client(server)
    third.ask("JOIN bob", "OK")
    third.ask("SAY nobody hears me", "OK")
    ann.ask("WATCH bob", "ONLINE bob")
    end(server)


def one_may_watch_oneself():
    server = start()
    ann = Client(server)
    ann.ask("WATCH ann", "OFFLINE ann")
    ann.say("JOIN ann")
    assert sorted((ann.hear(), ann.hear())) == ["OK", "ONLINE ann"]
    ann.leave()
    end(server)


def commands_may_come_in_pieces_or_together():
    server = start()
    ann = Client(server)
    for letter in "PING\r\n":
        ann.socket.sendall(letter.encode())
    ann.hears("PONG")
    ann.socket.sendall(b"PING\n" * 100_000)  # far more replies than an outbox holds
    ann.hears(*["PONG"] * 100_000)
    ann.socket.sendall(b"JOIN ann\nWATCH bob\n\nSAY x\nPING")
    ann.hears("OK", "OFFLINE bob", "OK")
    ann.socket.shutdown(socket.SHUT_WR)  # half a command is none
    ann.hears("")
    end(server)


def mistakes_are_named():
    server = start("--max-watched", "2")
    ann = Client(server)
    ann.ask("SHOUT x", "ERROR unknown command")
    ann.ask("SAY x", "ERROR who are you? JOIN first")
    for name in "", "a b", "x" * 65:
        ann.ask("JOIN " + name, "ERROR a name has 1 to 64 characters, and no blanks")
    ann.ask("JOIN ann", "OK")
    ann.ask("JOIN bob", "ERROR you are ann")
    ann.ask("WATCH a", "OFFLINE a")
    ann.ask("WATCH b", "OFFLINE b")
    ann.ask("WATCH c", "ERROR you watch too many names")
    ann.ask("UNWATCH a", "OK")
    ann.ask("WATCH c", "OFFLINE c")
    end(server)


def a_line_has_a_limit():
    server = start("--max-line", "100")
    ann = Client(server)
    ann.ask("JOIN ann", "OK")
    ann.ask("SAY " + "x" * 96, "OK")
    for text in "SAY " + "x" * 97 + "\nPING\n", "x" * 101, "x" * 1_000_000:
        ben = Client(server)
        ben.ask("WATCH ann", "ONLINE ann")
        try:
            ben.socket.sendall(text.encode())
        except (BrokenPipeError, ConnectionResetError):
            assert len(text) > 1000
        ben.hears("ERROR the line is too long", "")
    ann.ask("PING", "PONG")
    end(server)


def a_slow_reader_is_dropped_and_delays_nobody():
    server = start("--max-outbox", "20000")
    slow, quick, star = Client(server, receive_buffer=4096), Client(server), Client(server)
    slow.ask("JOIN slow", "OK")
    for each in slow, quick:
        each.ask("WATCH star", "OFFLINE star")
    quick.ask("WATCH slow", "ONLINE slow")
    star.ask("JOIN star", "OK")
    quick.hears("ONLINE star")
    text, said = "x" * 500, 0
    while True:
        star.ask("SAY " + text, "OK")
        said += 1
        line = quick.hear()
        if line == "OFFLINE slow":
            break
        assert line == "SAID star " + text, line
        assert said < 1_000_000, "a client that does not read was never dropped"
    quick.hears("SAID star " + text)
    got = 0
    try:
        while slow.lines.readline():
            got += 1
    except ConnectionResetError:
        pass
    assert got < said, (got, said)
    quick.ask("PING", "PONG")
    server.process.send_signal(signal.SIGTERM)
    quick.hears("BYE", "")
    star.hears("BYE", "")
    server.ends(0)
    assert server.process.stdout.read() == "served 3 clients, dropped 1\n"


def a_client_that_reads_no_replies_is_not_read_from():
    server = start()
    mute = Client(server, receive_buffer=4096)
    mute.socket.settimeout(2)
    sent = 0
    try:
        for _ in range(10_000):
            sent += mute.socket.send(b"PING\n" * 10_000)
        raise AssertionError("the server takes what it cannot answer")
    except TimeoutError:
        pass
    assert sent < 200_000_000, sent
    mute.leave()
    end(server)


def clients_beyond_the_limit_wait():
    server = start("--max-clients", "2")
    ann, bob, cid = Client(server), Client(server), Client(server)
    ann.ask("PING", "PONG")
    bob.ask("PING", "PONG")
    cid.say("PING")
    cid.socket.settimeout(0.3)
    try:
        raise AssertionError(f"a third client was served: {cid.lines.readline()!r}")
    except TimeoutError:
        pass
    ann.leave()
    cid.socket.settimeout(BOUND)
    assert cid.socket.recv(100) == b"PONG\n"
    end(server)


def the_history_has_each_change():
    path = scratch / "changes"
    for _ in range(2):  # the second appends
        server = start("--history", str(path))
        ann, bob = Client(server), Client(server)
        ann.ask("JOIN ann", "OK")
        bob.ask("WATCH ann", "ONLINE ann")
        ann.leave()
        bob.hears("OFFLINE ann")
        bob.ask("JOIN bob", "OK")
        server.end()  # by which bob leaves
    changes = [line.split(" ", 1) for line in path.read_text().splitlines()]
    assert [change for _, change in changes] == ["ONLINE ann", "OFFLINE ann", "ONLINE bob", "OFFLINE bob"] * 2, changes
    assert all(int(time) > 1_700_000_000 for time, _ in changes)
    done = subprocess.run([program, "--port", "0", "--history", str(scratch / "none" / "changes")],
                          stderr=subprocess.PIPE, text=True, timeout=BOUND)
    assert done.returncode == 1 and "none/changes" in done.stderr, done


def a_stop_says_goodbye():
    for number in signal.SIGTERM, signal.SIGINT:
        server = start("--threads", "2")
        ann, bob, halfway, gone = [Client(server) for _ in range(4)]
        ann.ask("JOIN ann", "OK")
        bob.ask("WATCH ann", "ONLINE ann")
        halfway.socket.sendall(b"PIN")
        gone.ask("PING", "PONG")
        gone.reset()
        server.process.send_signal(number)
        ann.hears("BYE", "")
        halfway.hears("BYE", "")
        heard = [bob.hear(), bob.hear()]  # the OFFLINE of ann may come before, behind, or not any more
        assert "BYE" in heard, heard
        server.ends(0)
        try:
            Client(server)
            raise AssertionError("somebody still listens")
        except ConnectionRefusedError:
            pass


def many_idle_clients_cost_little():
    """What the process takes for each; the sockets of the kernel are not in it."""
    def kilobytes():
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0])

    server = start()
    count = 5000
    first = [Client(server) for _ in range(500)]
    for each in first:
        each.ask("PING", "PONG")
    before = kilobytes()
    others = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for each in others:
        each.sendall(b"PING\n")
        assert each.recv(100) == b"PONG\n"
    each_takes = (kilobytes() - before) * 1024 / count
    print(f"  {each_takes:.0f} bytes a client, of {count}")
    assert each_takes < 3000, each_takes
    for each in others:
        each.close()
    end(server)


def raise_descriptor_limit():
    import resource
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


clients = []  # of the test
raise_descriptor_limit()
try:
    run_all([watchers_hear_who_comes_and_goes, one_may_watch_oneself, commands_may_come_in_pieces_or_together,
             mistakes_are_named, a_line_has_a_limit, a_slow_reader_is_dropped_and_delays_nobody,
             a_client_that_reads_no_replies_is_not_read_from, clients_beyond_the_limit_wait,
             the_history_has_each_change, a_stop_says_goodbye, many_idle_clients_cost_little])
finally:
    shutil.rmtree(scratch)
