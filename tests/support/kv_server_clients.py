"""Clients of examples/kv_server on bare sockets, for kv_server.sh: kv_server_clients.py PORT FUNCTION ARGUMENT..."""
import os, pty, signal, socket, sys, threading

port = int(sys.argv[1])


class Client:
    def __init__(self, receive_buffer=0):
        self.socket = socket.socket()
        self.socket.settimeout(60)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    # One reply: str for status and error, None, int, bytes or a list.
    def reply(self):
        line = self.file.readline()
        assert line.endswith(b"\r\n"), "the connection ended: %r" % line
        mark, rest = line[:1], line[1:-2]
        if mark in b"+-":
            return line[:-2].decode()
        if mark == b":":
            return int(rest)
        if mark == b"$":
            if rest == b"-1":
                return None
            data = self.file.read(int(rest) + 2)
            assert data.endswith(b"\r\n")
            return data[:-2]
        assert mark == b"*", line
        return [self.reply() for _ in range(int(rest))]

    def call(self, *words):
        self.send(request(*words))
        return self.reply()

    # The server may end the connection before all of it is there.
    def send_as_far_as_it_goes(self, data):
        try:
            self.send(data)
        except ConnectionError:
            pass

    def ended(self):
        return self.file.read() == b""


def request(*words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def equal(got, wanted):
    assert got == wanted, "got %.200r instead of %.200r" % (got, wanted)


def in_threads(count, function):
    done = []
    threads = [threading.Thread(target=lambda i=i: (function(i), done.append(i))) for i in range(count)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    equal(len(done), count)


def increments(clients, each):
    def count(_):
        client = Client()
        for _ in range(0, int(each), 50):
            client.send(request("incr", "sum") * 50)
            replies = [client.reply() for _ in range(50)]
            equal(replies, sorted(set(replies)))
    in_threads(int(clients), count)


def bytes_one_by_one():
    client = Client()
    client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request("set", "k\0\r\n", "v") + b"get nothing\r\n" + request("get", "k\0\r\n") + b"PING\n":
        client.send(bytes([byte]))
    equal([client.reply() for _ in range(4)], ["+OK", None, b"v", "+PONG"])


def binary():
    client = Client()
    every = bytes(range(256))
    equal(client.call("set", every, every * 1000), "+OK")
    equal(client.call("get", every), every * 1000)
    equal(client.call("echo", b"$3\r\nabc\r\n"), b"$3\r\nabc\r\n")
    equal(client.call("keys", b"\0\1*"), [every])
    equal(client.call("del", every), 1)
    equal(client.call("no\r\n+OK"), "-ERR unknown command 'no??+OK', with args beginning with:")


# A client that reads while it sends gets all, however much that is.
def pipeline_larger_than_buffers():
    client = Client()
    count, value = 300, os.urandom(200_000)
    equal(client.call("set", "large", value), "+OK")
    pipeline = (request("get", "large") + request("set", "large", value)) * count
    sender = threading.Thread(target=client.send, args=(pipeline,))
    sender.start()
    for _ in range(count):
        equal(client.reply(), value)
        equal(client.reply(), "+OK")
    sender.join()


# On a terminal redis-cli asks for COMMAND DOCS first, and drops the input that was typed before its prompt.
def redis_cli_on_a_terminal():
    process, terminal = pty.fork()
    if process == 0:
        os.environ.update(REDISCLI_HISTFILE="/dev/null", TERM="dumb")
        os.execlp("timeout", "timeout", "--foreground", "60", "redis-cli", "-p", str(port))
    shown = b""
    for awaited, typed in [(b"> ", b"echo begun\r"), (b"\"begun\"", b"quit\r")]:
        while awaited not in shown:
            shown += os.read(terminal, 1000)
        os.write(terminal, typed)
    equal(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), 0)


# Many keys, in many shards, always change together.
def atomic_mset():
    names = ["together%d" % i for i in range(20)]
    equal(Client().call("mset", *[word for name in names for word in (name, "0-0")]), "+OK")

    def write(writer):
        client = Client()
        order = names if writer % 2 else names[::-1]
        for i in range(200):
            equal(client.call("mset", *[word for name in order for word in (name, "%d-%d" % (writer, i))]), "+OK")

    def read(_):
        client = Client()
        for _ in range(200):
            equal(len(set(client.call("mget", *names))), 1)

    in_threads(4, lambda i: write(i) if i < 2 else read(i))


def quit_ends():
    client = Client()
    client.send_as_far_as_it_goes(b"ping\r\nquit\r\nset after 1\r\n" + request("set", "after", "x" * 100_000))
    equal([client.reply(), client.reply()], ["+PONG", "+OK"])
    assert client.ended()
    equal(Client().call("get", "after"), None)


def protocol_errors():
    for sent, reason in [
        (b"*1\r\n:4\r\n", "expected '$', got ':'"),
        (b"*x\r\n", "invalid multibulk length: 'x' is no number"),
        (b"*1000000\r\n", "invalid multibulk length: 1000000, the most is 16384"),
        (b"*2\r\n$3\r\nGET\r\n$1048577\r\n" + b"x" * 100_000, "invalid bulk length: 1048577, the most is 1048576"),
        (b"*1\r\n$-1\r\n", "invalid bulk length: -1"),
        (b"*1\r\n$4\r\nPINGPING\r\n", "expected \\r\\n behind an argument, got 'PI'"),
        (b"x" * 70_000, "too big inline request: more than 65536 bytes"),
        (b"*5\r\n" + b"$1000000\r\n%s\r\n" % (b"y" * 1_000_000) * 5, "the arguments have more than 4194304 bytes"),
    ]:
        client = Client()
        client.send_as_far_as_it_goes(b"PING\r\n" + sent)
        equal(client.reply(), "+PONG")
        equal(client.reply(), "-ERR Protocol error: " + reason)
        assert client.ended()


def idle_is_sent_away():
    for start in [b"", b"*2\r\n$3\r\nGET\r\n$100\r\nabc"]:
        client = Client()
        client.send(start)
        try:
            assert client.ended()
        except ConnectionResetError:  # the time was over before the server could read what we said
            pass


def limits(value):
    client, longest = Client(), b"x" * int(value)
    equal(client.call("set", "k", longest), "+OK")
    equal(client.call("get", "k"), longest)
    equal(client.call("mget", *["k"] * 100),
          "-ERR the reply would have more than %d bytes" % (4 * int(value) + 65536))
    equal(client.call("get", "k"), longest)
    client.send(request("set", "k", longest + b"x"))
    equal(client.reply(), "-ERR Protocol error: invalid bulk length: %d, the most is %d" % (int(value) + 1, int(value)))
    assert client.ended()


def one_at_a_time():
    first = Client()
    before = first.call("info")
    second = Client()
    second.send(b"PING\r\n")
    connections = lambda info: [line for line in info.split(b"\r\n") if line.startswith(b"total_connections")]
    for _ in range(100):
        equal(connections(first.call("info")), connections(before))
    equal(first.call("quit"), "+OK")
    equal(second.reply(), "+PONG")


# Asks for two GB and reads none of it, until the server cannot send further data.
def ask_and_never_read():
    client = Client()
    equal(client.call("set", "large", b"x" * 1_000_000), "+OK")
    client.send(request("get", "large") * 2000)
    return client


def never_reads(server):
    client = ask_and_never_read()
    equal(Client().call("ping"), "+PONG")
    try:
        while True:  # until the server has lost patience
            client.send(request("ping") * 1000)
    except ConnectionError:
        pass
    with open("/proc/%s/status" % server) as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    assert peak < 500_000, "the server has used %d KB" % peak


def answers_before_the_end(server):
    idle, busy = Client(), Client()
    for client in idle, busy:
        equal(client.call("ping"), "+PONG")
    busy.send(request("incr", "n") * 1000)
    os.kill(int(server), signal.SIGTERM)
    equal([busy.reply() for _ in range(1000)], list(range(1, 1001)))
    assert busy.ended() and idle.ended()


# A client that takes its reply after the stop, and asks for more, gets all of the reply.
def last_reply_is_whole(server):
    idle, client = Client(), Client(receive_buffer=4096)
    equal(idle.call("ping"), "+PONG")
    equal(client.call("set", "large", b"x" * 1_000_000), "+OK")
    client.send(request("get", "large"))
    client.socket.recv(1, socket.MSG_PEEK)  # the server has begun
    os.kill(int(server), signal.SIGTERM)
    assert idle.ended()  # so it has ended the input of its connections
    client.send(request("ping"))
    equal(client.reply(), b"x" * 1_000_000)


def does_not_hold_up_the_end(server):
    client = ask_and_never_read()
    os.kill(int(server), signal.SIGTERM)
    try:
        while True:  # it is not read, and so not sent, for ever
            client.send(request("ping") * 1000)
    except ConnectionError:
        pass


globals()[sys.argv[2]](*sys.argv[3:])
