#!/bin/sh
# SPDX-License-Identifier: MIT
# break.sh NAME OUT: the scripts, with what tests/meta/broken/NAME.sed says, in OUT. A line of it that changes nothing is an
# error: the guard that it took out is written in another way by now.
set -eu
sed=tests/meta/broken/$1.sed out=$2
rm -rf "$out"
mkdir -p "$out"
cp -r src/lua/. "$out"
grep '^s/' "$sed" | while IFS= read -r line; do
    cat "$out"/*/*.lua > "$out/before"
    sed -i -e "$line" "$out"/*/*.lua
    if cat "$out"/*/*.lua | cmp -s - "$out/before"; then
        echo "$sed: changes nothing: $line" >&2
        exit 1
    fi
done
