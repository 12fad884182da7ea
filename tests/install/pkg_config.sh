#!/bin/sh
# pkg_config.sh COMPILER STAGE FOLDER: builds main.cpp against the library staged in STAGE with what pkg-config says,
# and runs it.
set -eu
compiler=$1 stage=$2 folder=$3
source=$(dirname "$0")/main.cpp

config=$(find "$stage" -name ulexite.pc)
library=$(dirname "$(find "$stage" -name 'libulexite.*' | head -n 1)")
PKG_CONFIG_PATH=$(dirname "$config")
LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}  # for a shared build
export PKG_CONFIG_PATH LD_LIBRARY_PATH

mkdir -p "$folder"
flags=$(pkg-config --cflags ulexite)
case $flags in
  *-fstack-clash-protection*) ;;
  *) echo "no -fstack-clash-protection in: $flags"; exit 1 ;;
esac
case $(pkg-config --define-variable=stack_protection= --cflags ulexite) in
  *-fstack-clash-protection*) echo "-fstack-clash-protection cannot be left out"; exit 1 ;;
esac
if [ -e "$library/libulexite.a" ]; then
  libraries=$(pkg-config --static --libs ulexite)
else
  libraries=$(pkg-config --libs ulexite)
fi
set -x
# The headers compile with the warnings that a strict project turns into errors. shellcheck disable=SC2086
"$compiler" -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror \
  $flags "$source" -o "$folder/consume" $libraries
"$folder/consume"

# The same in C, as docs/embedding.md says.
# shellcheck disable=SC2086
gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wpedantic -Werror $flags "$(dirname "$0")/../c/fibers.c" -o "$folder/fibers" $libraries -lstdc++
"$folder/fibers"
