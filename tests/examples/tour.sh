#!/bin/sh
# tour.sh FOLDER: the tour in FOLDER counts what wc, sort and uniq count, and says clearly what it cannot do.
set -eu
LC_ALL=C
export LC_ALL
tour=$(cd "$1" && pwd)/tour
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# A sanitizer bears fewer fibers.
small='--fibers 5000 --clients 100'
if grep -q -e __tsan_init -e __asan_init "$tour"; then small='--fibers 1000 --clients 50'; fi

fail() {
  echo "tour.sh: $*" >&2
  for file in "$work/out" "$work/err"; do sed "s|^|  |" "$file" >&2; done
  exit 1
}

# run STATUS ARGUMENT...: the tour must end with STATUS.
run() {
  wanted=$1
  shift
  status=0
  timeout 100 "$tour" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
  [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status instead of $wanted"
}

# shown TEXT [FILE]: the line must be in what the tour printed, whose numbers have lost their commas.
shown() {
  sed 's/\([0-9]\),\([0-9]\)/\1\2/g' "$work/${2:-out}" | grep -q -e "$1" || fail "'$1' is missing"
}

# ---- a tree with what is hard about trees ----
tree="$work/tree"
mkdir -p "$tree/a/b/c/with space" "$tree/empty"
printf 'One two two\nthree THREE Three, four_four 5six\n' >"$tree/a/one"
printf 'no newline at the end' >"$tree/a/b/two"
printf 'right\nfrom the start' >"$tree/a/b/c/with space/three
four"
: >"$tree/nothing"
printf '\000\001caf\303\251\377binary\000words' >"$tree/a/binary"
awk 'BEGIN { for (i = 0; i < 40000; ++i) printf "%s%c%s ", "word", 97 + i % 26, i % 3 ? "Tail" : "" }' >"$tree/long"
awk 'BEGIN { for (i = 0; i < 70000; ++i) printf "x" }' >"$tree/one_word"  # longer than what is read at once
i=0
while [ $i -lt 200 ]; do
  echo "file number $i of many words" >"$tree/a/b/file$i"
  i=$((i + 1))
done
ln -s ../long "$tree/a/link_to_file"
ln -s nowhere "$tree/a/broken"
ln -s loop "$tree/a/loop"
ln -s .. "$tree/a/b/up"
mkfifo "$tree/a/pipe"

# The files, links to files too. (find complains of the loop.)
each_file() { find "$tree" -xtype f "$@" 2>"$work/find"; }
# shellcheck disable=SC2016
each_file -exec sh -c 'for file; do cat "$file"; echo; done' sh {} + | tr -cs A-Za-z '\n' | tr A-Z a-z | grep . >"$work/words"
files=$(each_file -exec printf x \; | wc -c)
bytes=$(each_file -exec cat {} + | wc -c)
words=$(wc -l <"$work/words")
distinct=$(sort -u "$work/words" | wc -l)

for threads in 1 2 4; do
  # shellcheck disable=SC2086
  run 0 $small --threads $threads "$tree"
  shown "^word count  *$files files, $bytes bytes, $words words, $distinct distinct  *ok"
  for part in channel 'TCP echo' HTTP; do shown "^$part .* ok: "; done
  shown 'skipped: 2 broken links, 1 links to directories, 1 special files$'
  shown "on $threads worker threads"
  shown ' 0 wake-ups that were lost'
  # Ten words, the most frequent first, those of one frequency in the order of the alphabet.
  sort "$work/words" | uniq -c | sort -k1,1nr -k2,2 | head -n 10 | sed 's/^ *//' >"$work/expected"
  sed 's/\([0-9]\),\([0-9]\)/\1\2/g; s/^ *//' "$work/out" |
    sed -n '/^word count$/,/^one thread/p' | sed '1d;$d' >"$work/ranking"
  cmp -s "$work/expected" "$work/ranking" || fail "the ten words differ: $(diff "$work/expected" "$work/ranking")"
done
[ "$(wc -l <"$work/err")" -eq 4 ] || fail 'stderr is not one line for each part'

# Two directories count together, nothing at all too.
# shellcheck disable=SC2086
run 0 $small "$tree/a/b" "$tree/empty"
shown '^word count  *202 files'
run 0 --fibers 1 --clients 1 "$tree/empty"
shown '^word count  *0 files, 0 bytes, 0 words, 0 distinct'

# ---- few descriptors: a soft limit is raised, a hard one respected and told of ----
(ulimit -Sn 64 && run 0 --fibers 1 --clients 100 "$tree/empty") || exit 1
shown '^HTTP  *100 clients'
(ulimit -n 128 && run 0 --fibers 1 --clients 100 "$tree/empty") || exit 1
shown 'only [0-9]* clients instead of 100'

# ---- what cannot be: one line that names it ----
refused() {
  said=$1
  shift
  status=0
  timeout 100 "$tour" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
  case $status in 1 | 2) ;; *) fail "'$*' ended with $status" ;; esac
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "'$*' is not answered with one line"
  shown "$said" err
}
refused "$work/missing" "$work/missing"
refused "$tree/long" "$tree/long"
refused --no-such-option --no-such-option
refused 'threads.* 0 ' --threads 0
refused 'threads.*many' --threads many
refused clients --clients 0
if [ "$(id -u)" -ne 0 ]; then
  chmod 000 "$tree/empty"
  refused "$tree/empty" "$tree/empty"
  chmod 700 "$tree/empty"
fi
if timeout 100 "$tour" --fibers 1 --clients 1 "$tree/empty" >/dev/full 2>"$work/err"; then fail 'a full disk is no failure'; fi

run 0 --help
shown '--threads'
echo "tour.sh: $files files, $words words, $distinct distinct: all as they should be"
