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
