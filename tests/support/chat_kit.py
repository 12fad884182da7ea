"""Starts examples/chat, and takes part in it. The programs' folder is the first argument."""

import pathlib
import sys
import urllib.parse

from example import Server
from websocket_peer import WebSocket

program = str(pathlib.Path(sys.argv[1]).resolve() / "chat")


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


def talk_once_each(ann, bob):
    """They are on different servers. What one says comes to both, once, and the other's answer behind it."""
    for first, second in (ann, bob), (bob, ann):
        for text in "1", "2":
            first.say(text)
        for each in first, second:
            for text in "1", "2":
                each.expect(type="message", text=text)
        second.say("3")  # goes through the engine behind the first server's own messages: these would be here before
        for each in first, second:
            each.expect(type="message", text="3")
