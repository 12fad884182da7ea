#!/bin/sh
# Drives examples/tcp_proxy over loopback and Unix sockets: sh tcp_proxy.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
checks=$(cd "$(dirname "$0")/../support" && pwd)/tcp_proxy.py
. "$(dirname "$0")/../support/example.sh"
proxy=$programs/tcp_proxy

# ---- TCP ----
python3 -B "$checks" "$proxy" || fail "the checks of tcp_proxy.py"

# ---- Unix sockets on both sides, and stop with a count ----
# start ARGUMENT...: sets running.
start() {
  rm -f out
  "$proxy" "$@" >out 2>err &
  running=$!
  await "listening on " out $running
}
# receive ADDRESS FILE: socat takes one connection there and writes it to the file; sets server.
receive() {
  rm -f receiver
  socat -d -d -u "$1" "OPEN:$2,creat,trunc" 2>receiver &
  server=$!
  await "listening on" receiver $server
}
head -c 5000000 /dev/urandom >sent
receive UNIX-LISTEN:up.sock received
start --listen unix:down.sock --to unix:up.sock
socat -u OPEN:sent UNIX-CONNECT:down.sock || fail "unix: the client's status was $?"
wait "$server" || fail "unix: the upstream's status was $?"
server=
cmp -s sent received || fail "unix: what arrived is not what was sent"
stop TERM 0
expect_text "unix" err 'closed peer="unix:" upstream="unix:up.sock" bytes_to_upstream=5000000 bytes_to_client=0 '
expect_text "unix" err 'reason="both sides ended"'
expect_text "unix" out "served 1 connections, 5000000 bytes"
[ ! -e down.sock ] || fail "the socket was left behind"

# ---- a name, of which not all addresses need answer ----
receive TCP-LISTEN:0,bind=127.0.0.1 received
port=$(sed -n 's/.*listening on .*:\([0-9]*\)$/\1/p' receiver)
start --listen unix:down.sock --to "localhost:$port"
socat -u OPEN:sent UNIX-CONNECT:down.sock || fail "localhost: the client's status was $?"
wait "$server" || fail "localhost: the upstream's status was $?"
server=
cmp -s sent received || fail "localhost: what arrived is not what was sent"
stop INT 0

# ---- an upstream that is not there ----
start --listen unix:down.sock --to unix:none.sock
socat -u UNIX-CONNECT:down.sock OPEN:received,creat,trunc || fail "no upstream: the client's status was $?"
[ ! -s received ] || fail "no upstream: the client got something"
stop TERM 0
expect_text "no upstream" err 'upstream="unix:none.sock" bytes_to_upstream=0 bytes_to_client=0 '
expect_text "no upstream" err 'reason="cannot connect to the upstream: No such file or directory"'

# ---- how it refuses to start ----
# refuses TEXT ARGUMENT...: status not 0, TEXT on stderr.
refuses() {
  text=$1
  shift
  "$proxy" "$@" >out 2>err && fail "$*: status 0"
  expect_text "$*" err "$text"
}
refuses "--to is required" --listen 127.0.0.1:0
refuses '"nonsense" is no address' --listen nonsense --to 127.0.0.1:1
refuses '"127.0.0.1" is no endpoint' --listen 127.0.0.1:0 --to 127.0.0.1
refuses '"nowhere" is no address' --listen 127.0.0.1:0 --to nowhere
refuses '"70000" is no number from 0 to 65535' --listen 127.0.0.1:0 --to localhost:70000
refuses '"http" is no number from 0 to 65535' --listen 127.0.0.1:0 --to localhost:http
refuses "--connect-timeout" --listen 127.0.0.1:0 --to 127.0.0.1:1 --connect-timeout 0
refuses "--idle-timeout" --listen 127.0.0.1:0 --to 127.0.0.1:1 --idle-timeout -1
refuses "--nonsense" --listen 127.0.0.1:0 --to 127.0.0.1:1 --nonsense
"$proxy" --help >out || fail "--help: status $?"
expect_text "help" out "--max-connections"
finish tcp_proxy
