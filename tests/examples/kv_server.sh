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

# within LOW HIGH WORD...: an integer.
within() {
  low=$1 high=$2
  shift 2
  got=$(timeout 60 redis-cli -p "$port" "$@")
  [ "$got" -ge "$low" ] && [ "$got" -le "$high" ] || fail "$*: $got is not within $low and $high"
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

# ---- each command, and how it refuses ----
start --threads 2
is PONG ping
is '"a word"' ping 'a word'
is "(error) ERR wrong number of arguments for 'ping' command" ping a b
is '"again"' echo again
is "(error) ERR wrong number of arguments for 'echo' command" echo
is '(nil)' get k
is OK set k v
is '"v"' get k
is OK SET k ''
is '""' GeT k
is "(error) ERR wrong number of arguments for 'get' command" get
is "(error) ERR wrong number of arguments for 'set' command" set k
is '(nil)' set k w nx
is '""' get k
is OK set k w xx
is '(nil)' set none w XX
is OK set new w NX EX 100
is '(error) ERR syntax error' set k v nx xx
is '(error) ERR syntax error' set k v ex
is '(error) ERR syntax error' set k v ex 1 px 1
is '(error) ERR syntax error' set k v sometimes
is '(error) ERR value is not an integer or out of range' set k v ex soon
is "(error) ERR invalid expire time in 'set' command" set k v ex 0
is "(error) ERR invalid expire time in 'set' command" set k v px -1
is "(error) ERR invalid expire time in 'set' command" set k v ex 9223372036854775807
is "(error) ERR invalid expire time in 'set' command" set k v px 9223372036854775807
is '"w"' get k
is '(integer) 2' del k new none
is '(integer) 0' exists k
is OK mset a 1 b 2 c 3 a 4
is "(error) ERR wrong number of arguments for 'mset' command" mset a 1 b
is '1) "4"|2) (nil)|3) "3"|4) "4"' mget a none c a
is '(integer) 3' exists a a b none
is '(integer) 5' incr a
is '(integer) 4' decr a
is '(integer) -6' incrby a -10
is '(integer) -1' decr fresh
is OK set word x1
is '(error) ERR value is not an integer or out of range' incr word
is '(error) ERR value is not an integer or out of range' incrby a 1.5
is OK set number 007
is '(error) ERR value is not an integer or out of range' incr number
is OK set number 9223372036854775807
is '(error) ERR increment or decrement would overflow' incr number
is '"9223372036854775807"' get number
is '(integer) 6' dbsize
is OK flushall
is OK flushall async
is '(error) ERR syntax error' flushall slowly
is '(integer) 0' dbsize
is '(empty array)' keys '*'
is "(error) ERR unknown command 'nonsense', with args beginning with: 'a' 'b'" nonsense a b
is "(error) ERR unknown command 'getx', with args beginning with:" getx

# ---- patterns ----
is OK mset hello 1 hallo 2 hxllo 3 heello 4 'h*llo' 5
keys() { # keys PATTERN NAMES
  got=$(timeout 60 redis-cli -p "$port" keys "$1" | sort | paste -sd ' ')
  [ "$got" = "$2" ] || fail "keys $1: got $got instead of $2"
}
keys '*' 'h*llo hallo heello hello hxllo'
keys 'h?llo' 'h*llo hallo hello hxllo'
keys 'h[ae]llo' 'hallo hello'
keys 'h[^e]llo' 'h*llo hallo hxllo'
keys 'h[a-e]llo' 'hallo hello'
keys 'h[e-a]llo' 'hallo hello'
keys 'h\*llo' 'h*llo'
keys '*e*l*' 'heello hello'
keys 'he' ''
keys 'hello*' 'hello'
keys '' ''
is '(error) ERR the pattern is longer than 256 bytes' keys "$(printf '%257s' '' | tr ' ' '?')"
is OK flushall

# ---- expiry ----
is '(integer) -2' ttl k
is '(integer) -2' pttl k
is OK set k v
is '(integer) -1' ttl k
is '(integer) 1' expire k 1000
within 1 1000 ttl k
within 1001 1000000 pttl k
is '(integer) 1' persist k
is '(integer) 0' persist k
is '(integer) 0' persist none
is '(integer) -1' pttl k
is '(integer) 1' pexpire k 5000000
within 1001 5000 ttl k
is OK set k 1
is '(integer) -1' ttl k
is OK set k 1 ex 1000
is '(integer) 2' incr k
within 1 1000 ttl k
is '(integer) 0' expire none 10
is "(error) ERR invalid expire time in 'expire' command" expire k 9223372036854775807
is '(error) ERR value is not an integer or out of range' expire k x
is '(integer) 1' expire k -1
is '(nil)' get k
is OK set k v px 1
becomes '(nil)' get k
is '(integer) 0' exists k
is OK set k v nx
is '(integer) 1' pexpire k 1
is OK mset a 1 b 2
is '(integer) 1' pexpire a 1
becomes '(integer) 1' dbsize # what nobody asks for is removed, too
is '1) "b"' keys '*'

# ---- what clients ask by themselves ----
is '(empty array)' command docs
is '(integer) 24' command count
cli command >commands
expect_text "command" commands '"incrby"'
is '(error) ERR only COMMAND, COMMAND COUNT and COMMAND DOCS are known' command more
is '1) "save"|2) ""' config get save
is '1) "appendonly"|2) "no"' config get appendonly
is '(empty array)' config get other
is '(error) ERR only CONFIG GET with one name is known' config set save ''
is '1) "server"|2) "kv_server"|3) "proto"|4) (integer) 2' hello
is '1) "server"|2) "kv_server"|3) "proto"|4) (integer) 2' hello 2
is '(error) NOPROTO unsupported protocol version' hello 3
is '(error) ERR Protocol version is not an integer or out of range' hello x
is OK quit
cli info >info
for text in 'total_commands_processed:' 'db0:keys=1,expires=0' 'uptime_in_seconds:'; do expect_text info info "$text"; done
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
