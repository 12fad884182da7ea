"""No link leads out of the site, not even one that is put there meanwhile: http_server_links.py FOLDER

With openat2, and with a kernel that says that it has none.
"""

import ctypes
import http.client
import os
import pathlib
import platform
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
from example import BOUND, run_all

program = pathlib.Path(sys.argv[1]).resolve() / "http_server"
libc = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2
OPENAT2, ENOSYS = 437, 38
running = []
scratch = pathlib.Path(tempfile.mkdtemp())
test = os.getpid()


def without_openat2():
    """For the child, before its exec: seccomp answers that call with ENOSYS."""
    def step(code, k, then=0, otherwise=0):
        return struct.pack("HBBI", code, then, otherwise, k)

    steps = (step(0x20, 0) + step(0x15, OPENAT2, 0, 1) +  # load the number; is it that one?
             step(0x06, 0x50000 | ENOSYS) + step(0x06, 0x7FFF0000))
    kept = ctypes.create_string_buffer(steps)
    rules = struct.pack("HxxxxxxP", 4, ctypes.addressof(kept))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, rules) == 0, os.strerror(ctypes.get_errno())


class Site:
    def __init__(self, before_exec):
        self.root, self.outside = scratch / "site", scratch / "outside"
        for folder in self.root, self.outside:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        (self.root / "d").mkdir()
        (self.root / "d/f.txt").write_text("inside")
        (self.outside / "f.txt").write_text("SECRET")
        (self.root / "l").symlink_to(self.outside)
        self.process = subprocess.Popen([program, self.root, "--port", "0"], stdout=subprocess.PIPE,
                                        preexec_fn=before_exec)
        running.append(self.process)
        self.process.stdout.readline()
        self.port = int(self.process.stdout.readline().rpartition(b":")[2])

    def get(self, target):
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)
        client.request("GET", target)
        answer = client.getresponse()
        return answer.status, answer.read()

    def stop(self):
        self.process.terminate()
        assert self.process.wait(timeout=BOUND) == 0


def check_links(site):
    links = {"absolute": site.root / "d/f.txt", "relative": "d/f.txt", "up": "d/../d/f.txt", "directory": site.root / "d",
             "out": site.outside / "f.txt", "out_and_in": f"../{site.root.name}/d/f.txt", "loop": "loop",
             "proc": f"/proc/self/root{site.outside}/f.txt"}
    for name, to in links.items():
        (site.root / name).symlink_to(to)
    for name in ("d/f.txt", "absolute", "relative", "up", "out_and_in", "directory/f.txt"):
        assert site.get("/" + name) == (200, b"inside"), name
    for name in ("l/f.txt", "out", "loop", "proc", "d/%2e%2e/%2e%2e/" + site.outside.name + "/f.txt", "none", "d/f.txt/x"):
        assert site.get("/" + name)[0] == 404, name


def check_swaps(site):
    """The directory and the link change places all the time."""
    swapper = os.fork()
    if swapper == 0:
        while os.getppid() == test:
            libc.renameat2(AT_FDCWD, os.fsencode(site.root / "d"), AT_FDCWD, os.fsencode(site.root / "l"), RENAME_EXCHANGE)
        os._exit(0)
    try:
        seen = {200: 0, 404: 0}
        with socket.create_connection(("127.0.0.1", site.port), timeout=BOUND) as client:
            answers = client.makefile("rb")
            for _ in range(60):
                client.sendall(b"GET /d/f.txt HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
                for _ in range(50):
                    status = int(answers.readline().split()[1])
                    body = answers.read(int(http.client.parse_headers(answers)["Content-Length"]))
                    assert body != b"SECRET", f"what lies outside was served, after {seen}"
                    seen[status] += 1
    finally:
        os.kill(swapper, signal.SIGKILL)
        os.waitpid(swapper, 0)


def check(before_exec):
    site = Site(before_exec)
    check_links(site)
    check_swaps(site)
    site.stop()


def with_openat2():
    check(None)


def without_openat2_in_the_kernel():
    if platform.machine() in ("x86_64", "aarch64"):
        check(without_openat2)


try:
    run_all([with_openat2, without_openat2_in_the_kernel])
finally:
    for each in running:
        if each.poll() is None:
            each.kill()
    shutil.rmtree(scratch)
