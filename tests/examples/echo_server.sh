#!/bin/sh
# Drives examples/echo_server over loopback: sh echo_server.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
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
  grep -qF -- "$3" "$2" || { fail "$1: no \"$3\" in:"; cat "$2" >&2; }
}

# Starts the server with the given arguments; sets server and port.
start() {
  rm -f "$scratch/out"
  "$programs/echo_server" --port 0 "$@" >"$scratch/out" 2>"$scratch/err" &
  server=$!
  tries=0
  until grep -qs '^listening on ' "$scratch/out"; do
    tries=$((tries + 1))
    if [ $tries -gt 1200 ] || ! kill -0 "$server" 2>/dev/null; then
      fail "the server did not start"
      cat "$scratch/err" >&2
      exit 1
    fi
    sleep 0.05
  done
  port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' "$scratch/out")
}

# stop SIGNAL: the server must end by itself, with status 0.
stop() {
  kill "-$1" "$server"
  wait "$server"
  status=$?
  server=
  [ $status -eq 0 ] || fail "after SIG$1 the status was $status"
}

# expect_refusal WHAT TEXT ARGUMENT...: status not 0, TEXT on stderr.
expect_refusal() {
  what=$1 text=$2
  shift 2
  "$programs/echo_server" "$@" >"$scratch/refusal" 2>&1 && fail "$what: status 0"
  expect_text "$what" "$scratch/refusal" "$text"
}

cat >"$scratch/client.py" <<'PYTHON'
import hashlib, os, socket, sys, threading

port, clients, size = (int(a) for a in sys.argv[1:])

def talk():
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        data = os.urandom(size)
        sender = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
        sender.start()
        answer = b""
        while part := s.recv(65536):
            answer += part
        sender.join()
        good.append(answer == data)

good = []
threads = [threading.Thread(target=talk) for _ in range(clients)]
for t in threads: t.start()
for t in threads: t.join()
sys.exit(0 if good == [True] * clients else 1)
PYTHON

for threads in 1 2 4; do
  start --threads $threads
  python3 "$scratch/client.py" "$port" 20 200000 || fail "$threads threads: what came back was not what was sent"
  stop INT
  expect_text "$threads threads" "$scratch/out" "served 20 connections, 4000000 bytes"
done

# A connection that is open does not keep it from stopping.
start
python3 -c '
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=30)
s.sendall(b"x"); assert s.recv(1) == b"x"
open(sys.argv[2], "w").close()
sys.exit(0 if s.recv(1) == b"" else 1)' "$port" "$scratch/connected" &
client=$!
until [ -e "$scratch/connected" ] || ! kill -0 $client 2>/dev/null; do sleep 0.05; done
stop TERM
wait $client || fail "the open connection was not closed"
expect_text "stop with an open connection" "$scratch/out" "served 1 connections, 1 bytes"

# As systemd would start it: the socket is there before the program, and so is a client that waits.
python3 - "$programs/echo_server" "$scratch/out" <<'PYTHON' || fail "the socket of systemd"
import os, signal, socket, subprocess, sys

listening = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listening.getsockname(), timeout=30)
os.dup2(listening.fileno(), 3, inheritable=True)
start = ["sh", "-c", 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$0"', sys.argv[1]]
with open(sys.argv[2], "w") as out:
    server = subprocess.Popen(start, stdout=out, pass_fds=[3])
client.sendall(b"first")
assert client.recv(5, socket.MSG_WAITALL) == b"first"
server.send_signal(signal.SIGTERM)
assert server.wait() == 0
PYTHON
expect_text "the socket of systemd" "$scratch/out" "served 1 connections, 5 bytes"

start
expect_refusal "port in use" "127.0.0.1:$port: Address already in use" --port "$port"
stop INT
expect_refusal "unknown option" "--nonsense" --nonsense
expect_refusal "port out of range" "port" --port 65536
expect_refusal "bad address" "no IPv4 address" --bind nowhere --port 0
"$programs/echo_server" --help >"$scratch/help" || fail "--help: status not 0"
expect_text "help" "$scratch/help" "--threads"

[ $failures -eq 0 ] && echo "echo_server: all checks passed"
exit $((failures > 0))
