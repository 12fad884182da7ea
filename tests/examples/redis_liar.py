"""A redis that announces more than it sends costs no memory: redis_liar.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import http.client
import pathlib
import re
import socket
import sys
import threading

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, Server, run_all

programs = pathlib.Path(sys.argv[1]).resolve()


def most_memory(process):
    """In MiB."""
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{process.pid}/status").read_text())[1]) >> 10


def lie(listener, announced):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        with client:
            while client.recv(4096):
                client.sendall(announced)


def arrays_of_too_many_elements():
    for announced in (b"*99999999\r\n", b"*65536\r\n" * 3 + b"*99999999\r\n"):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=lie, args=(listener, announced), daemon=True).start()
            redis = f"127.0.0.1:{listener.getsockname()[1]}"
            server = Server(programs / "redis_counter", "--port", "0", "--redis", redis, "--timeout", "30000")
            before = most_memory(server.process)
            client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=BOUND)
            client.request("GET", "/counters/a")
            answer = client.getresponse()
            said = answer.read()
            grown = most_memory(server.process) - before
            assert answer.status == 502 and b"the reply is too large" in said, (answer.status, said)
            assert grown < 100, f"{grown} MiB more"
            client.close()
            server.end()
            listener.shutdown(socket.SHUT_RDWR)


run_all([arrays_of_too_many_elements])
