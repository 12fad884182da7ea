#!/bin/sh
# Compares examples/pipeline with sha256sum, and stops it in the middle: sh pipeline.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS
. "$(dirname "$0")/../support/example.sh"
pipeline=$programs/pipeline

# ---- the same as sha256sum, in the same order ----
mkdir -p 'tree/with space/deep'
: >tree/empty
printf 'no newline' >tree/short
head -c 65536 /dev/urandom >tree/one_block
head -c 3000001 /dev/urandom >tree/large
i=0
while [ $i -lt 300 ]; do
  echo "content $i" >"tree/with space/deep/file $i"
  i=$((i + 1))
done
find tree -type f | sort >paths
tr '\n' '\0' <paths | xargs -0 sha256sum >expected
for threads in 1 2 4; do
  for workers in 1 3 50; do
    "$pipeline" --threads $threads --workers $workers <paths >out 2>err || fail "$threads threads: status $?: $(cat err)"
    cmp -s out expected || fail "$threads threads, $workers workers: not what sha256sum says"
  done
done
tr '\n' '\0' <paths | xargs -0 "$pipeline" --workers 8 >out && cmp -s out expected || fail "paths as arguments"
printf 'tree/short' | "$pipeline" >out && sha256sum tree/short | cmp -s out - || fail "a last line without an end"
"$pipeline" </dev/null >out && [ ! -s out ] || fail "nothing to do"
cat paths | "$pipeline" | cat >out && cmp -s out expected || fail "pipes"

# ---- the first error ends it, also while another file, or the list, has no end ----
mkfifo list
for bad in missing tree; do
  "$pipeline" tree/short "$bad" tree/large >out 2>err && fail "$bad: status 0"
  expect_text "$bad" err "ulexite: "
  expect_text "$bad" err " $bad: "
  expect_text "$bad" err "failed after"
  "$pipeline" /dev/zero "$bad" >out 2>err && fail "$bad beside an endless file: status 0"
  expect_text "$bad beside an endless file" err "failed after 0 files"
  exec 3<>list
  echo "$bad" >&3
  "$pipeline" <list >out 2>err 3<&- && fail "$bad in an open list: status 0"
  expect_text "$bad in an open list" err " $bad: "
  exec 3<&-
done
if [ "$(id -u)" -ne 0 ]; then
  : >secret && chmod 000 secret
  "$pipeline" secret >out 2>err && fail "unreadable: status 0"
  expect_text "unreadable" err "opening secret: Permission denied"
fi
"$pipeline" tree/short >/dev/full 2>err && fail "a full disk: status 0"
expect_text "a full disk" err "No space left on device"

# ---- stopped in the middle of a file: what was printed before counts ----
for threads in 1 4; do
  : >out
  "$pipeline" --threads $threads tree/short tree/empty /dev/zero tree/large >out 2>err &
  running=$!
  await_lines 2
  stop INT 130
  expect_text "SIGINT in a file" err "pipeline: SIGINT after 2 files"
  sha256sum tree/short tree/empty | cmp -s out - || fail "SIGINT in a file: the lines before it"
done

# ---- stopped while it waits for more paths ----
: >out
exec 3<>list
"$pipeline" <list >out 2>err 3<&- &
running=$!
head -n 40 paths >&3
await_lines 40
stop TERM 143
exec 3<&-
expect_text "SIGTERM in the list" err "pipeline: SIGTERM after 40 files"
head -n 40 expected | cmp -s out - || fail "SIGTERM in the list: the lines before it"

# ---- how it refuses to start ----
# refuses WHAT TEXT ARGUMENT...
refuses() {
  what=$1 text=$2
  shift 2
  "$pipeline" "$@" >refusal 2>&1 </dev/null && fail "$what: status 0"
  expect_text "$what" refusal "$text"
}
refuses "unknown option" "--nonsense" --nonsense
refuses "no workers" "Value 0 not in range" --workers 0
refuses "workers that are no number" "many" --workers many
"$pipeline" --help >help || fail "--help: status not 0"
expect_text "help" help "--workers"

finish pipeline
