"""deploy.py FOLDER_OF_THE_EXAMPLE_PROGRAMS [--restarts N]: http_server, chat and jobs below a service manager, which this test plays:
sockets and messages of systemd, reloads, probes, restarts under load, ids of requests, and the
files of http_server/deploy. --restarts: N restarts under load, and nothing else."""

import collections
import hashlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / "support"))
import jobs_kit
from example import BOUND, run_all
from websocket_peer import WebSocket

programs = pathlib.Path(sys.argv[1]).resolve()
program = str(programs / "http_server")
deploy = here.parent.parent / "examples/http_server/deploy"
scratch = pathlib.Path(tempfile.mkdtemp())
site = scratch / "site"
site.mkdir()
running = []

trusting = ssl.create_default_context()
trusting.check_hostname = False
trusting.verify_mode = ssl.CERT_NONE


def make_certificate(name):
    """Replaces key.pem and cert.pem."""
    for kind in ("key", "cert"):
        (scratch / kind).unlink(missing_ok=True)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", f"/CN={name}", "-keyout", scratch / "key", "-out", scratch / "cert"],
                   check=True, capture_output=True)
    os.replace(scratch / "key", scratch / "key.pem")
    os.replace(scratch / "cert", scratch / "cert.pem")


def until(condition, what):
    end = time.monotonic() + BOUND
    while not (result := condition()):
        assert time.monotonic() < end, f"waited for {what}"
        time.sleep(0.005)
    return result


class Manager:
    """What systemd does for a service. `said` has its messages: pairs of a time and a dictionary."""

    def __init__(self, watchdog=None, activated=False):
        self.name = f"ulexite-test-{os.getpid()}-{id(self)}"
        self.messages = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.messages.bind("\0" + self.name)
        self.said = []
        threading.Thread(target=self._listen, daemon=True).start()
        self.environment = dict(os.environ, NOTIFY_SOCKET="@" + self.name)
        if watchdog:
            self.environment["WATCHDOG_USEC"] = str(watchdog)
        self.listener = None
        if activated:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
            self.environment["LISTEN_FDS"] = "1"

    def _listen(self):
        while True:
            text = self.messages.recv(4096).decode()
            self.said.append((time.monotonic(), dict(line.split("=", 1) for line in text.split("\n"))))

    def start(self, *arguments):
        return Service(self, program, site, *arguments)

    def await_message(self, since=0, **wanted):
        """The first message after the first `since` ones with these variables."""
        def find():
            for _, message in self.said[since:]:
                if all(message.get(name) == value for name, value in wanted.items()):
                    return message
        return until(find, f"{wanted} in {self.said}")


class Service:
    def __init__(self, manager, *command):
        self.manager = manager
        self.out, self.err = (open(scratch / f"{each}-{len(running)}", "w+") for each in ("out", "err"))
        command, descriptors = [*map(str, command), "--port", "0"], ()
        if manager.listener:
            descriptor = manager.listener.fileno()
            descriptors = (descriptor,)
            command = ["bash", "-c", f'LISTEN_PID=$$ exec "$@" 3<&{descriptor}', "bash", *command]
        before = len(manager.said)
        self.process = subprocess.Popen(command, env=manager.environment, pass_fds=descriptors, stdout=self.out,
                                        stderr=self.err)
        running.append(self.process)
        until(lambda: self.process.poll() is not None or any("READY" in m for _, m in manager.said[before:]), "READY")
        assert self.process.poll() is None, f"did not start: {self.errors()}"
        self.port = int(self.output().split("listening on ")[1].split()[0].rpartition(":")[2])

    def output(self):
        return pathlib.Path(self.out.name).read_text()

    def errors(self):
        return pathlib.Path(self.err.name).read_text()

    def signal(self, number):
        self.process.send_signal(number)

    def ends(self, status=0):
        got = self.process.wait(BOUND)
        assert got == status, f"status {got} instead of {status}: {self.errors()}"

    def reload(self):
        """Returns the status after it."""
        before = len(self.manager.said)
        self.signal(signal.SIGHUP)
        began = self.manager.await_message(before, RELOADING="1")
        assert abs(time.monotonic() - int(began["MONOTONIC_USEC"]) / 1e6) < BOUND, began
        return self.manager.await_message(before, READY="1")["STATUS"]

    def connect(self, tls=False):
        if tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=BOUND, context=trusting)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=BOUND)


def ask(client, target="/hello", method="GET", body=None, **fields):
    client.request(method, target, body=body, headers={name.replace("_", "-"): value for name, value in fields.items()})
    answer = client.getresponse()
    answer.text = answer.read().decode()
    return answer


def refuses_to_start(text, *arguments, **environment):
    done = subprocess.run([program, str(site), "--port", "0", *map(str, arguments)],
                          env=dict(os.environ, **environment), capture_output=True, text=True, timeout=BOUND)
    assert done.returncode != 0 and text in done.stderr + done.stdout, (text, done)


def messages_and_watchdog():
    manager = Manager(watchdog=100_000)
    service = manager.start()
    until(lambda: len([1 for _, each in manager.said if "WATCHDOG" in each]) >= 10, "ten signs of life")
    times = [at for at, each in manager.said if "WATCHDOG" in each]
    print(f"  the largest of {len(times)} gaps: {1e3 * max(b - a for a, b in zip(times, times[1:])):.0f} ms of 100")
    service.signal(signal.SIGINT)
    assert "SIGINT" in manager.await_message(STOPPING="1")["STATUS"]
    service.ends()

    other = Manager(watchdog=1000)
    other.environment["WATCHDOG_PID"] = "1"  # not this one's
    service = other.start()
    assert service.reload() == "serving" and "event=reloaded" in service.errors()
    service.signal(signal.SIGTERM)
    service.ends()
    assert not any("WATCHDOG" in each for _, each in other.said), other.said

    refuses_to_start('NOTIFY_SOCKET is "nowhere"', NOTIFY_SOCKET="nowhere")
    refuses_to_start("/nowhere", NOTIFY_SOCKET="/nowhere")
    refuses_to_start('WATCHDOG_USEC is "1s"', NOTIFY_SOCKET="@" + other.name, WATCHDOG_USEC="1s")


def reloads():
    make_certificate("first")
    config = scratch / "config.toml"
    config.write_text(f'cert = "{scratch}/cert.pem"\nkey = "{scratch}/key.pem"\nbody-size = 1000\n')
    service = Manager().start("--config", config, "--log-format", "json")

    def certificate_of(client):
        return hashlib.sha256(client.sock.getpeercert(True)).hexdigest()

    def fresh():
        client = service.connect(tls=True)
        assert ask(client).status == 200
        return certificate_of(client), ask(client, "/upload", "POST", b"x" * 1500).status

    old = service.connect(tls=True)
    assert ask(old).status == 200
    first = fresh()
    assert first == (certificate_of(old), 413)

    make_certificate("second")
    config.write_text(config.read_text().replace("1000", "2000"))
    assert fresh() == first
    assert service.reload() == "serving"
    second = fresh()
    assert second[0] != first[0] and second[1] == 200
    assert ask(old).status == 200, "a connection from before the reload"
    assert ask(old, "/upload", "POST", b"x" * 1500).status == 413, "it keeps its limits"

    (scratch / "cert.pem").write_text("nonsense")
    assert "cannot use the certificate" in service.reload()
    assert fresh() == second
    good = config.read_text()
    for wrong, named in (("idle-time = never\n", "idle-time"), ("idle-time = nan\n", "idle-time"),
                         ("body-size = -1\n", "body-size"), ("no-such-option = 1\n", "no-such-option")):
        config.write_text(good + wrong)
        status = service.reload()
        assert "old configuration" in status and named in status, status
        assert fresh() == second
    events = [json.loads(line) for line in service.errors().splitlines()]
    assert [each["event"] for each in events] == ["reloaded"] + 5 * ["kept"], events
    assert "cert.pem" in events[1]["why"]

    config.write_text(good)
    make_certificate("third")
    assert service.reload() == "serving"
    assert fresh()[0] not in (first[0], second[0])
    service.signal(signal.SIGTERM)
    service.ends()
    refuses_to_start("no-such-option", "--config", write("no-such-option = 1\n"))
    refuses_to_start("missing.toml", "--config", scratch / "missing.toml")


def write(text):
    (scratch / "other.toml").write_text(text)
    return scratch / "other.toml"


def probes_and_drain_delay():
    manager = Manager()
    service = manager.start("--drain-delay", 1)
    old = service.connect()
    for target in ("/livez", "/readyz", "/readyz?verbose"):
        assert (answer := ask(old, target)).status == 200 and answer.text == "ok\n", target
    assert ask(old, "/readyz", "POST", b"x").status == 405, "only GET and HEAD are probes"
    began = time.monotonic()
    service.signal(signal.SIGTERM)
    manager.await_message(STOPPING="1")
    assert (answer := ask(service.connect(), "/readyz")).status == 503 and answer.text == "draining\n"
    assert ask(service.connect(), "/livez").status == 200
    answer = ask(old)
    assert answer.status == 200 and answer.getheader("Connection") == "close", "clients are sent away"
    served = 0
    while True:
        try:
            assert ask(service.connect()).status == 200
            served += 1
        except ConnectionError:  # only when it no longer listens
            break
    assert time.monotonic() - began >= 1 and served > 0
    service.ends()

    service = Manager().start("--drain-delay", 600)
    service.signal(signal.SIGTERM)
    until(lambda: ask(service.connect(), "/readyz").status == 503, "the drain")
    service.signal(signal.SIGTERM)
    service.ends(-signal.SIGTERM)


def ids_and_logs():
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    parent = f"00-{trace}-{span}-01"
    log = scratch / "access"
    service = Manager().start("--access-log", log, "--log-format", "json")
    client = service.connect()
    answers = [
        ask(client, "/hello", traceparent=parent, X_Request_Id="order-7"),
        ask(client, "/hello", traceparent=parent),
        ask(client, "/missing"),
        ask(client, "/hello", traceparent=parent.upper(), X_Request_Id='"},\t{'),
        ask(client, "/hello", traceparent=f"00-{'0' * 32}-{span}-01"),
        ask(client, "/hello", User_Agent='a "quoted" \\ \xff'),
    ]
    client.putrequest("GET", "/hello")
    client.putheader("traceparent", parent)
    client.putheader("traceparent", parent)  # which of them?
    client.endheaders()
    answers.append(client.getresponse())
    answers[-1].read()
    with socket.create_connection(("127.0.0.1", service.port), timeout=BOUND) as raw:
        raw.sendall(b"nonsense\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    service.signal(signal.SIGTERM)
    service.ends()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == len(answers) + 1, lines
    lines.sort(key=lambda line: line["method"] == "")  # each connection writes when it has answered
    for answer, line in zip(answers, lines):
        assert answer.getheader("X-Request-Id") == line["request"] and line["status"] == answer.status, line
        assert len(line["trace"]) == 32 and len(line["span"]) == 16 and line["span"] != span, line
    assert [line["request"] == line["span"] for line in lines[:-1]] == [False] + [True] * 6
    assert lines[0]["request"] == "order-7"
    assert [line["trace"] == trace for line in lines] == [True, True] + [False] * 6
    assert len({line["trace"] for line in lines}) == 7, "each request without a trace begins one"
    assert lines[2]["status"] == 404 and lines[2]["target"] == "/missing" and lines[2]["time"].endswith("Z")
    assert lines[5]["agent"].startswith('a "quoted" \\ ')
    assert lines[-1]["status"] == 400 and lines[-1]["request"] == ""


def restarts_under_load(restarts=5):
    make_certificate("load")
    manager = Manager(watchdog=2_000_000, activated=True)
    port = manager.listener.getsockname()[1]
    delay = 0.7  # in which who has connected must ask
    options = ("--cert", scratch / "cert.pem", "--key", scratch / "key.pem", "--drain-delay", delay)
    service = manager.start(*options)
    assert service.port == port
    count, failures, stop = collections.Counter(), [], threading.Event()

    def note_failure(began, asked, what):
        if asked < began + delay:
            failures.append(what)
        else:
            count["too late"] += 1  # on a loaded machine

    def fresh():
        while not stop.is_set():
            began = asked = time.monotonic()
            try:
                client = service.connect(tls=True)
                asked = time.monotonic()
                count["fresh"] += ask(client).status == 200
                client.close()
            except Exception as failure:
                note_failure(began, asked, f"a new connection: {failure!r}")
            time.sleep(0.002)

    def kept():
        client, requests, began, asked = None, 0, 0, 0
        while not stop.is_set():
            try:
                if not client:
                    began = asked = time.monotonic()
                    client, requests = service.connect(tls=True), 0
                    asked = time.monotonic()
                answer = ask(client)
                count["kept"] += answer.status == 200
                requests += 1
                if answer.getheader("Connection") == "close":
                    client.close()
                    client = None
                    count["told to leave"] += 1
            except (OSError, http.client.HTTPException) as failure:
                # The server may end a connection between two requests, so clients repeat such a request.
                if requests == 0:
                    note_failure(began, asked, f"a first request: {failure!r}")
                client = None
                count["ended between requests"] += 1
            time.sleep(0.002)

    threads = [threading.Thread(target=each) for each in [fresh] * 2 + [kept] * 3]
    for each in threads:
        each.start()
    times = []
    try:
        for _ in range(restarts):
            time.sleep(0.3)
            before, began = sum(count.values()), time.monotonic()
            service.signal(signal.SIGTERM)
            service.ends()
            service = manager.start(*options)
            times.append(time.monotonic() - began)
            until(lambda: sum(count.values()) > before + 20, "requests to the new process")
    finally:
        stop.set()
        for each in threads:
            each.join()
    service.signal(signal.SIGTERM)
    service.ends()
    print(f"  {restarts} restarts in {min(times):.2f} to {max(times):.2f} s: {dict(count)}, {len(failures)} failed")
    assert not failures, collections.Counter(failures)
    assert count["fresh"] > 10 and count["kept"] > 10 and count["told to leave"] > 0, count


def chat_does_so_too():
    if not (programs / "chat").exists():
        return print("  skipped: there is no chat")
    page = scratch / "page.html"
    page.write_text("old")
    manager = Manager(watchdog=100_000, activated=True)
    service = Service(manager, programs / "chat", "--page", page, "--drain-delay", 1)
    assert service.port == manager.listener.getsockname()[1]
    manager.await_message(WATCHDOG="1")
    page.write_text("new")
    assert ask(service.connect(), "/").text == "old"
    assert service.reload() == "serving" and ask(service.connect(), "/").text == "new"
    page.unlink()
    assert "cannot read the page" in service.reload() and ask(service.connect(), "/").text == "new"
    assert [ask(service.connect(), each).status for each in ("/livez", "/readyz")] == [200, 200]
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    ids = {"X-Request-Id": "order-7", "traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    for target, status in ("/", 200), ("/missing", 404), ("/ws", 426):
        answer = ask(service.connect(), target, **ids)
        assert answer.status == status and answer.getheader("X-Request-Id") == "order-7", target
    member = WebSocket(service.port, "/ws?room=a&name=b", fields=ids)
    assert member.header["x-request-id"] == "order-7", member.header
    member.leave()
    until(lambda: '"left"' in service.errors(), "the end of the member")
    service.signal(signal.SIGTERM)
    manager.await_message(STOPPING="1")
    assert [ask(service.connect(), each).status for each in ("/livez", "/readyz", "/")] == [200, 503, 200]
    service.ends()
    lines = [json.loads(line) for line in service.errors().splitlines()]
    assert [each["event"] for each in lines] == ["reloaded", "kept", "joined", "connection ended", "left", "stopping"], lines
    assert [(each["request"], each["trace"], len(each["span"])) for each in lines[2:5]] == [("order-7", trace, 16)] * 3, lines


def jobs_do_so_too():
    if not shutil.which("redis-server"):
        return print("  skipped: there is no redis-server")
    manager, redis = Manager(watchdog=100_000), jobs_kit.Redis()
    worker = jobs_kit.Worker(programs / "jobs", redis, "--metrics", 0, "--grace", 600_000, env=manager.environment)
    manager.await_message(READY="1")
    manager.await_message(WATCHDOG="1")
    assert [worker.get(each) for each in ("/livez", "/readyz?verbose")] == [(200, "ok\n")] * 2
    redis("XADD", "jobs", "*", "job", "long", "ms", 60000)
    worker.await_metrics("jobs_in_flight 1")
    worker.process.send_signal(signal.SIGTERM)
    assert "SIGTERM" in manager.await_message(STOPPING="1")["STATUS"]
    assert [worker.get(each) for each in ("/livez", "/readyz")] == [(200, "ok\n"), (503, "draining\n")]
    worker.process.send_signal(signal.SIGTERM)
    worker.ends(-signal.SIGTERM)


def units():
    if not shutil.which("systemd-analyze"):
        return print("  skipped: no systemd-analyze")
    folder = scratch / "units"
    folder.mkdir()
    for each in ("ulexite-http.socket", "ulexite-http.service"):
        text = (deploy / each).read_text()
        (folder / each).write_text(text.replace("/usr/local/bin/ulexite_http_server", program))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *folder.iterdir()], capture_output=True, text=True,
                          timeout=BOUND)
    assert done.returncode == 0 and str(folder) not in done.stderr, done
    # The options of the unit and of its file must be the program's.
    config = scratch / "unit.toml"
    config.write_text((deploy / "ulexite-http.toml").read_text().replace("/etc/ssl/ulexite", str(scratch)))
    make_certificate("unit")
    unit = (deploy / "ulexite-http.service").read_text()
    command = unit.split("ExecStart=")[1].split("\n")[0]
    options = command.replace("/etc/ulexite-http.toml", str(config)).split()[2:]  # without the program and the folder
    service = Manager(activated=True).start(*options)
    assert ask(service.connect(tls=True)).status == 200
    service.signal(signal.SIGTERM)
    service.ends()
    assert json.loads(service.output().splitlines()[2])["status"] == 200, service.output()
    pod = (deploy / "kubernetes.yaml").read_text()
    service = Manager().start(*json.loads(pod.split("args: ")[1].split("\n")[0]))
    probes = re.findall(r"Probe: {httpGet: {path: (\S+),", pod)
    assert len(probes) == 2 and all(ask(service.connect(), each).status == 200 for each in probes), probes
    service.signal(signal.SIGINT)
    service.manager.await_message(STOPPING="1")
    service.signal(signal.SIGINT)  # does not wait for the drain delay
    service.ends(-signal.SIGINT)


def image():
    """The steps of the Dockerfile after the build: link, empty root, a user without rights."""
    build = programs.parent
    if not (build / "build.ninja").exists() or not (build / "libulexite.a").exists():
        return print("  skipped: no static library, or no objects of a build by Ninja")
    root = scratch / "root"
    (root / "site").mkdir(parents=True)
    linked = subprocess.run([deploy / "link_static", build, root / "http_server"], capture_output=True, text=True)
    if re.search("__(asan|ubsan|tsan|gcov|llvm_profile)_", linked.stderr):
        return print("  skipped: the runtime of a sanitizer or of coverage is missing")
    assert linked.returncode == 0, linked.stderr
    size = (root / "http_server").stat().st_size
    print(f"  {size / 1e6:.1f} MB, static")
    assert size < 12e6, size
    if os.geteuid() != 0:
        return print("  not run: chroot is for root")
    lines = (deploy / "Dockerfile").read_text().splitlines()
    entry = json.loads(next(line for line in lines if line.startswith("ENTRYPOINT")).split(" ", 1)[1])
    entry += json.loads(next(line for line in lines if line.startswith("CMD")).split(" ", 1)[1])
    entry = [{"0.0.0.0": "127.0.0.1", "8080": "0", "5": "0"}.get(each, each) for each in entry]
    os.chmod(scratch, 0o755)
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin")
    process = subprocess.Popen([chroot, "--userspec=65534:65534", root, *entry], env={}, stdout=subprocess.PIPE,
                               text=True)
    running.append(process)
    process.stdout.readline()
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    client = http.client.HTTPConnection("127.0.0.1", int(line.rpartition(":")[2]), timeout=BOUND)
    assert ask(client, "/readyz").status == 200 and ask(client, "/").status == 404
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    assert "Uid:\t65534\t65534" in status, status
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]
    print(f"  {int(resident) / 1e3:.1f} MB resident")
    process.terminate()
    assert process.wait(BOUND) == 0
    assert json.loads(process.stdout.readline())["target"] == "/readyz"


try:
    if sys.argv[2:3] == ["--restarts"]:
        sys.exit(restarts_under_load(int(sys.argv[3])))
    run_all([messages_and_watchdog, reloads, probes_and_drain_delay, ids_and_logs, restarts_under_load,
             chat_does_so_too, jobs_do_so_too, units, image])
finally:
    for each in running:
        each.kill()
        each.wait()
    shutil.rmtree(scratch)
