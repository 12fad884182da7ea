#!/bin/sh
# Drives examples/worker_pool, and unpacks with gzip what it packs: sh worker_pool.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/example.sh"
pool=$programs/worker_pool

# Until all that was written to descriptor 3, a pipe, has been read.
await_read() {
  python3 -c '
import fcntl, termios, time
for _ in range(1200):
    if fcntl.ioctl(3, termios.FIONREAD, bytes(4)) == bytes(4): break
    time.sleep(0.05)
else: raise SystemExit("nobody reads the pipe")' 3<&3 || { fail "the pipe was not read"; exit 1; }
}

# start ARGUMENT...
start() {
  rm -rf packed err && mkdir packed  # err: see await
  "$pool" --output packed "$@" >out 2>err 3<&- 4<&- &
  running=$!
}

# ---- what gzip unpacks is what was packed ----
mkdir files
: >files/empty
printf x >files/one_byte && chmod 600 files/one_byte
head -c 65536 /dev/zero >files/zeros
head -c 2000001 /dev/urandom >'files/large and random'
i=0
while [ $i -lt 60 ]; do
  seq $i $((i * 50)) >files/text$i
  i=$((i + 1))
done
bytes=$(cat files/* | wc -c)
for threads in 1 2 4; do
  for workers in 1 5; do
    start --threads $threads --workers $workers files/*
    ends 0
    expect_text "$threads threads" out "64 compressed, 0 failed, 0 cancelled, 0 not begun, 0 retries; $bytes bytes became"
    [ "$(ls -A packed | wc -l)" -eq 64 ] || fail "$threads threads: $(ls -A packed | wc -l) results"
    gzip -t packed/*.gz || fail "$threads threads: gzip -t"
    for file in files/*; do
      zcat "packed/${file#files/}.gz" | cmp -s - "$file" && continue
      fail "$threads threads: $file is another one now"
      break
    done
  done
done
ls -d files/text* | "$pool" --output packed >out 2>err && fail "it replaced what was there"
expect_text "existing results" err "cannot write packed/text0.gz: File exists"
[ "$(stat -c %a packed/one_byte.gz)" = 600 ] || fail "a private file became $(stat -c %a packed/one_byte.gz)"
rm packed/text*
ls -d files/text* | "$pool" --output packed >out 2>err || fail "names by standard input: status $?"
expect_text "names by standard input" out "60 compressed, 0 failed"
"$pool" </dev/null >out 2>err || fail "nothing to do: status $?"
expect_text "nothing to do" out "0 compressed, 0 failed"

# ---- a job that fails for good does not keep the others from being done ----
start --attempts 3 --retry-delay 1 files/one_byte files/missing files files/zeros
ends 1
expect_text "failures" out "2 compressed, 2 failed, 0 cancelled, 0 not begun, 4 retries"
expect_text "failures" err "attempt 3 of 3 failed: ulexite: opening files/missing: No such file"
expect_text "failures" err "attempt 3 of 3 failed: ulexite: reading from files: Is a directory"
[ "$(ls -A packed | tr '\n' ' ')" = "one_byte.gz zeros.gz " ] || fail "failures left: $(ls -A packed)"

# ---- one that fails at first, and then does not ----
start --attempts 1000000 --retry-delay 20 --workers 1 files/late files/one_byte
await "attempt 2 of 1000000 failed" err "$running"
echo 'here at last' >new && mv new files/late
ends 0
expect_text "late" out "2 compressed, 0 failed"
[ "$(zcat packed/late.gz)" = "here at last" ] || fail "late: what came out"

# ---- one signal: what was begun is finished, nothing else is begun ----
mkfifo pipe held
for signal in TERM INT; do
  exec 3<>pipe 4<>held
  start --workers 2 held pipe files/zeros files/one_byte
  await "begin held" err "$running"
  await "begin pipe" err "$running"
  echo "first half" >&3
  kill -$signal "$running"
  await "SIG$signal: finishing what was begun" err "$running"
  echo "second half" >&3
  await_read
  exec 3<&-  # the last writer goes: now the file has an end, and a worker is free
  tries=0
  until [ -e packed/pipe.gz ] || [ $((tries += 1)) -gt 1200 ]; do sleep 0.05; done
  exec 4<&-
  ends 1
  expect_text "SIG$signal" out "2 compressed, 0 failed, 0 cancelled, 2 not begun"
  for file in zeros one_byte; do expect_text "SIG$signal" err "not begun: files/$file"; done
  [ "$(ls -A packed | tr '\n' ' ')" = "held.gz pipe.gz " ] || fail "SIG$signal: there is $(ls -A packed)"
  [ "$(zcat packed/pipe.gz | tr '\n' ' ')" = "first half second half " ] || fail "SIG$signal: what came out"
done

# Those which wait for another attempt, or for more names, do not hold it up.
mkfifo names
exec 3<>names
rm -f files/late err  # err: see await
"$pool" --output packed --retry-delay 1000000 <names >out 2>err 3<&- &
running=$!
printf 'files/late\nfiles/zeros\n' >&3
await "attempt 1 of 3 failed" err "$running"
await "begin files/zeros" err "$running"
kill -TERM "$running"
ends 1
exec 3<&-
expect_text "SIGTERM in the list" out "1 compressed, 1 failed, 0 cancelled, 0 not begun, 1 retries"

# ---- a second signal cancels, and leaves no half results ----
exec 3<>pipe
start --workers 2 pipe pipe files/zeros
await "begin pipe" err "$running"
kill -TERM "$running"
await "finishing what was begun" err "$running"
kill -TERM "$running"
ends 1
exec 3<&-
expect_text "second signal" err "cancelling"
expect_text "second signal" out "0 compressed, 0 failed, "
[ -z "$(ls -A packed)" ] || fail "second signal: there is $(ls -A packed)"

# ---- how it refuses to start ----
# refuses WHAT TEXT ARGUMENT...
refuses() {
  what=$1 text=$2
  shift 2
  "$pool" "$@" >refusal 2>&1 </dev/null && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}
refuses "unknown option" "--nonsense" --nonsense
refuses "no workers" "Value 0 not in range" --workers 0
refuses "missing directory" "nowhere" --output nowhere
refuses "no number" "soon" --retry-delay soon
"$pool" --help >help || fail "--help: status not 0"
expect_text "help" help "--attempts"

finish worker_pool
