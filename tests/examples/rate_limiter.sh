#!/bin/sh
# Drives examples/rate_limiter: sh rate_limiter.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
# A rate has an upper bound that can be tested: it may be slow, but never too fast.
. "$(dirname "$0")/../support/example.sh"
limiter=$programs/rate_limiter

milliseconds() { echo $(($(date +%s%N) / 1000000)); }

# ---- every line, in its order, and not too fast: (lines - burst) / rate ----
# takes AT_LEAST_MS LINES ARGUMENT...
takes() {
  least=$1 lines=$2
  shift 2
  seq "$lines" >expected
  before=$(milliseconds)
  "$limiter" "$@" <expected >out 2>err || fail "$*: status $?: $(cat err)"
  took=$(($(milliseconds) - before))
  cmp -s out expected || fail "$*: not the lines that came"
  expect_text "$*" err "done: $lines lines passed, 0 dropped"
  [ $took -ge "$least" ] || fail "$*: $lines lines took $took ms, less than $least"
}
for threads in 1 2 4; do
  takes 400 21 --rate 50 --threads $threads
  takes 400 30 --rate 50 --burst 10 --threads $threads
  takes 90 2000 --rate 10000 --burst 1000 --threads $threads
  takes 0 5000 --rate 0.001 --burst 5000 --threads $threads
done
printf 'no end' | "$limiter" --rate 1000 >out 2>err && [ "$(cat out)" = "no end" ] || fail "a last line without an end"
"$limiter" --rate 1 </dev/null >out 2>err && [ ! -s out ] || fail "nothing to do"

# ---- several inputs: each keeps its order, and with one token at a time none of them is starved ----
seq 200 | sed 's/^/a /' >a
seq 200 | sed 's/^/b /' >b
"$limiter" --rate 1000 --threads 4 a b >out 2>err || fail "two inputs: status $?"
for each in a b; do grep "^$each" out | cmp -s - $each || fail "two inputs: the lines of $each"; done
[ "$(wc -l <out)" -eq 400 ] || fail "two inputs: $(wc -l <out) lines"
"$limiter" --rate 500 --threads 1 a b >out 2>err || fail "two inputs, one thread: status $?"
# From where both have begun: who is first to open its file is a matter of luck.
sed -n "$(($(grep -n '^a' out | head -n 1 | cut -d: -f1) + $(grep -n '^b' out | head -n 1 | cut -d: -f1) - 1)),\$p" out |
  head -n 100 >both
for each in a b; do [ "$(grep -c "^$each" both)" -ge 25 ] || fail "$each did not get its share"; done

# ---- a deadline: the next token is 1000 s away ----
seq 10 >ten
"$limiter" --rate 0.001 --burst 3 --max-wait 5 ten >out 2>err || fail "--max-wait: status $?"
head -n 3 ten | cmp -s out - || fail "--max-wait: not the first three lines"
expect_text "--max-wait" err "done: 3 lines passed, 7 dropped"
"$limiter" --rate 0.001 --burst 3 --max-wait 0 ten >out 2>err || fail "--max-wait 0: status $?"
expect_text "--max-wait 0" err "done: 3 lines passed, 7 dropped"

# ---- stopped while lines wait for a token, and while it waits for lines ----
: >out
"$limiter" --rate 0.001 --burst 4 ten >out 2>err &
running=$!
await_lines 4
stop INT 130
expect_text "SIGINT" err "SIGINT: 4 lines passed, 0 dropped"
mkfifo open
exec 3<>open
: >out
"$limiter" --rate 1000 <open >out 2>err 3<&- &
running=$!
cat ten >&3
await_lines 10
stop TERM 143
exec 3<&-
expect_text "SIGTERM" err "SIGTERM: 10 lines passed, 0 dropped"

# ---- stopped while nobody reads what it writes ----
mkfifo full
exec 4<>full
awk 'BEGIN { for (i = 0; i < 20000; ++i) print "a line of some length, many of which fill a pipe" }' >many
"$limiter" --rate 1000000 --burst 1000000 many >full 2>err 4<&- &
running=$!
python3 - 4<&4 <<'PYTHON' || fail "the pipe did not fill"
import fcntl, struct, termios, time
for _ in range(1200):
    if struct.unpack("i", fcntl.ioctl(4, termios.FIONREAD, b"0000"))[0] > 60000: break
    time.sleep(0.05)
else: raise SystemExit(1)
PYTHON
stop INT 130
exec 4<&-
expect_text "SIGINT before a full pipe" err "SIGINT: "

# ---- how it refuses to start ----
# refuses WHAT TEXT ARGUMENT...
refuses() {
  what=$1 text=$2
  shift 2
  "$limiter" "$@" >refusal 2>&1 </dev/null && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}
refuses "no rate" "--rate is required"
refuses "rate 0" "Value 0 not in range" --rate 0
refuses "negative rate" "Value -3 not in range" --rate -3
refuses "burst 0" "Value 0 not in range" --rate 1 --burst 0
refuses "no number" "soon" --rate 1 --max-wait soon
refuses "a burst that is too small" "this rate needs a burst of at least 11" --rate 10001 --burst 10
refuses "missing file" "opening missing: No such file" --rate 1 missing
"$limiter" --rate 1 ten >/dev/full 2>refusal && fail "a full disk: status 0"
expect_text "a full disk" refusal "No space left on device"
"$limiter" --help >help || fail "--help: status not 0"
expect_text "help" help "--burst"

finish rate_limiter
