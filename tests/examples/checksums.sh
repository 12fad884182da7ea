#!/bin/sh
# checksums.sh FOLDER: checksums prints what md5sum prints, with any limit, and the first error ends it.
. "$(dirname "$0")/../support/example.sh"
checksums=$programs/checksums

mkdir -p tree/deep/deeper "tree/with a space"
for i in $(seq 200); do head -c $((i * 37)) /dev/urandom >tree/deep/file$i; done
head -c 3000000 /dev/urandom >tree/deep/deeper/large
: >"tree/with a space/empty"
ln -s deep tree/link
find tree -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >expected

for limit in 1 2 20 1000; do
  "$checksums" --limit $limit --threads 4 tree >out 2>err || { fail "limit $limit: status $?"; cat err >&2; }
  cmp -s out expected || fail "limit $limit: not what md5sum prints"
done
mkdir nothing && "$checksums" nothing >out && [ ! -s out ] || fail "an empty directory"

"$checksums" none >out 2>err && fail "no directory: status 0"
expect_text "no directory" err "none"
"$checksums" --limit 0 tree >out 2>err && fail "a limit of 0: status 0"
if [ "$(id -u)" -ne 0 ]; then
  : >tree/secret && chmod 000 tree/secret
  "$checksums" tree >out 2>err && fail "unreadable: status 0"
  expect_text "unreadable" err "tree/secret"
  [ ! -s out ] || fail "unreadable: something was printed"
  rm -f tree/secret
fi



"$checksums" tree >/dev/full 2>err && fail "a full disk: status 0"
finish checksums
