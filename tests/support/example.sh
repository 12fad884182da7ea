# Shared by the tests of the examples. Source it with the folder of the example programs as $1.
set -u
programs=$(cd "$1" && pwd)
scratch=$(mktemp -d)
server=
running=
failures=0
trap 'for each in $server $running; do kill -KILL "$each" 2>/dev/null; done; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

fail() {
  echo "FAILED: $*" >&2
  failures=$((failures + 1))
}

# expect_text WHAT FILE TEXT
expect_text() {
  grep -qF -- "$3" "$2" || { fail "$1: no \"$3\" in:"; head -c 2000 "$2" >&2; }
}

# await TEXT FILE PROCESS: until the process has written that. The shell empties FILE only after the fork. So if an
# earlier process may have written to FILE, remove it before the start. Otherwise this may find the text of the earlier
# process.
await() {
  tries=0
  until grep -qsF -- "$1" "$2"; do
    tries=$((tries + 1))
    if [ $tries -gt 1200 ] || ! kill -0 "$3" 2>/dev/null; then fail "waited for \"$1\" in:"; cat "$2" >&2; cat err >&2; exit 1; fi
    sleep 0.05
  done
}

# await_lines COUNT: until the program has printed that many.
await_lines() {
  tries=0
  until [ "$(wc -l <out)" -ge "$1" ]; do
    tries=$((tries + 1))
    if [ $tries -gt 1200 ] || ! kill -0 "$running" 2>/dev/null; then fail "waited for $1 lines"; cat err >&2; exit 1; fi
    sleep 0.05
  done
}

# ends STATUS: the program must, with that.
ends() {
  wait "$running"
  status=$?
  running=
  [ $status -eq "$1" ] || { fail "the status was $status instead of $1"; cat err >&2; }
}

# stop SIGNAL STATUS: the program must end with that status.
stop() {
  kill "-$1" "$running"
  ends "$2"
}

# finish NAME
finish() {
  [ $failures -eq 0 ] && echo "$1: all checks passed"
  exit $((failures > 0))
}
