"""Drives examples/chat over loopback: chat.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, Server, run_all
from websocket_peer import BINARY, CLOSE, PING, PONG, TEXT, Closed, WebSocket, connect, frame

program = str(pathlib.Path(sys.argv[1]).resolve() / "chat")
scratch = tempfile.mkdtemp()
redis_socket = scratch + "/redis.sock"


def start(*arguments):
    return Server(program, "--port", "0", *arguments)


class Member(WebSocket):
    def __init__(self, server, name, room="lobby", **options):
        query = urllib.parse.urlencode({"room": room, "name": name})
        super().__init__(server.port, "/ws?" + query, **options)
        members.append(self)

    def say(self, text):
        self.send_json({"text": text})

    def expect(self, **fields):
        """The next event must be this."""
        event = self.receive_json()
        assert fields.items() <= event.items(), f"{event} instead of {fields}"
        return event

    def await_event(self, **fields):
        """Reads on until this comes."""
        while not fields.items() <= (event := self.receive_json()).items():
            pass
        return event


members = []  # of the test, kept from being closed by the garbage collector


def end(server):
    """Stops it. The members have gone before, so that it need not wait for their answers."""
    while members:
        members.pop().close()
    server.end()


def arrive(server, name, room="lobby"):
    member = Member(server, name, room)
    member.expect(type="welcome", room=room, name=name)
    return member


def http(server, request):
    with connect(server.port) as plain:
        plain.sendall(request)
        return plain.makefile("rb").read().decode("utf-8", "replace")


def two_clients_talk():
    server = start()
    ann = arrive(server, "Ann")
    bob = Member(server, "Bob Ö")
    bob.expect(type="welcome", members=["Ann", "Bob Ö"])
    ann.expect(type="joined", name="Bob Ö", members=["Ann", "Bob Ö"])
    ann.say("hello \u2603 </script>")
    for each in ann, bob:
        assert each.expect(type="message", name="Ann", text="hello \u2603 </script>")["time"] > 1.7e12
    bob.say("hi")
    for each in ann, bob:
        each.expect(type="message", name="Bob Ö", text="hi")
    bob.leave()
    ann.expect(type="left", name="Bob Ö", members=["Ann"])
    ann.close()
    arrive(server, "Cid").leave()
    end(server)


def rooms_are_separate():
    server = start()
    ann, bob = arrive(server, "Ann", "one"), arrive(server, "Bob", "two")
    ann.say("for one")
    ann.expect(type="message", text="for one")
    bob.say("for two")
    bob.expect(type="message", text="for two")
    ann.say("again")
    ann.expect(type="message", text="again")
    end(server)


def a_name_may_be_there_twice():
    server = start()
    first, second = arrive(server, "Ann"), arrive(server, "Ann")
    first.expect(type="joined", members=["Ann", "Ann"])
    second.leave()
    first.expect(type="left", members=["Ann"])
    end(server)


def a_half_sent_frame_holds_up_nobody():
    server = start()
    ann, bob = arrive(server, "Ann"), arrive(server, "Bob")
    ann.expect(type="joined")
    for cut in 1, 5, 10:
        whole = frame(TEXT, b'{"text": "in parts"}')
        ann.send_raw(whole[:cut])
        for text in "1", "2":
            bob.say(text)
            bob.expect(text=text)
            ann.expect(text=text)  # while its own frame is incomplete
        ann.send_raw(whole[cut:])
        ann.expect(text="in parts")
        bob.expect(text="in parts")
    ann.send_raw(frame(TEXT, b'{"text": ', fin=False) + frame(PING, b"between"))
    assert ann.receive_frame() == (PONG, b"between")
    bob.say("meanwhile")
    ann.expect(text="meanwhile")
    ann.send_raw(frame(0, b'"in fragments"}'))
    ann.expect(text="in fragments")
    ann.send_raw(frame(TEXT, b'{"text": "a"}') + frame(TEXT, b'{"text": "b"}') + frame(PING, b"c"))
    got = [ann.receive_frame() for _ in range(3)]  # of one segment; the pong comes anywhere among the echoes
    assert [json.loads(payload)["text"] for opcode, payload in got if opcode == TEXT] == ["a", "b"], got
    assert (PONG, b"c") in got, got
    end(server)


def what_is_wrong_ends_with_a_reason():
    server = start("--max-message", "100", "--room-limit", "2", "--max-rate", "5")
    stays = arrive(server, "stays")
    for name, raw, code, reason in (
            ("too long", frame(TEXT, b"x" * 101), 1009, "100 bytes"),
            ("huge", frame(TEXT, b"x" * 10_000_000), 1009, "100 bytes"),
            ("endless", frame(TEXT, b"x", fin=False) + 100 * frame(0, b"x", fin=False), 1009, "100 bytes"),
            ("binary", frame(BINARY, b"x"), 1003, "binary"),
            ("no UTF-8", frame(TEXT, b"\xff\xff"), 1007, ""),
            ("no JSON", frame(TEXT, b"hello"), 1008, "JSON"),
            ("no text", frame(TEXT, b'{"text": 1}'), 1008, "JSON"),
            ("empty", frame(TEXT, b""), 1008, "empty"),
            ("unmasked", b"\x81\x02{}", 1002, ""),
            ("reserved", b"\xf1\x80abcd", 1002, ""),
            # Many more: a server that is held up for a second begins to count anew.
            ("flood", 200 * frame(TEXT, b'{"text": "x"}'), 1008, "5 messages in a second"),
    ):
        member = arrive(server, "wrong")
        try:
            member.send_raw(raw)
        except OSError:
            pass  # it was refused before it was all there
        got = member.closing()
        assert got[0] == code and reason in got[1], f"{name}: {got}"
        stays.await_event(type="left", name="wrong", members=["stays"])
    arrive(server, "second")
    assert Member(server, "third").closing() == (1013, "the room is full: 2 members")
    arrive(server, "third", "elsewhere")
    end(server)


def bad_names_are_refused():
    server = start()
    for room, name, reason in (
            ("lobby", "", 'the name "" is not 1 to 32 characters'),
            ("lobby", "x" * 33, 'the name "xxxxxxxxxxxxxxxx"... is not'),
            ("lobby", " Ann", "blank"),
            ("lobby", "A\nnn", 'the name "A\\nnn" is not'),
            ("lobby", b"\xff", "the name"),
            ("", "Ann", 'the room "" is not 1 to 32 of'),
            ("a room", "Ann", 'the room "a room" is not'),
            ("x" * 33, "Ann", "the room"),
    ):
        code, got = Member(server, name, room).closing()
        assert code == 1008 and reason in got, (room, name, code, got)
    for target in "/ws", "/ws?", "/ws?name=Ann", "/ws?room=%zz&name=Ann":
        assert WebSocket(server.port, target).closing()[0] == 1008, target
    arrive(server, "Ö" * 32, "A-z_" + "9" * 28)
    end(server)


def bad_upgrades_get_an_answer():
    server = start()
    page = (here.parent.parent / "examples/chat/page.html").read_text()
    upgrade = "Host: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    for first, header, status, text in (
            ("GET / HTTP/1.1", "Host: x\r\n", 200, page),
            ("GET /?x=y HTTP/1.1", "Host: x\r\n", 200, page),
            ("HEAD / HTTP/1.1", "Host: x\r\n", 200, f"Content-Length: {len(page.encode())}\r\n"),
            ("POST / HTTP/1.1", "Host: x\r\n", 405, "Allow: GET, HEAD"),
            ("GET /nowhere HTTP/1.1", "Host: x\r\n", 404, "/ws"),
            ("GET /ws?room=a&name=b HTTP/1.1", "Host: x\r\n", 426, "Upgrade: websocket"),
            ("GET /ws?room=a&name=b HTTP/1.1", "Host: x\r\n", 426, "Connection: Upgrade, close"),
            ("GET / HTTP/1.1", "", 400, "the Host is missing"),
            ("HEAD / HTTP/1.1", "", 400, "Connection: close"),
            ("GET / HTTP/1.0", "", 200, page),
            ("\r\n\r\nGET / HTTP/1.0", "", 200, page),
            ("GET /ws HTTP/1.1", upgrade + "Sec-WebSocket-Version: 13\r\n", 400, "Sec-WebSocket-Key"),
            ("GET /ws HTTP/1.1", upgrade + key, 400, "Sec-WebSocket-Version"),
            *(("GET /ws HTTP/1.1", upgrade + f"Sec-WebSocket-Version: 13\r\n{bad}\r\n", 400, "16 bytes in Base64") for bad in (
                "Sec-WebSocket-Key: abc", "Sec-WebSocket-Key: ", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSE=",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZ===", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZSBpcyBsb25n",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j?Q==", key + key.strip())),
            ("GET / HTTP/1.1", "Host: a b\r\n", 400, "the Host is none"),
            ("GET /ws HTTP/1.1", upgrade + key + "Sec-WebSocket-Version: 12\r\n", 426, "Sec-WebSocket-Version: 13"),
            ("GET / HTTP/1.1", "X: " + "x" * 20_000 + "\r\n", 400, "header"),
            ("nonsense", "", 400, ""),
    ):
        answer = http(server, f"{first}\r\n{header}\r\n".encode())
        assert answer.startswith(f"HTTP/1.1 {status} ") and text in answer, (first, header[:100], answer[:1000])
        assert first.startswith("HEAD") <= answer.endswith("\r\n\r\n"), answer
    connect(server.port).close()
    arrive(server, "Ann")
    end(server)


def codes_of_close_frames_are_checked():
    server = start()
    for code, answer in ((1000, 1000), (3000, 3000), (4999, 4999), (5000, 1002), (65535, 1002), (1005, 1002), (999, 1002)):
        member = arrive(server, "Ann", str(code))
        member.send_raw(frame(CLOSE, code.to_bytes(2, "big")))
        assert member.closing()[0] == answer, code
    end(server)


def a_slow_member_is_dropped():
    server = start("--max-message", "100000", "--max-rate", "1000000")
    slow = Member(server, "slow", receive_buffer=4096)
    slow.expect(type="welcome")
    ann = arrive(server, "Ann")
    said = 0
    while True:  # each waits for its own echo: nobody but the one who does not read falls behind
        ann.say(str(said) + "x" * 50_000)
        said += 1
        event = ann.receive_json()
        if event["type"] == "left":
            break
        assert said < 1000, "a member that does not read was never dropped"
    assert event["name"] == "slow" and event["members"] == ["Ann"], event
    ann.expect(type="message", name="Ann")
    got = 0
    try:
        while True:
            got += slow.receive_json()["type"] == "message"
    except Closed as closed:
        assert closed.code == 1013 and closed.reason.startswith("too slow"), closed
    assert got < said, (got, said)
    ann.say("on we go")
    ann.expect(text="on we go")
    end(server)


def silent_members_are_pinged_and_dropped():
    server = start("--idle", "6")  # so the server has 3 s to ping them
    silent, stuck = arrive(server, "silent"), arrive(server, "stuck")
    silent.answer_pings = stuck.answer_pings = False
    stuck.send_raw(b"\x81")  # half a frame, and then nothing
    assert silent.closing() == (4008, "nothing heard for 6 s") and silent.pings > 0
    assert stuck.closing()[0] == 4008
    end(server)


def members_that_answer_pings_stay():
    server = start("--idle", "6")  # so they have 3 s to answer
    ann = arrive(server, "Ann")
    for _ in range(3):  # which takes longer than the time that a silent member has
        opcode, payload = ann.receive_frame()
        assert opcode == PING, opcode
        ann.send_raw(frame(PONG, payload))
    ann.say("still here")
    ann.await_event(text="still here")
    end(server)


def connections_beyond_the_limit_wait():
    server = start("--max-connections", "2")
    ann, bob = arrive(server, "Ann"), arrive(server, "Bob")
    cid = Member(server, "Cid", shake_hands=False)
    ann.leave()
    cid.finish_handshake()
    cid.expect(type="welcome", members=["Bob", "Cid"])
    bob.expect(type="left", name="Ann")
    bob.expect(type="joined", name="Cid")
    end(server)


def a_stop_says_goodbye():
    for number in signal.SIGTERM, signal.SIGINT:
        server = start("--threads", "2")
        ann, bob, mute = arrive(server, "Ann"), arrive(server, "Bob", "other"), arrive(server, "mute")
        halfway = connect(server.port)
        halfway.sendall(b"GET / HT")
        server.process.send_signal(number)
        for each in ann, bob:
            assert each.closing() == (1001, "the server is stopping")
        server.ends(0)  # though one member does not answer, and another client is in the middle of its request
        try:
            connect(server.port)
            assert False, "somebody still listens"
        except ConnectionRefusedError:
            pass


def bad_arguments_are_refused():
    for arguments, text in (
            (["--port", "99999"], "99999"),
            (["--room-limit", "0"], "0"),
            (["--bind", "nowhere", "--port", "0"], "nowhere"),
            (["--redis", "nonsense"], "nonsense"),
            (["--redis", "localhost:none"], "none"),
            (["--page", "/no/such/page"], "/no/such/page"),
            (["--log-level", "loud"], "loud"),
    ):
        ended = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=BOUND)
        assert ended.returncode != 0 and text in ended.stderr, (arguments, ended)
    assert "--redis" in subprocess.run([program, "--help"], capture_output=True, text=True, timeout=BOUND).stdout


class Redis:
    def __init__(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", redis_socket, "--save", "", "--appendonly", "no", "--dir",
             scratch, "--loglevel", "warning"], stdout=subprocess.DEVNULL)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=BOUND)


def several_processes_are_one_over_redis():
    arguments = "--redis", "unix:" + redis_socket
    one = start(*arguments)
    one.await_log("redis lost")  # there is none yet
    ann = Member(one, "Ann")
    ann.expect(type="welcome", members=["Ann"])
    ann.expect(type="status", trouble=True)
    redis = Redis()
    try:
        ann.await_event(type="status", trouble=False)  # behind one for each attempt that came too early
        two = start(*arguments)
        two.await_log("process found")
        bob = Member(two, "Bob")
        bob.expect(type="welcome", members=["Ann", "Bob"])
        ann.expect(type="joined", name="Bob", members=["Ann", "Bob"])
        talk_once_each(ann, bob)
        too_deep = '{"from":"x","room":"lobby","event":{"type":"deep","x":%s}}' % ("[" * 20_000 + "]" * 20_000)
        subprocess.check_output(["redis-cli", "-s", redis_socket, "PUBLISH", "ulexite-chat", too_deep], timeout=BOUND)
        ann.expect(type="deep")
        bob.expect(type="deep")
        talk_once_each(ann, bob)

        redis.end()
        for each, other in (ann, "Bob"), (bob, "Ann"):
            each.await_event(type="status", trouble=True)
            each.expect(type="left", name=other)
        abe = arrive(one, "Abe")
        ann.await_event(type="joined", name="Abe", members=["Abe", "Ann"])  # attempts to connect go on meanwhile
        ann.say("only here")
        for each in abe, ann:
            each.await_event(type="message", text="only here")

        redis = Redis()
        for each, others in (ann, 1), (bob, 2):
            each.await_event(type="status", trouble=False)
            for _ in range(others):
                event = each.await_event(type="joined")
            assert event["members"] == ["Abe", "Ann", "Bob"], event
        abe.await_event(type="joined", name="Bob")
        talk_once_each(ann, bob)

        bob.leave()
        ann.expect(type="left", name="Bob", members=["Abe", "Ann"])
        bob = arrive(two, "Bob")
        ann.expect(type="joined", name="Bob", members=["Abe", "Ann", "Bob"])
        two.process.kill()  # without a word
        two.ends(-signal.SIGKILL)
        ann.expect(type="left", name="Bob", members=["Abe", "Ann"])

        three = start(*arguments)
        cid = arrive(three, "Cid")
        ann.expect(type="joined", name="Cid")
        three.process.terminate()
        assert cid.closing()[0] == 1001
        three.ends(0)
        ann.expect(type="left", name="Cid")
        end(one)
    finally:
        redis.process.kill()
        redis.process.wait()


def talk_once_each(ann, bob):
    """They are on different servers. What one says comes to both, once, and the other's answer behind it."""
    for first, second in (ann, bob), (bob, ann):
        for text in "1", "2":
            first.say(text)
        for each in first, second:
            for text in "1", "2":
                each.expect(type="message", text=text)
        second.say("3")  # goes through redis behind the first server's own messages: these would be here before
        for each in first, second:
            each.expect(type="message", text="3")


try:
    run_all([two_clients_talk, rooms_are_separate, a_name_may_be_there_twice, a_half_sent_frame_holds_up_nobody,
             what_is_wrong_ends_with_a_reason, bad_names_are_refused, bad_upgrades_get_an_answer,
             codes_of_close_frames_are_checked, a_slow_member_is_dropped, silent_members_are_pinged_and_dropped,
             members_that_answer_pings_stay, connections_beyond_the_limit_wait, a_stop_says_goodbye,
             bad_arguments_are_refused, several_processes_are_one_over_redis])
finally:
    shutil.rmtree(scratch)
