"""What examples/chat refuses, and with which reason: chat_refusals.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from chat_kit import Member, arrive, end, program, start
from example import BOUND, run_all
from websocket_peer import BINARY, CLOSE, TEXT, WebSocket, connect, frame


def http(server, request):
    with connect(server.port) as plain:
        plain.sendall(request)
        return plain.makefile("rb").read().decode("utf-8", "replace")


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
            ("GET / HTTP/1.1", "X: " + "x" * 20_000 + "\r\n", 431, "header is larger than 8192 bytes"),
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


run_all([what_is_wrong_ends_with_a_reason, bad_names_are_refused, bad_upgrades_get_an_answer,
         codes_of_close_frames_are_checked, bad_arguments_are_refused])
