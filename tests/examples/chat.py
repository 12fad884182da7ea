"""Drives examples/chat over loopback: chat.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import json
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from chat_kit import Member, arrive, end, program, start, talk_once_each
from example import BOUND, run_all
from websocket_peer import PING, PONG, TEXT, Closed, connect, frame

scratch = tempfile.mkdtemp()
redis_socket = scratch + "/redis.sock"


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
    server = start("--idle", "6")  # so the server pings them twice
    silent, stuck = arrive(server, "silent"), arrive(server, "stuck")
    silent.answer_pings = stuck.answer_pings = False
    stuck.send_raw(b"\x81")  # half a frame, and then nothing
    assert silent.closing() == (4008, "nothing heard for 6 s") and silent.pings > 0
    assert stuck.closing()[0] == 4008
    end(server)


def members_that_answer_pings_stay():
    server = start("--idle", "6")  # so they have more than 3 s to answer
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


try:
    run_all([two_clients_talk, rooms_are_separate, a_name_may_be_there_twice, a_half_sent_frame_holds_up_nobody,
             a_slow_member_is_dropped, silent_members_are_pinged_and_dropped, members_that_answer_pings_stay,
             connections_beyond_the_limit_wait, a_stop_says_goodbye, several_processes_are_one_over_redis])
finally:
    shutil.rmtree(scratch)
