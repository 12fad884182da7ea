#!/bin/bash
# packages_test.sh [--all] [--tool FILE]: whether tools/install_packages, or FILE, succeeds and removes nothing in the
# orders in which README.md and CONTRIBUTING.md have it run, on several machines. --all tries all orders on each.
# Nothing is installed, and root is not needed: the tool runs with an apt-get in PATH that only plans (--print-uris)
# over a dpkg state of its own. What it would have installed is then added to that state. Without apt's lists on this
# machine it downloads them into a folder of its own.
set -euo pipefail
unset CDPATH
here=$(cd "$(dirname "$0")" && pwd)
tool=$here/../../tools/install_packages all=
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) all=yes ;;
    --tool) tool=$2; shift ;;
    *) sed -n '2,/^set/s/^# //p' "$0"; exit 2 ;;
  esac
  shift
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export LC_ALL=C

# Each machine: the packages that somebody installed beside Debian's essential ones; `this` is the one that we are on.
declare -A machines=(
  [minimal]=''
  [boost]='build-essential libboost-all-dev'
  # From these apt goes on to scipy for matplotlib, and so to Boost 1.74.
  [algebra]='--no-install-recommends build-essential gdb git libbenchmark-dev libblas-dev liblapack-dev'
  [rival]=''
  [this]=''
)
# Each order: the sections of one run after the other. The last has those that the words of tools/check install.
orders=('build examples, build examples test' 'build, build examples, build examples test')
others=$(sed -n 's/^\[\(.*\)\]$/\1/p' "$(dirname "$tool")/packages.txt" | grep -vxE 'build|examples|test' | paste -sd,)
orders+=("build examples test, $others")
count=1
[[ -z $all ]] || count=${#orders[@]}

# The lists are unpacked, because apt reads them some fifty times.
lists() {
  mkdir -p "$folder/lists/partial" "$folder/parts" "$folder/none/partial"
  local from=/var/lib/apt/lists list name
  if ! compgen -G "$from/*_Packages*" >/dev/null; then
    echo "this machine has no lists of packages, so apt downloads them into $folder"
    from=$folder/downloaded
    mkdir -p "$from/partial"
    apt-get -q -o Dir::State::lists="$from" -o Dir::Cache="$folder/none" -o APT::Sandbox::User=root update
  fi
  for list in "$from"/*_Packages*; do
    name=${list##*/}
    /usr/lib/apt/apt-helper cat-file "$list" >"$folder/lists/${name%_Packages*}_Packages"
  done
  cp "$from"/*Release "$folder/lists/"
}

# Commands of the same names for the tool.
commands() {
  mkdir "$folder/bin"
  cat >"$folder/bin/apt-get" <<'END'
#!/bin/bash
set -o pipefail
for word in "$@"; do
  case $word in
    update) exit 0 ;;
    --print-uris) exec /usr/bin/apt-get "$@" ;;
  esac
done
/usr/bin/apt-get --print-uris "$@" | tee "$MACHINE/done"
END
  printf '#!/bin/sh\nexec "$@"\n' >"$folder/bin/sudo"
  chmod +x "$folder"/bin/*
  PATH=$folder/bin:$PATH
}

# use NAME: from here on apt and dpkg-query see the machine NAME, which begins without packages.
use() {
  export MACHINE=$folder/$1
  mkdir -p "$MACHINE"/{dpkg/info,dpkg/updates,cache/archives/partial}
  echo 1 >"$MACHINE/dpkg/info/format"
  touch "$MACHINE"/{dpkg/status,extended_states,done}
  cat >"$MACHINE/apt.conf" <<END
Dir::Etc::Parts "$folder/parts";
Dir::State::lists "$folder/lists";
Dir::State::status "$MACHINE/dpkg/status";
Dir::State::extended_states "$MACHINE/extended_states";
Dir::Cache "$MACHINE/cache";
Debug::NoLocking "1";
END
  export APT_CONFIG=$MACHINE/apt.conf DPKG_ADMINDIR=$MACHINE/dpkg
}

# Adds to the state what the last plan would have installed: its lines are 'URI' NAME_VERSION_ARCHITECTURE.deb ...
apply() {
  sed -n "s/%3a/:/g; s/^'[^']*' \([^_]*\)_\([^_]*\)_.*/\1=\2/p" "$MACHINE/done" >"$MACHINE/new"
  xargs -r apt-cache show --no-all-versions <"$MACHINE/new" | awk '
    /^[^ ]/ { kept = !/^(Filename|Size|MD5sum|SHA256|Tag|Description.*):/ }
    kept || /^$/
    /^Package:/ { print "Status: install ok installed\nDescription: a package" }' >"$MACHINE/stanzas"
  awk -v RS= 'NR == FNR { seen[$2] = 1 } NR == FNR || !($2 in seen) { print $0 "\n" }' \
    "$MACHINE/stanzas" "$MACHINE/dpkg/status" >"$MACHINE/merged"
  mv "$MACHINE/merged" "$MACHINE/dpkg/status"
}

# begin NAME: the machine's state before our tool.
begin() {
  use "$1"
  case $1 in
    this) cp "${DPKG_STATUS:-/var/lib/dpkg/status}" "$MACHINE/begin"; return ;;
    minimal) apt-get -y install --no-install-recommends '?essential' apt ca-certificates ;;
    *)
      cp "$folder/minimal/begin" "$MACHINE/dpkg/status"
      cp "$folder/minimal/cache/"*.bin "$MACHINE/cache/"
      [[ -z ${machines[$1]} ]] || apt-get -y install ${machines[$1]}
      ;;
  esac >"$MACHINE/log" 2>&1 || { cat "$MACHINE/log"; return 1; }
  apply
  cp "$MACHINE/dpkg/status" "$MACHINE/begin"
}

# run SECTION...: runs the tool. Fails if it fails, or would remove packages.
run() {
  : >"$MACHINE/done"
  "$tool" "$@" >"$MACHINE/log" 2>&1 || { echo "it fails:"; grep -E ' : |^E:|^install_packages' "$MACHINE/log"; return 1; }
  local removed
  removed=$(sed -n '/packages will be REMOVED:/,/^[^ ]/s/^ \+//p' "$MACHINE/done" | paste -sd' ')
  [[ -z $removed ]] || { echo "removes $(wc -w <<<"$removed") packages: ${removed:0:100}..."; return 1; }
  apply
}

# try NAME ORDER: runs the tool in this order, and then once more, which must find all installed.
try() {
  local name=$1 order=$2 step
  cp "$MACHINE/begin" "$MACHINE/dpkg/status"
  while read -r step; do
    run $step || { echo "$name: FAILED at: install_packages $step"; return 1; }
    [[ $name != minimal ]] || ! grep 'left out' "$MACHINE/log" || { echo "$name: FAILED, although nothing is in the way"; return 1; }
  done < <(tr , '\n' <<<"$order")
  "$tool" $step >"$MACHINE/log" 2>&1 && grep -q '^installed already' "$MACHINE/log" || { echo "$name: FAILED: a second run installs again: $step"; return 1; }
  echo "$name: $order: good"
}

# What a refusal must be like: the tool fails, has not begun to install, and names both packages.
refusal() {
  sed -i '/^Package: rival$/,/^$/d' "$MACHINE/dpkg/status"
  printf '%s\n' 'Package: rival' 'Status: install ok installed' 'Version: 1' 'Architecture: all' 'Maintainer: nobody' \
    'Conflicts: libevent-dev' 'Description: a package' '' >>"$MACHINE/dpkg/status"
  if "$tool" build >"$MACHINE/log" 2>&1 || grep -q "^'" "$MACHINE/done" || ! grep -q 'libevent-dev.*rival\|rival.*libevent-dev' "$MACHINE/log"; then
    echo "rival: FAILED: a package that conflicts with libevent-dev must be named, and nothing installed:"
    grep -vE "^'|^  [a-z]" "$MACHINE/log"
    return 1
  fi
  echo "rival: refused in words"
}

# test_machine NAME: all that is to be tried on it. A failure does not stop the rest.
test_machine() {
  local failed= order
  if [[ $1 == rival ]]; then
    refusal
    return
  fi
  for order in "${orders[@]:0:$count}"; do try "$1" "$order" || failed=yes; done
  [[ -z $failed ]]
}

lists
commands
begin minimal
running=() failed=
for name in "${!machines[@]}"; do
  (
    [[ $name == minimal ]] || begin "$name"
    test_machine "$name"
  ) >"$folder/$name.report" 2>&1 &
  running+=("$name $!")
done
for name in "${running[@]}"; do
  wait "${name#* }" || failed=yes
  cat "$folder/${name% *}.report"
done
[[ -z $failed ]]
