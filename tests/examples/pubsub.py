"""pubsub.py FOLDER: the hub passes messages on, and a slow subscriber holds up nobody and is told what it missed."""

import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

program = pathlib.Path(sys.argv[1]).resolve() / "pubsub"


class Client:
    def __init__(self, port, receive_buffer=None):
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(60)
        self.socket.connect(("127.0.0.1", port))
        self.lines = self.socket.makefile("rb")

    def say(self, text):
        self.socket.sendall(text.encode() + b"\n")

    def hear(self):
        return self.lines.readline().decode().rstrip("\n")

    def ask(self, text):
        self.say(text)
        return self.hear()


def main():
    log = tempfile.TemporaryFile("w+")
    hub = subprocess.Popen([program, "--port", "0", "--keep", "64"], stderr=log)
    try:
        said = ""
        for _ in range(1200):
            log.seek(0)
            said = log.read()
            if "listening on" in said:
                break
            assert hub.poll() is None, said
            time.sleep(0.05)
        port = int(said.split("listening on ")[1].split()[0].rsplit(":", 1)[1])

        # Each subscriber gets each message of its topics, in order.
        many = [Client(port) for _ in range(20)]
        for each in many:
            assert each.ask("SUB weather") == "OK"
        assert many[0].ask("SUB news") == "OK"
        assert many[0].ask("SUB news") == "OK"  # once is enough
        publisher = Client(port)
        for i in range(50):
            assert publisher.ask(f"PUB weather rain {i}") == "OK"
        assert publisher.ask("PUB news headline") == "OK"
        heard = [many[0].hear() for _ in range(51)]
        assert [line for line in heard if line.startswith("MSG weather")] == [f"MSG weather rain {i}" for i in range(50)]
        assert heard.count("MSG news headline") == 1
        for each in many[1:]:
            assert [each.hear() for _ in range(50)] == [f"MSG weather rain {i}" for i in range(50)]

        # After UNSUB nothing comes.
        assert many[1].ask("UNSUB weather") == "OK"
        assert publisher.ask("PUB weather sun") == "OK"
        assert many[2].hear() == "MSG weather sun"
        assert many[1].ask("SUB other") == "OK"
        assert publisher.ask("PUB other end") == "OK"
        assert many[1].hear() == "MSG other end"

        # One does not read: the others have everything, and so has the publisher's time.
        slow, quick = Client(port), Client(port)
        assert slow.ask("SUB flood") == "OK" and quick.ask("SUB flood") == "OK"
        count, text = 20_000, "x" * 1000
        quick_heard = 0
        for i in range(count):
            publisher.say(f"PUB flood {i} {text}")
            if publisher.hear() != "OK":
                raise AssertionError("the publisher was held up")
            line = quick.hear()
            assert line.startswith(f"MSG flood {i} "), line[:40]
            quick_heard += 1
        assert publisher.ask("PUB flood last") == "OK"
        expected, missed, gaps = 0, 0, 0
        while True:
            line = slow.hear()
            if line.startswith("MISSED flood "):
                gap = int(line.split()[2])
                missed, gaps, expected = missed + gap, gaps + 1, expected + gap
            elif line == "MSG flood last":
                break
            else:
                assert line.startswith(f"MSG flood {expected} "), (expected, line[:40])
                expected += 1
        assert expected == count and missed > 0 and gaps > 0, (expected, missed, gaps)

        # UNSUB does not tear the line that a slow subscriber has read in part.
        slow = Client(port, receive_buffer=4096)
        assert slow.ask("SUB torn") == "OK"
        text = "x" * 3000
        for i in range(3000):
            assert publisher.ask(f"PUB torn {i} {text}") == "OK"
        slow.say("UNSUB torn")
        while (line := slow.hear()) != "OK":
            words = line.split(" ")
            assert words[:2] == ["MISSED", "torn"] or (words[:2] == ["MSG", "torn"] and words[3] == text), line[:40]
        assert slow.ask("PUB none text") == "OK"

        # Publishing to topics that nobody follows keeps nothing; a client may follow 50 topics.
        def kilobytes():
            status = pathlib.Path(f"/proc/{hub.pid}/status").read_text()
            return int(status.split("VmRSS:")[1].split()[0])

        before = kilobytes()
        for first in range(0, 20_000, 1000):
            publisher.say("\n".join(f"PUB none{i} text" for i in range(first, first + 1000)))
            assert [publisher.hear() for _ in range(1000)] == ["OK"] * 1000
        assert kilobytes() < before + 20_000, (before, kilobytes())
        for i in range(50):
            assert publisher.ask(f"SUB mine{i}") == "OK"
        assert publisher.ask("SUB more") == "ERROR too many subscriptions"
        assert publisher.ask("UNSUB mine7") == "OK" and publisher.ask("UNSUB none") == "OK"
        assert publisher.ask("SUB more") == "OK"

        assert publisher.ask("SHOUT weather") == 'ERROR unknown command "SHOUT"'
        assert publisher.ask("PUB") == 'ERROR "PUB" needs a topic'

        # A subscriber that reads nothing does not keep the hub from its end, not even if it waits for an answer.
        slow = Client(port, receive_buffer=4096)
        assert slow.ask("SUB end") == "OK"
        for i in range(3000):
            assert publisher.ask(f"PUB end {i} {text}") == "OK"
        slow.say("PUB none text")
        hub.send_signal(signal.SIGTERM)
        assert hub.wait(60) == 0
        print(f"pubsub: all checks passed; the slow subscriber missed {missed} of {count}")
    finally:
        if hub.poll() is None:
            hub.kill()
            hub.wait()


main()
