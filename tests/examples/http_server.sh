#!/bin/sh
# Drives examples/http_server over loopback: sh http_server.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
set -u
programs=$1
scratch=$(mktemp -d)
server=
failures=0
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect_text WHAT FILE TEXT
expect_text() {
  grep -qiF -- "$3" "$2" || { fail "$1: no \"$3\" in:"; head -c 2000 "$2" >&2; }
}

# Starts the server with the given arguments; sets server, port and url.
start() {
  rm -f "$scratch/out"
  "$programs/http_server" "$scratch/site" --port 0 "$@" >"$scratch/out" 2>"$scratch/err" &
  server=$!
  tries=0
  until grep -qs '^serving ' "$scratch/out"; do
    tries=$((tries + 1))
    if [ $tries -gt 200 ] || ! kill -0 "$server" 2>/dev/null; then
      fail "the server did not start"
      cat "$scratch/err" >&2
      exit 1
    fi
    sleep 0.05
  done
  port=$(sed -n 's|^serving .*:\([0-9]*\)/$|\1|p' "$scratch/out")
  url=http://127.0.0.1:$port
}

# stop SIGNAL: the server must end by itself, with status 0.
stop() {
  kill "-$1" "$server"
  wait "$server"
  status=$?
  server=
  [ $status -eq 0 ] || fail "after SIG$1 the status was $status"
}

# get STATUS TARGET ARGUMENT...: header in $scratch/header, body in $scratch/body.
get() {
  wanted=$1 target=$2
  shift 2
  got=$(curl -sS -m 30 --path-as-is -D "$scratch/header" -o "$scratch/body" -w '%{http_code}' "$@" "$url$target")
  [ "$got" = "$wanted" ] || fail "$target $*: status $got instead of $wanted"
}

has() { expect_text "$target" "$scratch/header" "$1"; }

same_as() { cmp -s "$scratch/body" "$1" || fail "$target: the body is not $1"; }

# raw TEXT: sends it as it is and puts the answer into $scratch/raw.
raw() {
  PORT=$port TEXT=$1 timeout 30 bash -c '
    exec 3<>"/dev/tcp/127.0.0.1/$PORT" && printf "$TEXT" >&3 && cat <&3' >"$scratch/raw" 2>/dev/null
}

# expect_refusal WHAT TEXT ARGUMENT...: status not 0, TEXT on stderr.
expect_refusal() {
  what=$1 text=$2
  shift 2
  "$programs/http_server" "$@" >"$scratch/refusal" 2>&1 && fail "$what: status 0"
  expect_text "$what" "$scratch/refusal" "$text"
}

# ---- a site ----
mkdir -p "$scratch/site/sub/deep" "$scratch/outside" "$scratch/site/empty"
printf '<h1>home</h1>\n' >"$scratch/site/index.html"
printf '<h1>sub</h1>\n' >"$scratch/site/sub/index.html"
printf '0123456789' >"$scratch/site/ten.txt"
printf 'spaced' >"$scratch/site/a b.css"
: >"$scratch/site/nothing.json"
head -c 16000000 /dev/urandom >"$scratch/site/big.bin"
printf 'secret' >"$scratch/outside/secret.txt"
ln -s ../outside/secret.txt "$scratch/site/leak.txt"
ln -s ../outside "$scratch/site/leak"
ln -s ten.txt "$scratch/site/alias.txt"
mkfifo "$scratch/site/pipe"

# ---- files ----
start --threads 2
get 200 / && same_as "$scratch/site/index.html"
has "Content-Type: text/html"
has "Content-Length: 14"
has "Server: ulexite-http"
has "Date: "
has "Last-Modified: "
get 200 '/index.html?query=1' && same_as "$scratch/site/index.html"
get 200 /sub/ && same_as "$scratch/site/sub/index.html"
get 301 '/sub?q' && has "Location: /sub/?q"
get 301 //sub && has "Location: /sub/"
get 404 /empty/
get 200 /ten.txt && same_as "$scratch/site/ten.txt" && has "Content-Type: text/plain"
get 200 /alias.txt && same_as "$scratch/site/ten.txt"
get 200 '/a%20b.css' && same_as "$scratch/site/a b.css" && has "Content-Type: text/css"
get 200 /nothing.json && same_as "$scratch/site/nothing.json" && has "Content-Length: 0"
get 200 /big.bin && same_as "$scratch/site/big.bin" && has "Content-Type: application/octet-stream"
get 404 /missing.txt
get 404 /ten.txt/
get 404 /ten.txt/x
get 404 /pipe

# ---- conditions, HEAD, ranges ----
since=$(curl -sSI -m 30 "$url/ten.txt" | tr -d '\r' | sed -n 's/^Last-Modified: //p')
get 304 /ten.txt -H "If-Modified-Since: $since"
get 200 /ten.txt -H "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT"
get 200 /big.bin -I && has "Content-Length: 16000000"
get 404 /missing.txt -I
range() { # range HEADER STATUS CONTENT_RANGE TEXT
  get "$2" /ten.txt -H "Range: $1"
  [ -z "$3" ] || has "Content-Range: bytes $3"
  [ "$2" = 416 ] || [ "$(cat "$scratch/body")" = "$4" ] || fail "Range $1: got $(cat "$scratch/body")"
}
range bytes=2-4 206 2-4/10 234
range bytes=0-0 206 0-0/10 0
range bytes=7- 206 7-9/10 789
range bytes=5-100 206 5-9/10 56789
range bytes=-3 206 7-9/10 789
range bytes=-30 206 0-9/10 0123456789
range bytes=9-99999999999999999999999 206 9-9/10 9
range bytes=10- 416 '*/10' ''
range bytes=-0 416 '*/10' ''
range bytes=4-2 200 '' 0123456789
range bytes=0-1,3-4 200 '' 0123456789
range lines=0-1 200 '' 0123456789
range bytes=x 200 '' 0123456789
get 206 /ten.txt -H "Range: bytes=0-3" -H "If-Range: $since"
get 200 /ten.txt -H "Range: bytes=0-3" -H "If-Range: Thu, 01 Jan 1970 00:00:00 GMT"
get 200 /ten.txt -I -H "Range: bytes=0-3" && has "Content-Length: 10"
get 206 /big.bin -r 1000000-2499999
tail -c +1000001 "$scratch/site/big.bin" | head -c 1500000 >"$scratch/part" && same_as "$scratch/part"

# ---- nothing outside of the site ----
for target in /../outside/secret.txt /%2e%2e/outside/secret.txt /sub/../../outside/secret.txt /..%2foutside%2fsecret.txt \
  /leak.txt /leak/secret.txt /leak/ //..//outside/secret.txt /sub/%2E%2E/%2E%2E/outside/secret.txt; do
  get 404 "$target"
  grep -q secret "$scratch/body" && fail "$target: the secret is out"
done
get 200 /sub/../ten.txt && same_as "$scratch/site/ten.txt"

# ---- what is refused ----
get 400 /%zz
get 400 /%2
get 400 /a%00b
get 405 /ten.txt -X DELETE && has "Allow: GET, HEAD"
get 405 /ten.txt -d hello
head -c 100000 /dev/zero >"$scratch/large"
get 413 / -H 'Expect:' --data-binary "@$scratch/large"
get 413 / -H 'Transfer-Encoding: chunked' --data-binary "@$scratch/large"
get 431 / -H "X-Long: $(head -c 20000 /dev/zero | tr '\0' x)"
raw 'complete garbage\r\n\r\n' && expect_text garbage "$scratch/raw" "HTTP/1.1 400"
raw 'GET / HTTP/1.1\r\n\r\n' && expect_text "no Host" "$scratch/raw" "HTTP/1.1 400"
raw 'GET / HTTP/1.0\r\n\r\n' && expect_text "HTTP/1.0" "$scratch/raw" "<h1>home</h1>"
raw 'GET http://x/ten.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
expect_text "absolute target" "$scratch/raw" "0123456789"
raw 'GET /ten.txt HTTP/1.1\r\nHost: x\r\n\r\nGET /sub/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'
expect_text "first of a pipeline" "$scratch/raw" "0123456789"
expect_text "second of a pipeline" "$scratch/raw" "<h1>sub</h1>"

# ---- keep-alive ----
connects=$(curl -sS -m 30 -o /dev/null -o /dev/null -w '%{num_connects} ' "$url/" "$url/ten.txt")
[ "$connects" = "1 0 " ] || fail "keep-alive: connects were $connects"
connects=$(curl -sS -m 30 -H 'Connection: close' -o /dev/null -o /dev/null -w '%{num_connects} ' "$url/" "$url/ten.txt")
[ "$connects" = "1 1 " ] || fail "Connection: close: connects were $connects"
stop INT
grep -q '^served [1-9][0-9]* requests on [1-9][0-9]* connections$' "$scratch/out" || fail "no count: $(cat "$scratch/out")"

# ---- the count, an idle client and a busy one at the stop ----
start
get 200 / && get 200 /ten.txt
cat >"$scratch/stop.py" <<'PYTHON'
import os, signal, socket, sys
port, server = int(sys.argv[1]), int(sys.argv[2])
connect = lambda: socket.create_connection(("127.0.0.1", port), timeout=30)
idle, busy = connect(), connect()
idle.sendall(b"GET /ten.txt HTTP/1.1\r\nHost: x\r\n\r\n")
assert b"0123456789" in idle.recv(65536)

busy.sendall(b"GET /big.bin HTTP/1.1\r\nHost: x\r\n\r\n")
got = len(busy.recv(1000))
os.kill(server, signal.SIGINT)
assert idle.recv(100) == b"", "the idle connection stayed"
while part := busy.recv(65536):
    got += len(part)
assert got > 16000000, "the running request was cut off at %d" % got
try:
    connect()
    sys.exit("a new connection was accepted")
except ConnectionRefusedError:
    pass
PYTHON
python3 "$scratch/stop.py" "$port" "$server" || { fail "graceful stop"; kill -INT "$server"; }
wait "$server" || fail "graceful stop: status $?"
server=
expect_text "count" "$scratch/out" "served 4 requests on 4 connections"

# ---- an idle client is sent away ----
start --idle 1
raw '' && [ ! -s "$scratch/raw" ] || fail "an idle client got something"
raw 'GET / HTT' && [ ! -s "$scratch/raw" ] || fail "a client that stopped halfway got something"

# ---- load ----
if command -v wrk >/dev/null; then
  wrk -t1 -c50 -d1s "$url/ten.txt" >"$scratch/wrk" 2>&1 || fail "wrk"
  grep -qE 'Socket errors|Non-2xx' "$scratch/wrk" && { fail "wrk:"; cat "$scratch/wrk" >&2; }
  expect_text "wrk" "$scratch/wrk" "requests in"
fi

# ---- how it refuses to start ----
expect_refusal "port in use" "127.0.0.1:$port: Address already in use" "$scratch/site" --port "$port"
stop TERM
expect_refusal "missing directory" "$scratch/none" "$scratch/none" --port 0
expect_refusal "no directory at all" "DIR" --port 0
expect_refusal "file instead of a directory" "Not a directory" "$scratch/site/ten.txt" --port 0
expect_refusal "unknown option" "--nonsense" "$scratch/site" --nonsense
expect_refusal "bad address" "no IPv4 address" "$scratch/site" --bind nowhere --port 0
"$programs/http_server" --help >"$scratch/help" || fail "--help: status not 0"
expect_text "help" "$scratch/help" "--port"

[ $failures -eq 0 ] && echo "http_server: all checks passed"
exit $((failures > 0))
