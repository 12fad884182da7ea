"""A websocket client that can also misbehave."""

import base64
import hashlib
import json
import os
import socket
import struct

from example import BOUND

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Closed(Exception):
    def __init__(self, code, reason):
        super().__init__(f"closed: {code} {reason}")
        self.code, self.reason = code, reason


def connect(port, receive_buffer=None):
    plain = socket.socket()
    plain.settimeout(BOUND)
    if receive_buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.connect(("127.0.0.1", port))
    return plain


def frame(opcode, payload=b"", fin=True):
    head = bytes([opcode | (0x80 if fin else 0)])
    size = len(payload)
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += bytes([0x80 | 126]) + struct.pack(">H", size)
    else:
        head += bytes([0x80 | 127]) + struct.pack(">Q", size)
    mask = os.urandom(4)
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


class WebSocket:
    def __init__(self, port, target, receive_buffer=None, shake_hands=True, fields={}):
        self.socket = connect(port, receive_buffer)
        self.input = self.socket.makefile("rb")
        self.pings = 0
        self.answer_pings = True
        self.key = base64.b64encode(os.urandom(16)).decode()
        self.send_raw(
            f"GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {self.key}\r\n".encode()
            + "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode() + b"\r\n")
        if shake_hands:
            self.finish_handshake()

    def finish_handshake(self):
        status = self.input.readline()
        header = self.header = {}
        while line := self.input.readline().strip():
            name, _, value = line.decode().partition(": ")
            header[name.lower()] = value
        assert b" 101 " in status, status
        digest = hashlib.sha1((self.key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        assert header["sec-websocket-accept"] == base64.b64encode(digest).decode()

    def send_raw(self, data):
        self.socket.sendall(data)

    def send_json(self, value):
        self.send_raw(frame(TEXT, json.dumps(value).encode()))

    def receive_frame(self):
        head = self.exactly(2)
        assert head[0] & 0xF0 == 0x80 and head[1] & 0x80 == 0, head  # whole, not masked
        size = head[1] & 0x7F
        if size >= 126:
            size = int.from_bytes(self.exactly(2 if size == 126 else 8), "big")
        return head[0] & 0xF, self.exactly(size)

    def exactly(self, size):
        data = self.input.read(size)
        assert len(data) == size, f"the connection ended after {data!r}"
        return data

    def receive_json(self):
        """The next message; pings are answered before. Raises Closed."""
        while True:
            opcode, payload = self.receive_frame()
            if opcode == TEXT:
                return json.loads(payload)
            if opcode == PING:
                self.pings += 1
                if self.answer_pings:
                    self.send_raw(frame(PONG, payload))
            elif opcode == CLOSE:
                raise Closed(int.from_bytes(payload[:2], "big"), payload[2:].decode())

    def closing(self):
        """Reads on to the close frame, answers it, and returns its code and reason."""
        try:
            while True:
                self.receive_json()
        except Closed as closed:
            try:
                self.send_raw(frame(CLOSE, closed.code.to_bytes(2, "big")))
            except OSError:
                pass  # the other side need not wait for it
            self.close()
            return closed.code, closed.reason

    def leave(self):
        self.send_raw(frame(CLOSE, (1000).to_bytes(2, "big")))
        opcode, payload = self.receive_frame()
        while opcode != CLOSE:
            opcode, payload = self.receive_frame()
        assert payload[:2] == (1000).to_bytes(2, "big"), payload
        assert self.input.read() == b"", "something came behind the close frame"
        self.close()

    def close(self):
        """Without a word."""
        self.input.close()
        self.socket.close()
