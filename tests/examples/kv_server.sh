#!/bin/sh
# Drives examples/kv_server with redis-cli, redis-benchmark and bare sockets:
#   sh kv_server.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/example.sh"
clients=$(cd "$OLDPWD" && cd "$(dirname "$0")/../support" && pwd)/kv_server_clients.py

# start ARGUMENT...: sets running and port.
start() {
  rm -f out err  # see await
  "$programs/kv_server" --port 0 "$@" >out 2>err &
  running=$!
  await "listening on " out "$running"
  port=$(sed -n 's/^listening on .*:\([0-9]*\)$/\1/p' out)
}

cli() { timeout 60 redis-cli -p "$port" --no-raw "$@" 2>&1; }

# is ANSWER WORD...: what redis-cli prints, its lines joined by '|'.
is() {
  wanted=$1
  shift
  got=$(cli "$@" </dev/null | paste -sd '|')
  [ "$got" = "$wanted" ] || fail "$*: got $got instead of $wanted"
}

# becomes ANSWER WORD...: sooner or later.
becomes() {
  wanted=$1 tries=0
  shift
  until [ "$(cli "$@" </dev/null)" = "$wanted" ] || [ $((tries += 1)) -gt 600 ]; do sleep 0.05; done
  is "$wanted" "$@"
}

# talk NAME ARGUMENT...: a function of the Python file.
talk() {
  timeout 100 python3 "$clients" "$port" "$@" || fail "$*"
}

# expect_refusal WHAT TEXT ARGUMENT...: status not 0, TEXT in what it says.
expect_refusal() {
  what=$1 text=$2
  shift 2
  "$programs/kv_server" "$@" >refusal 2>&1 && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}

# ---- what is its own; kv_server_replies.py has what it replies as Redis does ----
start --threads 2
is '(error) ERR the pattern is longer than 256 bytes' keys "$(printf '%257s' '' | tr ' ' '?')"
is '(error) ERR only COMMAND, COMMAND COUNT and COMMAND DOCS are known' command more
is '(error) ERR only CONFIG GET with one name is known' config set save ''
is OK mset a 1 b 2
is '(integer) 1' pexpire a 1
becomes '(integer) 1' dbsize # what nobody asks for is removed, too
cli info >info
for text in 'total_commands_processed:' 'db0:keys=1,expires=0' 'uptime_in_seconds:'; do expect_text info info "$text"; done
is '1# "save" => ""' -3 config get save
talk redis_cli_on_a_terminal

# ---- binary values, pipelines, load ----
head -c 1048576 /dev/urandom >value
timeout 60 redis-cli -p "$port" -x set big <value >/dev/null
timeout 60 redis-cli -p "$port" get big | head -c 1048576 | cmp -s - value || fail "a value of a MiB came back as another"
is OK flushall
i=0
while [ $i -lt 3000 ]; do
  printf 'SET key%d value%d\r\nINCR count\r\n' $i $i
  i=$((i + 1))
done | timeout 60 redis-cli -p "$port" --pipe >piped 2>&1 || fail "redis-cli --pipe"
expect_text "redis-cli --pipe" piped "errors: 0, replies: 6000"
is '"3000"' get count
is '(integer) 3001' dbsize
timeout 100 redis-benchmark -p "$port" -q -t ping,set,get,incr,mset -n 4000 -P 16 -c 20 >benchmark 2>&1 ||
  { fail "redis-benchmark"; cat benchmark >&2; }
grep -q 'Error\|WARN' benchmark && { fail "redis-benchmark"; cat benchmark >&2; }
is OK flushall
pids=
for client in 1 2 3 4; do
  timeout 60 redis-cli -p "$port" -r 250 incr sum >/dev/null &
  pids="$pids $!"
done
talk increments 4 2000
for each in $pids; do wait "$each" || fail "redis-cli -r"; done
is '"9000"' get sum
talk bytes_one_by_one
talk binary
talk pipeline_larger_than_buffers
talk atomic_mset
talk quit_ends
talk protocol_errors
python3 - "$port" <<'PYTHON'
import socket, sys
forger = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
forger.sendall(b'*" event=forged "\r\n')
forger.recv(1000)
PYTHON
stop TERM 0 # and then all of the log is written
expect_text "log" err 'event=protocol_error peer=127.0.0.1:'
expect_text "a forged field" err "reason=\"invalid multibulk length: '\\\" event=forged \\\"' is no number\""
grep -q '^served [1-9][0-9]* connections, [1-9][0-9]* commands$' out || fail "no count: $(cat out)"

# ---- limits ----
start --max-value 1000 --max-connections 1
talk limits 1000
talk one_at_a_time
stop INT 0
start --idle-timeout 1
talk idle_is_sent_away
stop TERM 0
start --idle-timeout 5 # which the clients that do say something must not meet
talk never_reads "$running"
await 'event=connection_lost' err "$running"
is PONG ping
stop TERM 0

# ---- a stop ----
start
talk answers_before_the_end "$running"
ends 0
start
talk last_reply_is_whole "$running"
ends 0
start --grace 1
talk does_not_hold_up_the_end "$running"
ends 0
start --threads 1 --grace 0
stop INT 0
expect_text "nothing to do" out "served 0 connections, 0 commands"
expect_text "stop" err "event=stop signal=SIGINT"

# ---- how it refuses to start ----
start
expect_refusal "port in use" "127.0.0.1:$port: Address already in use" --port "$port"
stop TERM 0
expect_refusal "unknown option" "--nonsense" --nonsense
expect_refusal "value limit" "--max-value: Value 3 not in range" --max-value 3
expect_refusal "no connections" "--max-connections" --max-connections 0
expect_refusal "log level" "--log-level: loud not in" --log-level loud
expect_refusal "bad address" "no IPv4 address" --bind nowhere --port 0
"$programs/kv_server" --help >help || fail "--help: status not 0"
expect_text "help" help "--idle-timeout"

finish kv_server
