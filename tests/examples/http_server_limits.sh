#!/bin/sh
# What examples/http_server does with clients that ask for too much, are too slow or too many, and how it stops while it
# is at work: sh http_server_limits.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/http.sh"

mkdir site
printf '0123456789' >site/ten.txt
head -c 200000 /dev/urandom >site/some.bin
head -c 64000000 /dev/zero >site/big.bin

check_slow_clients() {
  serve $scheme --header-time 0.5 --body-time 0.5
  python "slow requests" <<'PYTHON'
import select, sys
from http_client import Client

def trickle(client):  # until it is answered; nothing but the server's time limit ends this
    while not select.select([client.socket], [], [], 0.02)[0]:
        client.send("x")

def expect_408(client, why):
    answer = client.answer()
    assert answer.status == 408 and why in answer.body and answer.header["connection"] == "close", vars(answer)
    assert client.at_end()

for begun in ("GE", "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "):  # stops there, and goes on slowly
    client = Client(sys.argv[1])
    client.send(begun)
    expect_408(client, b"the header took longer than 0.5 s")
    client = Client(sys.argv[1])
    client.send(begun)
    if len(begun) > 2: trickle(client)
    expect_408(client, b"the header took longer than 0.5 s")
for header in ("Content-Length: 100000\r\n", "Transfer-Encoding: chunked\r\n"):
    client = Client(sys.argv[1])
    client.ask("/upload", "POST", header, b"186a0\r\n" if "chunked" in header else b"")
    trickle(client)
    expect_408(client, b"the body took longer than 0.5 s")
PYTHON
  stop INT 0

  serve $scheme --idle-time 0.3
  python "idle clients" <<'PYTHON'
import select, sys, time
from http_client import Client
assert Client(sys.argv[1]).at_end()
client = Client(sys.argv[1])
while not select.select([client.socket], [], [], 0.02)[0]:  # empty lines begin no request
    client.send("\r\n")
assert client.at_end()
in_time = False
while not in_time:  # else it was too slow to tell anything
    begun = time.monotonic()
    try:
        client = Client(sys.argv[1])
        client.ask("/ten.txt")
        body = client.answer().body
        assert body or time.monotonic() - begun >= 0.3, "ended before its time"
        in_time = body == b"0123456789"
    except OSError:
        if time.monotonic() - begun < 0.3: raise
assert client.at_end()
PYTHON
  stop INT 0

  serve $scheme --write-time 0.5 --access-log log --grace 60
  python "a client that never reads" <<'PYTHON'
import sys, time
from http_client import Client
client = Client(sys.argv[1], receive_buffer=4096)
client.ask("/big.bin")
while "/big.bin" not in open("log").read():  # the request is over, although nobody has read
    time.sleep(0.05)
try:
    if client.answer().status != 0:  # 0: the time was over before the header was written
        sys.exit("all of it came")
except (EOFError, OSError):  # the bare end in TLS, or a reset
    pass
PYTHON
  stop INT 0
  grep -F 'target="/big.bin" status=200' log | grep -qvF bytes=64000000 || { fail "all was sent to nobody"; cat log >&2; }
  rm log

  serve $scheme --write-time 1 --least-rate 1gb --access-log log --grace 60
  python "a client that reads steadily, but slowly" <<'PYTHON'
import sys, time
from http_client import Client
client = Client(sys.argv[1])
client.ask("/big.bin")
while "/big.bin" not in open("log").read():  # all of it would take 20 s, each block much less than a second
    try:
        client.socket.recv(65536)
    except OSError:  # the bare end in TLS, or a reset
        pass
    time.sleep(0.02)
PYTHON
  stop INT 0
  grep -F 'target="/big.bin" status=200' log | grep -qvF bytes=64000000 || { fail "all was sent, slowly"; cat log >&2; }
  rm log
}

check_sizes() {
  serve $scheme --header-size 1kb --body-size 10000
  python "sizes" <<'PYTHON'
import sys
from http_client import Client

def ask(header="", body=b""):
    client = Client(sys.argv[1])
    client.ask("/upload", "POST", header, body)
    answer = client.answer()
    assert answer.status == 200 or client.at_end()
    return answer.status

chunk = b"3e8\r\n" + 1000 * b"x" + b"\r\n"
assert ask("X: " + 900 * "x" + "\r\nContent-Length: 0\r\n") == 200
assert ask("X: " + 1100 * "x" + "\r\nContent-Length: 0\r\n") == 431
assert ask(200 * "X: 12345\r\n") == 431
assert ask("Content-Length: 10000\r\n", 10000 * b"x") == 200
assert ask("Content-Length: 10001\r\n", 10001 * b"x") == 413
assert ask("Content-Length: 99999999999999999999999\r\n") == 400
assert ask("Transfer-Encoding: chunked\r\n", 10 * chunk + b"0\r\n\r\n") == 200
assert ask("Transfer-Encoding: chunked\r\n", 11 * chunk) == 413
assert ask("Transfer-Encoding: chunked\r\n", b"fffffff\r\n") == 413
assert ask("Expect: 100-continue\r\nContent-Length: 10001\r\n") == 413

client = Client(sys.argv[1])  # a line that never ends
client.send("GET /" + 5000 * "x")
assert client.answer().status == 431
PYTHON
  stop INT 0
}

check_numbers() {
  serve $scheme --max-connections 2
  python "too many connections" <<'PYTHON'
import select, sys
from http_client import Client
url = sys.argv[1]
first, second = Client(url), Client(url)
for client in (first, second):
    client.ask("/hello")
    assert client.answer().status == 200
# The third is let in by the kernel, and waits: for TLS in its handshake, so it begins it beside the others.
import socket, urllib.parse
third = socket.create_connection((urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port), timeout=60)
third.sendall(b"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
for _ in range(100):
    first.ask("/hello")
    assert first.answer().status == 200
assert not select.select([third], [], [], 0)[0], "the third was served beside two others"
second.close()
got = third.recv(100)  # what an HTTPS server says to this is its own affair
assert url.startswith("https") or got.startswith(b"HTTP/1.1 200"), got
PYTHON
  stop INT 0
}

# What cannot be opened now is not missing.
check_no_descriptors() {
  serve $scheme
  python "no descriptors" <<'PYTHON'
import resource, sys
from http_client import Client
client, server = Client(sys.argv[1]), int(sys.argv[2])

def status(target):
    client.ask(target)
    return client.answer().status

assert status("/ten.txt") == 200
soft, hard = resource.prlimit(server, resource.RLIMIT_NOFILE)
resource.prlimit(server, resource.RLIMIT_NOFILE, (3, hard))  # no new one; the connection stays
assert status("/ten.txt") == 503
assert status("/none.txt") == 404
resource.prlimit(server, resource.RLIMIT_NOFILE, (soft, hard))
assert status("/ten.txt") == 200
PYTHON
  stop INT 0
}

# An idle connection ends while others are at work; these finish. Nobody else is let in.
check_stop() {
  serve $scheme --access-log - --grace 60
  python "graceful stop" <<'PYTHON'
import os, signal, sys
from http_client import Client
url, server = sys.argv[1], int(sys.argv[2])
fresh, idle, download, upload, half = (Client(url) for _ in range(5))
idle.ask("/ten.txt")
assert idle.answer().body == b"0123456789"
download.ask("/big.bin")
status, fields = download.header()
upload.ask("/echo", "POST", "Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n")
assert upload.header()[0] == 200 and upload.chunk() == b"hello"
half.ask("/upload", "PUT", "Expect: 100-continue\r\nContent-Length: 5\r\n")
assert half.line() == "HTTP/1.1 100 Continue" and half.line() == ""

os.kill(server, signal.SIGINT)
assert idle.at_end() and fresh.at_end(), "an idle connection stayed"
try:
    Client(url)
    sys.exit("a new connection was accepted")
except ConnectionRefusedError:
    pass
upload.send("5\r\nworld\r\n0\r\n\r\n")
assert upload.chunk() == b"world" and upload.chunk() == b"" and upload.at_end()
half.send("12345")
assert half.answer().body.startswith(b'{"bytes":5,') and half.at_end()
assert len(download.exactly(int(fields["content-length"]))) == 64000000 and download.at_end()
PYTHON
  ends 0
  expect_text "count" out "served 4 requests on 5 connections"
  grep -qE '^time=[-0-9T:.]+Z peer=127\.0\.0\.1:[0-9]+ method="PUT" target="/upload" status=200 bytes=88 us=[0-9]+ agent="" request=[0-9a-f]{16} trace=[0-9a-f]{32}$' out ||
    { fail "no line of the upload:"; cat out >&2; }
}

# What the server says to have answered, in its count and in its log, the clients have received in full.
check_stop_under_load() {
  serve $scheme --access-log log --grace 60
  python "graceful stop under load" <<'PYTHON'
import os, signal, sys, threading
from http_client import Client
url, server = sys.argv[1], int(sys.argv[2])
some, failures, done, lock, warm = open("site/some.bin", "rb").read(), [], 0, threading.Lock(), threading.Semaphore(0)

def work(client, number):
    count = 0
    while True:
        try:
            if number % 2:
                client.ask("/some.bin")
            else:
                client.ask("/echo", "POST", "Content-Length: 50000\r\n", some[:50000])
            if not client.input.peek(1):
                return count  # not begun: the connection was idle to the server
        except OSError:  # the same, and it was closed before all was sent
            return count
        answer = client.answer()
        assert answer.status == 200 and answer.body == (some if number % 2 else some[:50000])
        count += 1
        if count == 5: warm.release()
        if answer.header.get("connection") == "close":
            assert client.at_end()
            return count

def run(client, number):
    global done
    try:
        count = work(client, number)
        with lock: done += count
    except BaseException as error:
        failures.append(error)
        warm.release()

workers = [threading.Thread(target=run, args=(Client(url), number)) for number in range(16)]
for worker in workers: worker.start()
for _ in workers: warm.acquire()
os.kill(server, signal.SIGTERM)
for worker in workers: worker.join()
assert not failures, failures
open("done", "w").write(f"served {done} requests on 16 connections\n")
PYTHON
  ends 0
  expect_text "count" out "$(cat done)"
  answered=$(grep -cE 'status=200 bytes=(200000|50000) ' log)
  expect_text "log" done "served $answered requests"
  grep -vE 'status=(200 bytes=(200000|50000)|0 bytes=0) ' log && fail "a request was cut"
  rm log
}

for scheme in http https; do
  check_slow_clients
  check_sizes
  check_numbers
  check_no_descriptors
  check_stop
  check_stop_under_load
done

# ---- TLS that is never agreed on ----
serve https --handshake-time 0.3
python "slow handshakes" <<'PYTHON'
import socket, sys, urllib.parse
place = urllib.parse.urlsplit(sys.argv[1])
for hello in (b"", b"\x16\x03\x01\x02\x00"):
    with socket.create_connection((place.hostname, place.port), timeout=60) as client:
        client.sendall(hello)
        try:
            assert client.recv(100) == b""
        except ConnectionResetError:  # the time was over before the server could read what we said
            pass
PYTHON
stop INT 0

# ---- the log holds what clients say in one line each ----
serve http --access-log log
curl -sS -m 60 -A 'a "browser"' -o body "$url/ten.txt?a=%22b%22"
curl -sS -m 60 -H 'User-Agent;' -o body -I "$url/missing"
python "what cannot be read" <<'PYTHON'
import sys
from http_client import Client
client = Client(sys.argv[1])
client.send('GET / HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\x1b[31m\r\n\r\n'.encode("latin-1"))
client.answer()
PYTHON
stop INT 0
expect_text "log" log 'method="GET" target="/ten.txt?a=%22b%22" status=200 bytes=10 '
expect_text "log" log 'agent="a \"browser\""'
expect_text "log" log 'method="HEAD" target="/missing" status=404 bytes=0 '
[ "$(wc -l <log)" = 3 ] || { fail "not one line for each request:"; cat log >&2; }
[ "$(tr -d '\n -~' <log)" = "" ] || { fail "bytes as they came:"; cat log >&2; }
[ -s err ] && { fail "stderr is"; cat err >&2; }

finish http_server_limits
