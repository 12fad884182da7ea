"""Drives several processes of examples/chat that are one over NATS: chat_nats.py FOLDER_OF_THE_EXAMPLE_PROGRAMS"""

import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from chat_kit import Member, arrive, end, program, start, talk_once_each
from example import BOUND, run_all


class Nats:
    """A nats-server on a free port, which it keeps."""

    def __init__(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            ["nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-l", "/dev/null"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        give_up = time.monotonic() + BOUND
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=BOUND).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None and time.monotonic() < give_up, "nats-server did not start"
                time.sleep(0.01)

    def send_signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()


nats = Nats()


def apart(ann, bob):
    for each, other in (ann, "Bob"), (bob, "Ann"):
        each.await_event(type="status", trouble=True)
        each.expect(type="left", name=other)
    for each in ann, bob:
        each.say("only here")
        each.await_event(type="message", text="only here")


def together(ann, bob):
    for each, other in (ann, "Bob"), (bob, "Ann"):
        each.await_event(type="status", trouble=False)
        each.await_event(type="joined", name=other, members=["Ann", "Bob"])
    talk_once_each(ann, bob)


def several_processes_are_one_over_nats():
    one = start("--nats", nats.url)
    one.await_log("nats lost")  # there is none yet
    ann = Member(one, "Ann")
    ann.expect(type="welcome", members=["Ann"])
    ann.expect(type="status", trouble=True)
    nats.start()
    ann.await_event(type="status", trouble=False)
    two = start("--nats", nats.url)
    two.await_log("process found")
    bob = Member(two, "Bob")
    bob.expect(type="welcome", members=["Ann", "Bob"])
    ann.expect(type="joined", name="Bob", members=["Ann", "Bob"])
    talk_once_each(ann, bob)

    nats.send_signal(signal.SIGSTOP)  # it takes what they send, and answers nothing
    apart(ann, bob)
    nats.send_signal(signal.SIGCONT)
    together(ann, bob)

    nats.kill()
    apart(ann, bob)
    nats.start()
    together(ann, bob)

    two.process.kill()  # without a word
    two.ends(-signal.SIGKILL)
    ann.expect(type="left", name="Bob", members=["Ann"])
    three = start("--nats", nats.url)
    cid = arrive(three, "Cid")
    ann.expect(type="joined", name="Cid")
    three.process.terminate()
    assert cid.closing()[0] == 1001
    three.ends(0)
    ann.expect(type="left", name="Cid")
    end(one)


def ends_while_nats_is_frozen():
    server = start("--nats", nats.url)
    server.await_log("nats connected")
    nats.send_signal(signal.SIGSTOP)
    end(server)
    nats.send_signal(signal.SIGCONT)


def one_engine_at_a_time():
    both = subprocess.run([program, "--nats", nats.url, "--redis", "localhost:6379"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=BOUND)
    assert both.returncode != 0 and "excludes" in both.stderr, both


def a_wrong_url_is_told():
    server = start("--nats", "nats://127.0.0.1:1")
    assert "nats://127.0.0.1:1" in server.await_log("nats lost")["why"]
    end(server)


if not shutil.which("nats-server"):
    print("nats-server is not installed (Debian: nats-server): skipped")
    sys.exit()
try:
    run_all([several_processes_are_one_over_nats, ends_while_nats_is_frozen, one_engine_at_a_time,
             a_wrong_url_is_told])
finally:
    nats.kill()
