#!/bin/sh
# Drives examples/redis_counter before a real redis-server: sh redis_counter.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/example.sh"
redis=

# Ports below those that the system gives to others: while redis is away, nobody takes its port, and no connection to it
# meets itself.
start_redis() { # start_redis [PORT]
  for redis_port in "$@" $([ $# -gt 0 ] || shuf -i 10000-30000 -n 20); do
    rm -f redis.out
    redis-server --port "$redis_port" --bind 127.0.0.1 --unixsocket "$scratch/redis.sock" --save '' --appendonly no \
      >redis.out 2>&1 &
    redis=$!
    running="$running $redis"
    until grep -qs 'Ready to accept connections' redis.out; do
      kill -0 $redis 2>/dev/null || continue 2
      sleep 0.05
    done
    return
  done
  fail "redis-server did not start"
  cat redis.out >&2
  exit 1
}

# start ARGUMENT...: sets server and url.
start() {
  rm -f out err
  "$programs/redis_counter" --port 0 "$@" >out 2>err &
  server=$!
  await 'listening on ' out $server
  url=http://$(sed -n 's/^listening on //p' out)
}

# stop_server SIGNAL: it must end by itself, with status 0.
stop_server() {
  kill "-$1" "$server"
  wait "$server"
  status=$?
  server=
  [ $status -eq 0 ] || { fail "after SIG$1 the status was $status"; cat err >&2; }
}

# ask STATUS TEXT TARGET ARGUMENT...: the answer, in body, has TEXT in it. All must be JSON: see the end.
ask() {
  wanted=$1 text=$2 target=$3
  shift 3
  got=$(curl -sS -m 60 -D header -o body -w '%{http_code}' "$@" "$url$target")
  [ "$got" = "$wanted" ] || { fail "$target $*: status $got instead of $wanted"; cat body >&2; }
  cat body >>bodies
  expect_text "$target $*" header "Content-Type: application/json"
  expect_text "$target $*" body "$text"
}

in_redis() { redis-cli -p "$redis_port" "$@" >/dev/null; }

start_redis

cat >bare.py <<'PYTHON'
import socket, sys

def ask(request, body=b""):
    """The answers to what is sent as it is, up to the end of the connection. The body follows the first answer."""
    host, port = sys.argv[1].split("//")[1].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(request)
        text = b""
        if body:
            text = connection.recv(65536)
            connection.sendall(body)
        while got := connection.recv(65536): text += got
    return text.split(b"HTTP/1.1 ")[1:]

# The answer to HEAD has no body, which a client would take for the next answer.
first, second = ask(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                    b"PUT /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
assert first.startswith(b"200 ") and first.endswith(b"\r\n\r\n") and b"Content-Length: 16" in first, first
assert second.startswith(b"405 "), second
# A refused request is the last.
for wrong in (b"POST /counters/a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
              b"GET /healthz HTTP/1.1\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: a/b\r\n\r\n",
              b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"):
    answers = ask(wrong + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert len(answers) == 1 and answers[0].startswith(b"400 "), answers
answers = ask(b"HEAD /healthz HTTP/1.1\r\n\r\n")
assert answers[0].startswith(b"400 ") and answers[0].endswith(b"\r\n\r\n"), answers
# An empty line before a request is none.
first, second = ask(b"\r\nHEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
                    b"\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
assert first.startswith(b"200 ") and second.startswith(b"200 "), (first, second)
# `close` counts in each line of Connection.
assert ask(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: y\r\nConnection: close\r\n\r\n")[0].startswith(b"200 ")
# A client that waits is told to send its body.
first, second = ask(b"POST /counters/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
                    b"Content-Length: 4\r\n\r\n", b"by=0")
assert first.startswith(b"100 ") and second.startswith(b"200 "), (first, second)
PYTHON

# ---- what it answers ----
for threads in 1 4; do
  start --redis 127.0.0.1:"$redis_port" --threads $threads --timeout 60000
  ask 200 '{"status":"ok"}' /healthz
  ask 200 '{"counters":[]}' /counters
  ask 200 '{"name":"a","value":1}' /counters/a -X POST
  ask 200 '{"name":"a","value":6}' /counters/a -d by=5
  ask 200 '{"name":"a","value":4}' '/counters/a?by=-2' -X POST
  ask 200 '{"name":"b.c:d-e_F","value":1}' /counters/b.c:d-e_F -X POST
  ask 200 '{"name":"a","value":4}' /counters/a
  in_redis set other 1
  ask 200 '{"counters":[{"name":"a","value":4},{"name":"b.c:d-e_F","value":1}]}' /counters
  ask 200 '{"deleted":true,"name":"a"}' /counters/a -X DELETE
  ask 404 'there is no counter \"a\"' /counters/a -X DELETE
  ask 404 'there is no counter \"a\"' /counters/a
  in_redis eval 'for i = 1, 3000 do redis.call("SET", "counter:" .. i, i) end' 0
  ask 200 '{"name":"2999","value":2999}' /counters
  [ "$(python3 -c 'import json; print(sum(c["value"] for c in json.load(open("body"))["counters"]))')" = 4501501 ] ||
    fail "not all of many counters are listed"

  # ---- what it refuses ----
  ask 404 'there is nothing at /nowhere' /nowhere
  ask 405 'PUT does not work here' /counters/a -X PUT && expect_text Allow header "Allow: GET, HEAD, POST, DELETE"
  ask 405 'POST does not work here' /counters -d by=1 && expect_text Allow header "Allow: GET"
  ask 400 'not \"a%20b\"' /counters/a%20b
  ask 400 'not \"\"' /counters/
  ask 400 'not \"by=x\"' /counters/a -d by=x
  ask 400 'not \"by=1 \"' /counters/a -d 'by=1 '
  ask 400 'not \"to=1\"' '/counters/a?to=1' -X POST
  ask 400 'not \"by=9223372036854775808\"' /counters/a -d by=9223372036854775808
  ask 400 'not in both' '/counters/a?by=1' -d by=1
  ask 200 '"value":9223372036854775807' /counters/most -d by=9223372036854775807
  ask 409 'overflow' /counters/most -X POST && expect_text overflow body '"outcome":"not done"'
  in_redis set counter:text x
  in_redis lpush counter:list x
  ask 409 'no whole number: x' /counters/text
  ask 409 'not an integer' /counters/text -X POST
  ask 409 'WRONGTYPE' /counters/list
  head -c 100000 /dev/zero >large
  ask 413 'body limit' /counters/a -H 'Expect:' --data-binary @large
  ask 431 'header limit' /healthz -H "X-Long: $(head -c 10000 /dev/zero | tr '\0' x)"
  python3 bare.py "$url" || fail "bare requests"
  ask 501 'Transfer-Encoding' /counters/a -X POST -H 'Transfer-Encoding: gzip'
  in_redis flushall
  stop_server TERM
  expect_text "the end" out "requests over 1 connections to redis"
done

start --redis "unix:$scratch/redis.sock"
ask 200 '{"status":"ok"}' /healthz
stop_server INT

# ---- load: clients on connections of their own, each with its own counter or all with one ----
cat >load.py <<'PYTHON'
import http.client, json, os, signal, subprocess, sys, threading, urllib.parse

host = urllib.parse.urlsplit(sys.argv[1]).netloc

class client(threading.Thread):
    """Increments one counter until it is told to stop, or so many times, and keeps count of the answers."""
    def __init__(self, name, times=None):
        super().__init__(daemon=True)
        self.counter, self.times, self.seen, self.values, self.wrong = name, times, {}, [], None
        self.stopping = False
        self.base = 0 if times else int(name) * 10**9

    def post(self):
        self.connection.request("POST", "/counters/" + self.counter)
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def run(self):
        try:
            self.connection = http.client.HTTPConnection(host, timeout=60)
            while not self.stopping and sum(self.seen.values()) != self.times: self.once()
        except BaseException as error:
            self.wrong = repr(error)

    def once(self):
        status, said = self.post()
        with changed:
            if status == 200:
                assert said["name"] == self.counter, said
                self.values.append(said["value"])
                key = 200
            else:
                assert status in (502, 503, 504) and said["error"], (status, said)
                assert said["outcome"] == ("not done" if status == 503 else "unknown"), (status, said)
                key = "away" if "cannot be reached" in said["error"] else said["outcome"]
            self.seen[key] = self.seen.get(key, 0) + 1
            changed.notify_all()

    def count(self, *keys):
        return sum(self.seen.get(key, 0) for key in keys)

changed = threading.Condition()

def start(clients):
    for each in clients: each.start()
    return clients

def stop(clients):
    for each in clients: each.stopping = True
    for each in clients: each.join()
    for each in clients: assert each.wrong is None, each.wrong

def wait_for(clients, condition):
    """Until it holds for each."""
    def holds():
        for each in clients: assert each.wrong is None, each.wrong
        return all(map(condition, clients))
    with changed:
        while not changed.wait_for(holds, timeout=1): pass

def more(clients, count, *keys):
    """Until each has got so many more answers of these kinds."""
    before = {each: each.count(*keys) for each in clients}
    wait_for(clients, lambda each: each.count(*keys) >= before[each] + count)

def value(name):
    return int(subprocess.check_output(["redis-cli", "-p", sys.argv[2], "get", "counter:" + name]))

def check(who, values, base):
    """They rise, none is another counter's, and redis has all of them; and maybe those of which nobody knows."""
    assert values == sorted(set(values)), (who.counter, values)
    assert base < values[0] and values[-1] < base + 10**9, (who.counter, values)
    assert base + len(values) <= value(who.counter) <= base + len(values) + who.count("unknown"), (who.counter, values)
PYTHON

cat >adds_up.py <<'PYTHON'
from load import *
clients = start([client("shared", 20) for _ in range(100)])
for each in clients: each.join()
stop(clients)
assert all(each.seen == {200: 20} for each in clients), [each.seen for each in clients]
assert sorted(v for each in clients for v in each.values) == list(range(1, 2001))
assert value("shared") == 2000, value("shared")
PYTHON
for threads in 1 4; do
  start --redis 127.0.0.1:"$redis_port" --threads $threads --pool 5 --timeout 60000
  python3 adds_up.py "$url" "$redis_port" || fail "increments were lost"
  connects=$(redis-cli -p "$redis_port" info clients | tr -d '\r' | sed -n 's/^connected_clients://p')
  [ "$connects" -le 6 ] || fail "$connects connections to redis instead of 5 and redis-cli's"
  # As many connections as requests, by another client.
  curl -sS --no-progress-meter -m 60 -Z --parallel-max 200 -X POST -o /dev/null -w '%{http_code}\n' \
    "$url/counters/curled#[1-2000]" >codes
  ask 200 "{\"name\":\"curled\",\"value\":$(grep -c '^200$' codes)}" /counters/curled
  [ "$(grep -c '^200$' codes)" = 2000 ] || fail "curl: $(sort codes | uniq -c)"
  in_redis flushall
  stop_server TERM
done

# Counters that begin far from each other, so that a reply meant for another is noticed.
set_bases() {
  for i in 1 2 3 4 5 6 7 8; do in_redis set counter:$i ${i}000000000; done
}

# ---- redis is killed, and comes back empty ----
cat >killed.py <<'PYTHON'
from load import *
clients = start([client(str(i)) for i in range(1, 9)])
more(clients, 20, 200)
print("kill", flush=True)
wait_for(clients, lambda each: each.count("away") >= 1)
print("restart", flush=True)
wait_for(clients, lambda each: each.values[-1] < each.base)  # redis has forgotten the base
more(clients, 20, 200)
stop(clients)
for each in clients:
    check(each, [v for v in each.values if v < each.base], 0)
PYTHON
for threads in 1 4; do
  start --redis 127.0.0.1:"$redis_port" --threads $threads --pool 3 --timeout 500
  set_bases
  mkfifo steps
  python3 killed.py "$url" "$redis_port" >steps &
  driver=$!
  running="$running $driver"
  while read -r step; do
    case $step in
      kill) kill -KILL $redis && wait $redis ;;
      restart) start_redis "$redis_port" ;;
    esac
  done <steps 2>/dev/null
  rm steps
  wait $driver || fail "redis killed, $threads threads"
  in_redis flushall
  stop_server TERM # and then all of the log is written
  expect_text "redis killed" err "cannot connect"
  expect_text "redis restarted" err "connected again"
done

# Whatever is asked for meanwhile, the answer says what is wrong.
start --redis 127.0.0.1:"$redis_port" --timeout 1000
ask 200 '{"status":"ok"}' /healthz
kill -KILL $redis
wait $redis 2>/dev/null
tries=0 # until a request has tried to connect before its time was over: of that failure all later ones tell
until curl -sS -m 60 "$url/healthz" | grep -qF 'cannot be reached' || [ $((tries += 1)) -gt 60 ]; do :; done
for target in /healthz /counters /counters/a; do
  ask 503 "redis cannot be reached: ulexite: connecting to 127.0.0.1:$redis_port: Connection refused" $target
done
for method in POST DELETE; do ask 503 '"outcome":"not done"' /counters/a -X $method; done
ask 400 'not \"\"' /counters/
start_redis "$redis_port"
stop_server TERM

# ---- redis freezes, and goes on: then it does what it was asked for before, but nobody gets another's reply ----
cat >frozen.py <<'PYTHON'
from load import *
redis = int(sys.argv[3])
clients = start([client(str(i)) for i in range(1, 9)])
more(clients, 20, 200)
os.kill(redis, signal.SIGSTOP)
with_unknown = lambda: sum(each.count("unknown") for each in clients)
wait_for(clients, lambda each: each.count("unknown", "not done", "away") >= 2 and with_unknown() >= 3)
os.kill(redis, signal.SIGCONT)
more(clients, 20, 200)
stop(clients)
for each in clients:
    check(each, each.values, each.base)
PYTHON
for threads in 1 4; do
  start --redis 127.0.0.1:"$redis_port" --threads $threads --pool 3 --timeout 300
  set_bases
  python3 frozen.py "$url" "$redis_port" $redis || fail "redis frozen, $threads threads"
  kill -CONT $redis
  in_redis flushall
  stop_server TERM
done

# ---- SIGTERM: the request under way is answered, and no other comes in ----
start --redis 127.0.0.1:"$redis_port" --timeout 60000 --drain 60 --verbose
kill -STOP $redis
# A client with nothing to ask: its connection ends when the sessions have been told.
rm -f connected
python3 -c '
import socket, sys
idle = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
open("connected", "w").close()
sys.exit(idle.recv(1) != b"")' "${url##*:}" &
idle=$!
until [ -e connected ] || ! kill -0 $idle 2>/dev/null; do sleep 0.05; done
curl -sS -m 60 -D header -o body -w '%{http_code}' -X POST "$url/counters/last" >code &
asker=$!
await 'target=/counters/last' err $server
kill -TERM $server
await 'stopping signal=SIGTERM' err $server
wait $idle || fail "drain: an idle connection did not end"
kill -CONT $redis
wait $asker
wait $server || fail "drain: status $?"
server=
[ "$(cat code)" = 200 ] || fail "drain: status $(cat code)"
expect_text drain body '{"name":"last","value":1}'
expect_text drain header "Connection: close"
expect_text drain out "served 1 requests"
curl -sS -m 10 "$url/healthz" >/dev/null 2>&1 && fail "drain: it still answers"

# Not for ever.
start --redis 127.0.0.1:"$redis_port" --timeout 60000 --drain 0 --verbose
kill -STOP $redis
curl -sS -m 60 -o body -X POST "$url/counters/last" >/dev/null 2>&1 &
asker=$!
await 'target=/counters/last' err $server
stop_server TERM
kill -CONT $redis
wait $asker && fail "an answer came from nowhere"

# ---- how it refuses to start ----
# refuses WHAT TEXT ARGUMENT...
refuses() {
  what=$1 text=$2
  shift 2
  "$programs/redis_counter" "$@" >refusal 2>&1 && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}
refuses "unknown option" "--nonsense" --nonsense
refuses "no pool" "Value 0 not in range" --pool 0
refuses "no time" "Value 0 not in range" --timeout 0
refuses "wrong address of redis" "nowhere" --redis nowhere
refuses "a port that is taken" "Address already in use" --port "$redis_port"
"$programs/redis_counter" --help >help || fail "--help: status not 0"
expect_text "help" help "--timeout"

python3 -c 'import json; [json.loads(line) for line in open("bodies")]' || fail "an answer is no JSON"

finish redis_counter
