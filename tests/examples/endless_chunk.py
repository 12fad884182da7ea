"""What comes with a chunk beside its bytes (an extension, a trailer) has limits too: endless_chunk.py FOLDER"""

import pathlib
import select
import socket
import subprocess
import sys
import tempfile
import threading

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, Server, run_all, those_built

programs = pathlib.Path(sys.argv[1]).resolve()
MOST = 32 << 20  # bytes: more than the sockets of a connection hold, so that the other side must have read some
KINDS = {
    "extension": (b"5;a=", b"a" * 65536),
    "trailer": (b"0\r\n", (b"X: " + b"a" * 1019 + b"\r\n") * 64),
}


def send_until_answered(peer, kind):
    """How much was sent, all of it behind the header."""
    begin, block = KINDS[kind]
    peer.sendall(begin)
    sent = 0
    try:
        while sent < MOST and not select.select([peer], [], [], 0)[0]:
            peer.sendall(block)
            sent += len(block)
    except OSError:  # it was ended
        pass
    return sent


def expect_refusal(server, target, statuses):
    for kind in KINDS:
        with socket.create_connection(("127.0.0.1", server.port), timeout=BOUND) as peer:
            peer.sendall(f"POST {target} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            sent = send_until_answered(peer, kind)
            assert sent < MOST, f"{sent} bytes of an {kind} were taken"
            answer = peer.recv(4096)
            assert answer.split()[1] in statuses, f"{kind}: {answer}"
            assert b"header is larger" not in answer, answer
    server.end()


def http_server():
    expect_refusal(Server(programs / "http_server", tempfile.gettempdir(), "--port", "0"), "/upload", [b"431"])


def http_server_that_skips_the_body():
    expect_refusal(Server(programs / "http_server", tempfile.gettempdir(), "--port", "0"), "/none.txt", [b"431"])


def redis_counter():
    expect_refusal(Server(programs / "redis_counter", "--port", "0", "--redis", "127.0.0.1:1"), "/counters/a", [b"431"])


def chat():
    expect_refusal(Server(programs / "chat", "--port", "0"), "/", [b"431"])


def crawler():
    for kind in KINDS:
        sent = []

        def answer():
            while not sent:
                peer, _ = listener.accept()
                with peer:
                    peer.settimeout(BOUND)
                    if peer.recv(4096):  # the first connection only tells whether somebody is there
                        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
                                     b"Transfer-Encoding: chunked\r\n\r\n")
                        sent.append(send_until_answered(peer, kind))

        with socket.create_server(("127.0.0.1", 0)) as listener:
            site = threading.Thread(target=answer)
            site.start()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            got = subprocess.run([programs / "crawler", "--attempts", "1", "--timeout", "60000", url],
                                 capture_output=True, text=True, timeout=BOUND)
            site.join()
        assert sent[0] < MOST, f"{sent[0]} bytes of an {kind} were taken"
        assert got.returncode == 1 and "buffer overflow" in got.stdout, got


run_all([http_server, http_server_that_skips_the_body, redis_counter] + those_built(programs, chat, crawler))
